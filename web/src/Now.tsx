import { useMutation, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useState } from 'react'
import { Link } from 'wouter'
import { api, asks, got, type Running as AtWork, told, type Waiting as Asking } from './api'
import { Card, type Shown } from './Card'
import { Chips, PhaseList } from './Counts'
import { count, figure, short, span, to } from './look'
import { Ago, Empty, H1, Loading, Section, Table, Trouble, useNarrow, useNow, useWide } from './parts'

const PolicyGraph = lazy(() => import('./PolicyGraph'))
const Back = lazy(() => import('./Then').then(({ Back }) => ({ default: Back })))
const Then = lazy(() => import('./Then').then(({ Then }) => ({ default: Then })))

/** Now; or with a moment in the address, how it stood then, and nothing of the present. */
export function Now() {
  const [search, set] = useNarrow()
  const [at, issue] = [search.get('at'), search.get('issue')]
  const { data } = useQuery(asks.now())
  return (
    <>
      <H1 title={at ? 'As it stood' : data?.waiting.length ? `(${data.waiting.length}) Now` : 'Now'}>{at ? 'As it stood' : 'Now'}</H1>
      <Suspense fallback={<div className="back" />}><Back at={at} issue={issue} choose={at => set('at', at)} /></Suspense>
      {at ? <Suspense fallback={<Loading />}><Then at={at} issue={issue} /></Suspense> : <Present />}
    </>
  )
}

function Present() {
  const asked = useQuery(asks.now())
  const { data } = asked
  const wide = useWide()
  return (
    <>
      <Trouble of={asked} />
      {data ? (
        <>
          <Chips counts={data.counts} />
          <div className="two">
            <Waiting waiting={data.waiting} running={data.running.length} />
            <div>
              {wide && (
                <Suspense fallback={ <Section name="policy" title="Policy"><div className="graph" /></Section> }>
                  <PolicyGraph policies={data.policies} />
                </Suspense>
              )}
              <Running running={data.running} daemon={data.daemon.running} paused={data.daemon.pauses.some(pause => pause.provider === null)} />
              {!wide && <Phases policies={data.policies} />}
            </div>
          </div>
        </>
      ) : asked.isPending && <Loading />}
    </>
  )
}

// --- what waits -------------------------------------------------------------------------------------------------

/** Cards stay where they are while one has the focus, and one that was answered elsewhere stays until it is dismissed. */
function merged(before: Shown[], waiting: Asking[], still: boolean): Shown[] {
  const known = new Map(waiting.map(issue => [issue.issue, issue]))
  const kept = before.map(({ issue }) => ({ issue: known.get(issue.issue) ?? issue, gone: !known.has(issue.issue) }))
  const there = new Set(before.map(({ issue }) => issue.issue))
  if (still) return [...kept, ...waiting.filter(one => !there.has(one.issue)).map(issue => ({ issue, gone: false }))]
  const cards = waiting.map(issue => ({ issue, gone: false }))
  kept.forEach((card, place) => card.gone && cards.splice(place, 0, card))
  return cards
}

const inCards = () => document.activeElement?.closest('.cards') != null

function useCards(waiting: Asking[]): [Shown[], (which: (card: Shown) => boolean) => void] {
  const [cards, set] = useState<Shown[]>(() => merged([], waiting, false))
  useEffect(() => set(before => merged(before, waiting, inCards())), [waiting])
  return [cards, which => set(before => before.filter(card => !which(card)))]
}

function Waiting({ waiting, running }: { waiting: Asking[]; running: number }) {
  const [cards, dismiss] = useCards(waiting)
  const gone = cards.filter(card => card.gone).length
  return (
    <Section name="waiting" title={ <>Waits for you <span className="badge">{waiting.length}</span></> }>
      {gone > 1 && <button onClick={() => dismiss(card => card.gone)}>Dismiss the {gone} that were answered</button>}
      {cards.length ? (
        <ol className="cards">
          {cards.map(card => (
            <Card key={card.issue.issue} {...card} dismiss={() => dismiss(({ issue }) => issue.issue === card.issue.issue)} />
          ))}
        </ol>
      ) : (
        <Empty>{`Nothing waits for you; ${count(running, 'run is', 'runs are')} under way. What a policy, an agent or delicate work asks of a person stands here.`}</Empty>
      )}
    </Section>
  )
}

// --- what runs --------------------------------------------------------------------------------------------------

function Running({ running, daemon, paused }: { running: AtWork[]; daemon: boolean; paused: boolean }) {
  return (
    <Section name="running" title="Running">
      {running.length ? (
        <Table
          className="running"
          heads={['Issue', 'Run', 'For', 'Last sign', 'Tokens', 'Cancel']}
          rows={running.map(({ issue, title, phase, since, reason, at_work: run }) => [
            issue,
            <><Link data-step href={to.issue(issue)}>{issue}</Link> <span className="quiet">{title}</span></>,
            run ? <><Link href={to.run(run.run)}>{short(run.run)}</Link> <span className="quiet">{run.agent}</span></> : <span title={reason}>{phase ?? reason}</span>,
            run?.started_at && run.deadline ? <Limit from={run.started_at} until={run.deadline} /> : <Ago at={run?.started_at ?? since} />,
            run?.last && <><span className="small">last sign </span><Ago at={run.last} /> ago</>,
            run && <>{figure(run.tokens)}<span className="small"> tokens</span></>,
            daemon && <Cancel issue={issue} />,
          ])}
        />
      ) : (
        <Empty>{daemon ? 'No run is under way.' : 'No run is under way, for the daemon is not running; `ashep work` starts it.'}</Empty>
      )}
      {daemon && !paused && <Pause />}
    </Section>
  )
}

/** For how long a run goes on, of the time that it may take. */
function Limit({ from, until }: { from: string; until: string }) {
  const [now, begun, end] = [useNow(), Date.parse(from), Date.parse(until)]
  const said = `${span(now - begun)} of ${span(end - begun)}`
  return <span className="limit">{said}<meter aria-label={`time: ${said}`} max={end - begun} value={Math.max(0, now - begun)} /></span>
}

function Cancel({ issue }: { issue: string }) {
  const [sure, ask] = useState(false)
  const cancel = useMutation({ mutationFn: () => got(api.POST('/api/v1/cancel', { body: { target: issue } })), onSettled: () => ask(false) })
  if (cancel.data || cancel.error) return <span role="status">{cancel.error ? told(cancel.error) : 'cancelled and parked'}</span>
  if (!sure) return <button aria-label={`Cancel ${issue}`} onClick={() => ask(true)}>Cancel</button>
  return (
    <span className="sure">
      Stop its run and park it?
      <button disabled={cancel.isPending} onClick={() => cancel.mutate()}>Cancel {issue}</button>
      <button disabled={cancel.isPending} onClick={() => ask(false)}>No</button>
    </span>
  )
}

function Pause() {
  const pause = useMutation({ mutationFn: (minutes: number) => got(api.POST('/api/v1/pause', { body: { minutes } })) })
  return (
    <div className="acts">
      <button onClick={() => pause.mutate(60)} disabled={pause.isPending}>Pause for an hour</button>
      <span role="status">{pause.isError ? told(pause.error) : pause.data?.said}</span>
    </div>
  )
}

// --- a policy without its graph ---------------------------------------------------------------------------------

function Phases({ policies }: { policies: string[] }) {
  return policies.map(policy => <PhasesOf key={policy} policy={policy} />)
}

function PhasesOf({ policy }: { policy: string }) {
  const { data } = useQuery(asks.policy(policy))
  return data ? <PhaseList policy={data} /> : null
}
