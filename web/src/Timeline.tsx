import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { api, asks, got, type RunRecord, type TimelineData } from './api'
import { chart, type Pointed } from './chart'
import { to } from './look'
import { when } from './moments'
import { Choice, Loading, Trouble, useLooks, useNow } from './parts'
import { timeline as texts } from './strings'
import { type Drawn, goesOn, laid } from './time'
import { span } from './wording'

const OFTEN = 5000 // milliseconds between two answers: in a busy night something changes all the time
let asked = 0

async function columns({ signal }: { signal: AbortSignal }): Promise<TimelineData> {
  await new Promise(done => setTimeout(done, asked + OFTEN - Date.now()))
  if (document.hidden) await new Promise(done => document.addEventListener('visibilitychange', done, { once: true, signal }))
  signal.throwIfAborted()
  asked = Date.now()
  return got(api.GET('/api/v1/timeline', { signal }))
}

/** A run in words. */
function told(data: TimelineData, run: number, later: number, as: ReturnType<typeof useLooks>['run']): string {
  const { sign, word } = as(data.states[data.state[run]!] as RunRecord['state'])
  const [before, starting, after] = [data.held, data.starting, data.verified].map(part => part[run]!)
  const long = data.length[run]! + (goesOn(data, run) ? later : 0)
  const parts = [
    data.run[run],
    data.agents[data.agent[run]!],
    `${sign} ${word}`,
    when(1000 * (data.epoch + data.begin[run]!)),
    before! >= 60 && texts.waited(span(1000 * before!)),
    starting! >= 60 && texts.started(span(1000 * starting!)),
    (goesOn(data, run) ? texts.goesOn : texts.worked)(span(1000 * long)),
    after! >= 1 && texts.verified(span(1000 * after!)),
  ]
  return parts.filter(Boolean).join(' · ')
}

/** The run beside, or in the row above or below that is nearest in time. */
function next({ runs, row, from, rows }: Drawn, at: number, key: string): number | undefined {
  if (key === 'Home') return 0
  if (key === 'End') return runs.length - 1
  if (key === 'ArrowRight' || key === 'ArrowLeft') return Math.min(runs.length - 1, Math.max(0, at < 0 ? runs.length - 1 : at + (key === 'ArrowRight' ? 1 : -1)))
  if (at < 0 || (key !== 'ArrowUp' && key !== 'ArrowDown')) return undefined
  const by = key === 'ArrowUp' ? -1 : 1
  for (let line = row[at]! + by; line >= 0 && line < rows; line += by) {
    let best = -1
    for (let i = 0; i < runs.length; i++) if (row[i] === line && (best < 0 || Math.abs(from[i]! - from[at]!) < Math.abs(from[best]! - from[at]!))) best = i
    if (best >= 0) return best
  }
  return at
}

const beside = ({ x, y }: { x: number; y: number }, width: number) => ({ top: y + 14, ...(x > width / 2 ? { right: width - x + 12 } : { left: x + 12 }) })

type Which = { state: string; agent: string; issue: string }

/** Every run as a bar. Canvas, as thousands are no elements; the table beside it says the same to who cannot see it. */
export default function Timeline({ state, agent, issue }: Which) {
  const query = useQuery({ queryKey: ['timeline'], queryFn: columns, structuralSharing: false })
  const { data } = query
  const home = useQuery(asks.now())
  const { run: runLook } = useLooks()
  const [by, order] = useState('slot')
  const [fold, folded] = useState(true)
  const [run, choose] = useState(-1)
  const [pointed, point] = useState<Pointed>(null)
  const [, go] = useLocation()
  const now = useNow()
  const canvas = useRef<HTMLCanvasElement>(null)
  const brush = useRef<HTMLCanvasElement>(null)
  const palette = useRef<HTMLSpanElement>(null)
  const was = useRef('')
  const made = useRef<ReturnType<typeof chart>>(null)
  const later = home.data?.daemon.running && data ? Math.max(0, now / 1000 - data.at) : 0
  const drawn = useMemo(() => {
    if (!data) return null
    const is = (wanted: string, names: string[], column: number[]) => {
      const place = wanted ? names.indexOf(wanted) : -1
      return (run: number) => !wanted || column[run] === place
    }
    const kept = [is(state, data.states, data.state), is(agent, data.agents, data.agent), is(issue, data.issues, data.issue)]
    return laid(data, run => kept.every(one => one(run)), by === 'issue', fold, now / 1000, later)
  }, [data, state, agent, issue, by, fold, now])
  useEffect(() => {
    const open = (name: string) => go(to.run(name))
    made.current = chart(canvas.current!, brush.current!, palette.current!, { point: choose, open, hover: point })
    return () => made.current?.end()
  }, [go])
  const of = [state, agent, issue].join()
  useEffect(() => {
    if (drawn) made.current?.show(drawn, run, was.current !== of)
    was.current = of
  }, [drawn])
  useEffect(() => made.current?.choose(run), [run])
  const pressed = (event: KeyboardEvent) => {
    const { key } = event
    if (event.ctrlKey || event.metaKey || event.altKey || !drawn || !made.current) return
    const near = next(drawn, drawn.runs.indexOf(run), key)
    if (near !== undefined && drawn.runs.length) choose(drawn.runs[near]!)
    else if (key === '+' || key === '=') made.current.zoom(1 / 1.5)
    else if (key === '-') made.current.zoom(1.5)
    else if (key === 'PageUp' || key === 'PageDown') made.current.pan((key === 'PageUp' ? -0.8 : 0.8) * canvas.current!.clientWidth)
    else if (key === '0') made.current.day()
    else if (key === 'Enter' && run >= 0) go(to.run(drawn.data.run[run]!))
    else if (key === 'Escape') choose(-1)
    else return
    event.preventDefault()
  }
  const shown = pointed?.run ?? run
  return (
    <section className="timeline" aria-label={texts.name}>
      <Trouble of={query} />
      <div className="filter">
        <Choice label={texts.rows} value={by} choose={order} of={texts.rowsOf} />
        <button type="button" onClick={() => made.current?.day()}>{texts.lastDay}</button>
        <button type="button" onClick={() => made.current?.all()}>{texts.everything}</button>
        <button type="button" aria-label={texts.zoomIn} onClick={() => made.current?.zoom(1 / 1.5)}>+</button>
        <button type="button" aria-label={texts.zoomOut} onClick={() => made.current?.zoom(1.5)}>–</button>
        <label className="inline">
          <input type="checkbox" checked={fold} onChange={event => folded(event.target.checked)} />{texts.fold}
        </label>
      </div>
      <canvas ref={brush} className="brush" aria-hidden />
      <div
        className="runs-canvas"
        role="application"
        aria-label={texts.keys}
        tabIndex={0}
        onKeyDown={pressed}
      >
        <canvas ref={canvas} />
        {!data && <Loading />}
        {pointed && data && (
          <p className="tip" aria-hidden style={beside(pointed, canvas.current!.clientWidth)}>
            {told(data, pointed.run, later, runLook)}
          </p>
        )}
      </div>
      <p role="status" className="pointed">
        {data && shown >= 0 && data.run[shown] ? (
          <Link href={to.run(data.run[shown])}>{told(data, shown, later, runLook)}</Link>
        ) : (
          drawn && texts.sum(drawn.runs.length, drawn.data.run.length)
        )}
      </p>
      <p className="quiet facts legend">
        <span><i className="part held" />{texts.legend.held}</span>
        <span className="s-time"><i className="part starting" />{texts.legend.starting}</span>
        <span className="s-closed"><i className="part" />{texts.legend.working}</span>
        <span className="s-closed"><i className="part verified" />{texts.legend.verified}</span>
        <span className="s-person"><i className="part now" />{texts.legend.now}</span>
      </p>
      <span ref={palette} className="palette" hidden>
        {['person', 'running', 'time', 'parked', 'closed', 'not_eligible'].map(as => <i key={as} data-as={as} className={`s-${as}`} />)}
        {['soft', 'line', 'quiet', 'ink', 'focus'].map(as => <i key={as} data-as={as} className={as} />)}
      </span>
    </section>
  )
}
