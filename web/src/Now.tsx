import { useMutation, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { Answered, forget, say, useIsAnswered } from './Answered'
import { api, asks, got, type Running as AtWork, told, type Waiting as Asking } from './api'
import { Card } from './Card'
import { Counts } from './Counts'
import { short, to } from './look'
import { Ago, Empty, Facts, H1, Loading, Section, Table, Trouble, useDesk, useNarrow, useNow, When } from './parts'
import { now as texts, shared } from './strings'
import { figure, span } from './wording'

const Back = lazy(() => import('./Then').then(({ Back }) => ({ default: Back })))
const Then = lazy(() => import('./Then').then(({ Then }) => ({ default: Then })))

/** Now; or with a moment in the address, how it stood then, and nothing of the present. */
export function Now() {
  const [search, set] = useNarrow()
  const [at, issue] = [search.get('at'), search.get('issue')]
  const [open, look] = useState(false)
  const { data } = useQuery(asks.now())
  const answered = useIsAnswered()
  const many = data?.waiting.filter(one => !answered(one)).length
  return (
    <>
      <div className="top">
        {!at && <button aria-expanded={open} onClick={() => look(!open)}>{texts.history}</button>}
        <H1 title={at ? texts.history : many ? `(${many}) ${texts.title}` : texts.title}>{at ? texts.history : texts.title}</H1>
      </div>
      {(open || at) && <Suspense fallback={<div className="back" />}><Back at={at} issue={issue} choose={at => set('at', at)} /></Suspense>}
      {at ? <Suspense fallback={<Loading />}><Then at={at} issue={issue} /></Suspense> : <Present />}
    </>
  )
}

function Present() {
  const asked = useQuery(asks.now())
  const { data } = asked
  const answered = useIsAnswered()
  return (
    <>
      <Trouble of={asked} />
      {data ? (
        <>
          <Waiting waiting={data.waiting} running={data.running.length > 0 && data.daemon.running} />
          <Running running={data.running} daemon={data.daemon.running} paused={data.daemon.pauses.some(pause => pause.provider === null)} />
          <Counts counts={{ ...data.counts, person: data.waiting.filter(one => !answered(one)).length }} running={data.running} runs={data.daemon.running} />
          <Facts of={data.policies.map(one => <Link href={to.policy(one)}>{shared.policy(one)}</Link>)} />
          {data.policies.length === 0 && <Empty>{texts.noPolicy}</Empty>}
        </>
      ) : asked.isPending && <Loading />}
    </>
  )
}

// --- what waits -------------------------------------------------------------------------------------------------

type Cards = { cards: Asking[]; gone: Asking[] }

/** Cards stay in their order while one has the focus. What waits no more is no card, but is told in a line. */
function merged({ cards, gone }: Cards, waiting: Asking[], still: boolean): Cards {
  const known = new Map(waiting.map(one => [one.issue, one]))
  const left = [...gone, ...cards].filter(({ issue }) => !known.has(issue))
  if (!still) return { cards: waiting, gone: left }
  const before = new Set(cards.map(({ issue }) => issue))
  return { cards: [...cards.flatMap(({ issue }) => known.get(issue) ?? []), ...waiting.filter(({ issue }) => !before.has(issue))], gone: left }
}

const inCards = () => document.activeElement?.closest('.cards, .desk') != null

function Waiting({ waiting, running }: { waiting: Asking[]; running: boolean }) {
  const [{ cards, gone }, set] = useState<Cards>({ cards: waiting, gone: [] })
  useEffect(() => set(before => merged(before, waiting, inCards())), [waiting])
  const answered = useIsAnswered()
  const open = cards.filter(card => !answered(card))
  const end = (issue: string) => {
    forget(issue)
    set(before => ({ ...before, gone: before.gone.filter(one => one.issue !== issue) }))
  }
  const desk = useDesk()
  return (
    <Section name="waiting" title={ <>{shared.waiting} {open.length > 0 && <span className="badge">{figure(open.length)}</span>}</> }>
      <Answered gone={gone} waiting={waiting} end={end} />
      {!open.length ? (
        <Empty>{`${texts.allClear}${running ? '' : texts.idle}`}</Empty>
      ) : desk ? <Desk cards={open} /> : <ol className="cards">{open.map(card => <Card key={card.issue} issue={card} />)}</ol>}
    </Section>
  )
}

/** A list, and beside it the one that is chosen: which `j` and `k` do, and Enter goes over to it. */
function Desk({ cards }: { cards: Asking[] }) {
  const [chosen, choose] = useState('')
  const place = useRef(0)
  const at = cards.findIndex(({ issue }) => issue === chosen)
  if (at >= 0) place.current = at
  const card = cards[Math.min(place.current, cards.length - 1)]!
  useEffect(() => choose(card.issue), [card.issue]) // it stays, whatever comes in before it
  return (
    <div className="desk">
      <ol>
        {cards.map(one => (
          <li key={one.issue}>
            <Item issue={one} chosen={one === card} choose={() => choose(one.issue)} />
          </li>
        ))}
      </ol>
      <Card key={card.issue} issue={card} desk />
    </div>
  )
}

function Item({ issue: { issue, title, since, verification, changes, flags }, chosen, choose }: { issue: Asking; chosen: boolean; choose: () => void }) {
  const { passed = 0, failed = 0 } = verification?.summary ?? {}
  const over = () => (choose(), requestAnimationFrame(() => document.getElementById(`card-${issue}`)?.querySelector('a')?.focus()))
  return (
    <button id={`item-${issue}`} data-step aria-current={chosen || undefined} onFocus={choose} onClick={event => (event.detail ? choose() : over())}>
      <span><b><i aria-hidden>?</i> {issue}</b> <Ago at={since} /></span>
      <span>{title}</span>
      <span className="changed">
        {failed > 0 && <b className="del">✕ {figure(failed)}<span className="hidden">{texts.failed(failed)}</span></b>}
        {passed > 0 && <b className="add">✓ {figure(passed)}<span className="hidden">{texts.passed(passed)}</span></b>}
        {changes && changes.added !== null && <span><b className="add">+{figure(changes.added)}</b> <b className="del">−{figure(changes.removed ?? 0)}</b></span>}
        {flags.map(flag => <b key={flag}>! {flag}</b>)}
      </span>
    </button>
  )
}

// --- what runs --------------------------------------------------------------------------------------------------

const step = ({ code, landing, phase, reason }: AtWork) => texts.steps[code] ?? (code === 'landing' ? texts.landing(landing?.onto) : (phase ?? reason))

function Running({ running, daemon, paused }: { running: AtWork[]; daemon: boolean; paused: boolean }) {
  return (
    <Section name="running" title={daemon || !running.length ? texts.running : texts.interrupted}>
      {!daemon && running.length > 0 && <p className="quiet">{texts.cut}</p>}
      {running.length ? (
        <Table
          className="running"
          heads={[shared.issue, texts.step, ...(daemon ? [texts.duration, texts.lastSign, shared.used, texts.cancel] : [texts.begun])]}
          rows={running.map(issue => {
            const { issue: id, title, since, reason, at_work: run } = issue
            return [
              id,
              <><Link data-step href={to.issue(id)}>{id}</Link> <span className="quiet">{title}</span></>,
              run ? <><Link href={to.run(run.run)}>{short(run.run)}</Link> <span className="quiet">{run.agent}</span></> : <span title={reason}>{step(issue)}</span>,
              ...(daemon
                ? [
                    run?.started_at && run.deadline ? <Limit from={run.started_at} until={run.deadline} /> : <Ago at={run?.started_at ?? since} />,
                    run?.last && <><span className="small">{texts.sign}</span><Ago at={run.last} />{texts.ago}</>,
                    run && <>{figure(run.tokens)}<span className="small">{texts.tokens}</span></>,
                    <Cancel issue={id} />,
                  ]
                : [<When at={run?.started_at ?? since} />]),
            ]
          })}
        />
      ) : (
        <Empty>{texts.nothing}</Empty>
      )}
      {daemon && !paused && <Pause />}
    </Section>
  )
}

/** For how long a run goes on, of the time that it may take. */
function Limit({ from, until }: { from: string; until: string }) {
  const [now, begun, end] = [useNow(), Date.parse(from), Date.parse(until)]
  const said = texts.limit(span(now - begun), span(end - begun))
  return <span className="limit">{said}<meter aria-label={texts.time(said)} max={end - begun} value={Math.max(0, now - begun)} /></span>
}

function Cancel({ issue }: { issue: string }) {
  const [sure, ask] = useState(false)
  const cancel = useMutation({ mutationFn: () => got(api.POST('/api/v1/cancel', { body: { target: issue } })), onSettled: () => ask(false) })
  if (cancel.data || cancel.error) return <span role="status">{cancel.error ? told(cancel.error) : texts.cancelled}</span>
  if (!sure) return <button aria-label={texts.cancelOne(issue)} onClick={() => ask(true)}>{texts.cancel}</button>
  return (
    <span className="sure">
      {texts.sure}
      <button disabled={cancel.isPending} onClick={() => cancel.mutate()}>{texts.yes}</button>
      <button disabled={cancel.isPending} onClick={() => ask(false)}>{texts.no}</button>
    </span>
  )
}

function Pause() {
  const pause = useMutation({
    mutationFn: (minutes: number) => got(api.POST('/api/v1/pause', { body: { minutes } })),
    onSuccess: () => say(texts.paused),
  })
  return (
    <div className="acts">
      <button onClick={() => pause.mutate(60)} disabled={pause.isPending}>{texts.pause}</button>
      {pause.isError && <span role="status">{told(pause.error)}</span>}
    </div>
  )
}
