import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { asks, type Issue } from './api'
import { Counts, PhaseList } from './Counts'
import { evidence, short, to } from './look'
import { exactly, when } from './moments'
import { Choice, Empty, Facts, Findings, Section, Stands, Table, Trouble, useNow, useWide, When, Words } from './parts'
import { shared, then as texts } from './strings'

const PolicyGraph = lazy(() => import('./PolicyGraph'))
const HOUR = 3_600_000
const STEPS = 720
const REST = 200 // ms without a move, after which a moment is asked for
const AGAIN = 1500
const REACH = [12 * HOUR, 72 * HOUR, 720 * HOUR, 8760 * HOUR]

const useThen = (at: string | null, issue: string | null) =>
  useQuery({
    ...asks.then(at ?? '', issue),
    enabled: at !== null,
    placeholderData: before => before,
    refetchInterval: ({ state: { data } }) => (data?.ready === false ? AGAIN : false),
  })

type Back = { at: string | null; issue: string | null; choose: (at: string) => void }

/** Leads to a moment of the past, and back. */
export function Back({ at, issue, choose }: Back) {
  const now = useNow()
  const { data } = useThen(at, issue)
  const [reach, setReach] = useState(REACH[0]!)
  const [moved, move] = useState<number | null>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const there = at === null ? now : Date.parse(data?.at ?? at) || now
  const long = Math.max(reach, REACH.find(length => now - there < length) ?? REACH.at(-1)!)
  const step = long / STEPS
  const value = moved ?? there
  useEffect(() => move(null), [at])
  useEffect(() => () => clearTimeout(timer.current), [])
  const go = (wanted: number) => {
    const next = wanted > now - step / 2 ? null : wanted
    move(next ?? now)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => (next === null && at === null ? move(null) : choose(next === null ? '' : new Date(next).toISOString())), REST)
  }
  return (
    <div className={at ? 'back' : 'back here'}>
      <label>
        {texts.goTo}
        <input
          type="range"
          max={STEPS}
          value={STEPS - Math.round((now - value) / step)}
          aria-valuetext={value >= now ? shared.now : texts.asOf(when(value))}
          onChange={event => go(now - (STEPS - Number(event.target.value)) * step)}
        />
      </label>
      <output>{value >= now ? shared.now : when(value)}</output>
      <Choice label={texts.over} className="inline" value={String(long)} choose={value => setReach(Number(value))} of={REACH.map((length, place) => [String(length), texts.reach[place]!] as const)} />
    </div>
  )
}

/** How everything stood; nothing can be done about it any more. */
export function Then({ at, issue }: { at: string; issue: string | null }) {
  const asked = useThen(at, issue)
  const { data } = asked
  const wide = useWide()
  return (
    <>
      <p className="line" role="status">
        {data ? <>{texts.seen(<b title={exactly(data.at)}>{when(data.at)}</b>)}{data.seq > 0 && <>, <Link href={to.record(data.seq)}>#{data.seq}</Link></>}</> : texts.loading}
        {' · '}
        <Link href="/">{texts.back}</Link>
      </p>
      <Trouble of={asked} />
      {data?.ready === false && (
        <Empty>{texts.preparing(data.progress)}</Empty>
      )}
      {data?.ready && !data.counts && (
        <Empty>{data.kept_from ? texts.before(exactly(data.kept_from)) : texts.noJournal}</Empty>
      )}
      {data?.counts && (
        <>
          {issue && (data.issue ? <Stood issue={data.issue} /> : <Empty>{texts.unknown(issue)}</Empty>)}
          <div className="two">
            <Section name="waiting" title={ <>{shared.waiting} {data.waiting.length > 0 && <span className="badge">{data.waiting.length}</span>}</> }>
              {data.waiting.length ? <ol className="cards">{data.waiting.map(one => <li key={one.issue}><Stood issue={one} /></li>)}</ol> : <Empty>{texts.nothingWaited}</Empty>}
            </Section>
            <Section name="running" title={texts.ran}>
              {data.running.length ? (
                <Table
                  heads={[shared.issue, shared.run, texts.since]}
                  rows={data.running.map(one => [
                    one.issue,
                    <><Link data-step href={to.issue(one.issue)}>{one.issue}</Link> <span className="quiet">{one.title}</span></>,
                    <span className="short" title={one.reason}>{one.run ? <Link href={to.run(one.run)}>{short(one.run)}</Link> : (one.phase ?? one.reason)}</span>,
                    <When at={one.since} />,
                  ])}
                />
              ) : <Empty>{texts.nothingRan}</Empty>}
            </Section>
          </div>
          {wide ? <Suspense fallback={<div className="graph" />}><PolicyGraph title={texts.policy} policies={data.policies} /></Suspense> : data.policies.filter(({ phases }) => phases.some(one => one.issues)).map(one => <PhaseList key={one.policy} title={shared.policy(one.policy)} policy={one} />)}
          <Counts counts={data.counts} linked={false} />
        </>
      )}
    </>
  )
}

/** An issue's sentence as it was. */
const Stood = ({ issue }: { issue: Issue }) => (
  <div className={`stands s-${issue.state}`} data-step tabIndex={-1}>
    <div>
      <p><Link href={to.issue(issue.issue)}>{issue.issue}</Link> {issue.title}</p>
      <p><Stands state={issue.state} then />: <Words text={issue.question?.text ?? issue.reason} /></p>
      <Facts of={[issue.question?.phase ?? issue.phase, issue.since && shared.since(<When at={issue.since} />), issue.due && shared.until(<When at={issue.due} />), `P${issue.priority}`, issue.run]} />
      {issue.state === 'person' && <Findings found={evidence(issue)} />}
    </div>
  </div>
)
