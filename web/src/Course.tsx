import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { asks, type Course as Told } from './api'
import type { Arrow, Box } from './Flow'
import { count, money, RUNS, short, to, took } from './look'
import { Empty, Facts, Loading, Mark, Trouble, useNow, useWide, When, Words } from './parts'

const Flow = lazy(() => import('./Flow'))
const SIZE = { width: 190, height: 68 }
const STEP = { x: 290, y: 104 }
const LANE = (STEP.y - SIZE.height) / 2
const HIGHEST = 560

type Step = Omit<Box, 'x' | 'y'> & { phase: string; at: string; order: number; why?: string }

function stepsOf({ runs, asked, delivery, edges }: Told, now: number): Step[] {
  const why = new Map(edges.map(edge => [edge.source, edge.why]))
  const ofRuns = runs.map((run): Step => {
    const { sign, as, word } = RUNS[run.state]
    return {
      id: run.run,
      order: run.trace,
      at: run.started_at ?? run.planned_at,
      phase: run.phase,
      title: short(run.run),
      lines: [`${run.agent} · ${run.outcome?.verdict?.replaceAll('_', ' ') ?? word}`, [took(run, now), run.cost > 0 ? money(run.cost) : run.tokens && count(run.tokens, 'token')].filter(Boolean).join(' · ')],
      sign,
      as,
      href: to.run(run.run),
      why: run.outcome?.summary ?? run.error ?? run.why,
    }
  })
  const ofPeople = asked.map(
    (one): Step => ({
      id: `#${one.seq}`,
      order: one.seq,
      at: one.at,
      phase: one.phase,
      title: one.answer ? `${one.by}: ${one.answer.replaceAll('_', ' ')}` : 'asks a person',
      lines: [one.question, one.answer ? '' : 'no answer yet'].filter(Boolean),
      sign: one.answer === 'approved' ? '✓' : '?',
      as: 'person',
      shape: 'human',
      href: to.record(one.seq),
      why: why.get(`#${one.seq}`),
    }),
  )
  const ofDelivery = delivery.map(
    ({ seq, at, phase, passed, result, detail }): Step => ({
      id: `#${seq}`,
      order: seq,
      at,
      phase,
      title: result,
      lines: [detail],
      sign: passed ? '✓' : '✕',
      as: passed ? 'closed' : 'parked',
      shape: 'end',
      href: to.record(seq),
    }),
  )
  return [...ofRuns, ...ofPeople, ...ofDelivery].sort((a, b) => a.order - b.order)
}

/** What an issue went through: a column for each step in time, a lane for each phase, so that loops are seen. */
export function Course({ issue, policy }: { issue: string; policy: string | null }) {
  const asked = useQuery(asks.course(issue))
  const rules = useQuery({ ...asks.policy(policy ?? ''), enabled: policy !== null })
  const now = useNow()
  const wide = useWide()
  const { data } = asked
  const steps = useMemo(() => (data ? stepsOf(data, now) : []), [data, now])
  const lanes = useMemo(() => {
    const known = new Set(steps.map(step => step.phase))
    const order = rules.data?.phases.map(one => one.name).filter(name => known.has(name)) ?? []
    return [...new Set([...order, ...known])]
  }, [steps, rules.data])
  if (!data) return asked.error ? <Trouble of={asked} /> : <Loading />
  return (
    <>
      <Trouble of={asked} />
      {steps.length === 0 ? (
        <Empty>It was not worked on yet: there is no run.</Empty>
      ) : (
        <>
          {wide && <Drawn issue={issue} steps={steps} lanes={lanes} edges={data.edges} />}
          <List steps={steps} lanes={lanes} />
        </>
      )}
    </>
  )
}

type Laid = { steps: Step[]; lanes: string[] }

function Drawn({ issue, steps, lanes, edges }: Laid & { issue: string; edges: Told['edges'] }) {
  const boxes = useMemo(
    () => steps.map((step, column): Box => ({ ...step, x: column * STEP.x, y: lanes.indexOf(step.phase) * STEP.y })),
    [steps, lanes],
  )
  const arrows = useMemo(
    () =>
      edges.map(
        ({ source, target, kind, why }, place): Arrow => ({
          id: `${place}`,
          source,
          target,
          label: kind === 'cycle' ? `${why}, taken again` : why.replaceAll('_', ' '),
          way: 'on',
          dashed: kind === 'retry' || kind === 'cycle',
        }),
      ),
    [edges],
  )
  const titles = useMemo(() => lanes.map((title, place) => ({ title, y: place * STEP.y - LANE, height: STEP.y })), [lanes])
  const [chosen, choose] = useState('')
  const step = steps.find(({ id }) => id === chosen)
  const height = Math.min(lanes.length * STEP.y + 16, HIGHEST)
  return (
    <>
      <Suspense fallback={<div className="graph" style={{ height }} />}>
        <Flow
          lanes={titles}
          name={`Runs of ${issue}, a lane for each phase: ${lanes.join(', ')}`}
          boxes={boxes}
          arrows={arrows}
          size={SIZE}
          toEnd
          height={height}
          chosen={chosen}
          choose={choose}
        />
      </Suspense>
      {step && (
        <div className={`stands s-${step.as}`} role="status">
          <div>
            <Facts of={[<b>{step.title}</b>, ...step.lines, <When at={step.at} />, <Link href={step.href ?? ''}>Open</Link>]} />
            {step.why && <p><Words text={step.why} /></p>}
          </div>
        </div>
      )}
    </>
  )
}

function List({ steps, lanes }: Laid) {
  return (
    <ol className="course">
      {steps.map(({ id, phase, at, title, lines, sign, as, href, why }) => (
        <li key={id} data-step data-newest={id === steps.at(-1)?.id || undefined} tabIndex={-1} data-lane={Math.min(lanes.indexOf(phase), 5)}>
          <Mark as={as} sign={sign}><Link href={href ?? ''}>{title}</Link></Mark>{' '}
          <span className="quiet">{phase} · {lines.join(' · ')} · <When at={at} /></span>
          {why && <p>{why}</p>}
        </li>
      ))}
    </ol>
  )
}
