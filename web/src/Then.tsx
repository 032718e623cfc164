import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { asks, type Issue } from './api'
import { Counts, PhaseList } from './Counts'
import { evidence, exactly, short, to, when } from './look'
import { Choice, Empty, Facts, Findings, Section, Stands, Table, Trouble, useNow, useWide, When, Words } from './parts'

const PolicyGraph = lazy(() => import('./PolicyGraph'))
const HOUR = 3_600_000
const STEPS = 720
const REST = 200 // ms without a move, after which a moment is asked for
const AGAIN = 1500
const REACH = [
  [12 * HOUR, '12 hours'],
  [72 * HOUR, '3 days'],
  [720 * HOUR, '30 days'],
  [8760 * HOUR, 'a year'],
] as const

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
  const [reach, setReach] = useState<number>(REACH[0][0])
  const [moved, move] = useState<number | null>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const there = at === null ? now : Date.parse(data?.at ?? at) || now
  const long = Math.max(reach, REACH.find(([length]) => now - there < length)?.[0] ?? REACH[3][0])
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
        Go back to
        <input
          type="range"
          max={STEPS}
          value={STEPS - Math.round((now - value) / step)}
          aria-valuetext={value >= now ? 'now' : `as of ${when(value)}`}
          onChange={event => go(now - (STEPS - Number(event.target.value)) * step)}
        />
      </label>
      <output>{value >= now ? 'now' : when(value)}</output>
      <Choice label="over" className="inline" value={String(long)} choose={value => setReach(Number(value))} of={REACH.map(([length, word]) => [String(length), word] as const)} />
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
        {data ? <>As of <b title={exactly(data.at)}>{when(data.at)}</b>{data.seq > 0 && <>, <Link href={to.record(data.seq)}>#{data.seq}</Link></>}</> : 'Loading that moment …'}
        {' · '}
        <Link href="/">back to now</Link>
      </p>
      <Trouble of={asked} />
      {data?.ready === false && (
        <Empty>{`What was then is being made ready, of all that the journal holds: ${Math.floor(100 * data.progress)} % is done. It comes by itself.`}</Empty>
      )}
      {data?.ready && !data.counts && (
        <Empty>{data.kept_from ? `Nothing is known of then: the journal is kept from ${exactly(data.kept_from)} on.` : 'There is no journal yet.'}</Empty>
      )}
      {data?.counts && (
        <>
          {issue && (data.issue ? <Stood issue={data.issue} /> : <Empty>{`${issue} was not known then.`}</Empty>)}
          <div className="two">
            <Section name="waiting" title={ <>Waiting for you <span className="badge">{data.waiting.length}</span></> }>
              {data.waiting.length ? <ol className="cards">{data.waiting.map(one => <li key={one.issue}><Stood issue={one} /></li>)}</ol> : <Empty>Nothing was waiting for you.</Empty>}
            </Section>
            <Section name="running" title="Was running">
              {data.running.length ? (
                <Table
                  heads={['Issue', 'Run', 'Since']}
                  rows={data.running.map(one => [
                    one.issue,
                    <><Link data-step href={to.issue(one.issue)}>{one.issue}</Link> <span className="quiet">{one.title}</span></>,
                    <span className="short" title={one.reason}>{one.run ? <Link href={to.run(one.run)}>{short(one.run)}</Link> : (one.phase ?? one.reason)}</span>,
                    <When at={one.since} />,
                  ])}
                />
              ) : <Empty>Nothing was running.</Empty>}
            </Section>
          </div>
          {wide ? <Suspense fallback={<div className="graph" />}><PolicyGraph title="Policy" policies={data.policies} /></Suspense> : data.policies.filter(({ phases }) => phases.some(one => one.issues)).map(one => <PhaseList key={one.policy} title={`Policy ${one.policy}`} policy={one} />)}
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
      <Facts of={[issue.question?.phase ?? issue.phase, issue.since && <>since <When at={issue.since} /></>, issue.due && <>until <When at={issue.due} /></>, `P${issue.priority}`, issue.run]} />
      {issue.state === 'person' && <Findings found={evidence(issue)} />}
    </div>
  </div>
)
