import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { asks, type Course as Told } from './api'
import type { Arrow, Box, Bracket } from './Flow'
import { short, to } from './look'
import { took } from './moments'
import { Empty, Facts, Loading, Mark, Trouble, useLooks, useWide, When, Words } from './parts'
import { course as texts, shared } from './strings'
import { money } from './wording'

const Flow = lazy(() => import('./Flow'))
const SIZE = { width: 190, height: 68 }
const STEP = { x: 290, y: 104 }
const LANE = (STEP.y - SIZE.height) / 2
const ROUND = 30 // for the names of rounds, above the lanes

type Step = Omit<Box, 'x' | 'y'> & { phase: string; at: string; order: number; why?: string; visit?: number }

function stepsOf({ runs, asked, delivery, edges }: Told, { run: look, until }: ReturnType<typeof useLooks>): Step[] {
  const why = new Map(edges.map(edge => [edge.source, edge.why]))
  const ofRuns = runs.map((run): Step => {
    const { sign, as, word } = look(run.state)
    return {
      id: run.run,
      order: run.trace,
      at: run.started_at ?? run.planned_at,
      phase: run.phase,
      visit: run.visit,
      title: short(run.run),
      lines: [`${run.agent} · ${run.outcome?.verdict?.replaceAll('_', ' ') ?? word}`, [took(run, until), run.cost > 0 ? money(run.cost) : run.tokens && shared.tokens(run.tokens)].filter(Boolean).join(' · ')],
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
      title: one.answer ? `${one.by}: ${one.answer.replaceAll('_', ' ')}` : texts.asksPerson,
      lines: [one.question, one.answer ? '' : texts.noAnswer].filter(Boolean),
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

/** Steps from one to another, both included, and what they are together. */
type Loop = { from: number; to: number; name: string }
export type Loops = { rounds: Loop[]; tries: Loop[] }

/** Rounds: each begins where work goes back to a phase that it has been in, or where the issue is taken again; one alone
 *  is none. Tries: several runs of one visit of a phase, with what stands between them.
 */
function loopsOf(steps: Step[], edges: Told['edges']): Loops {
  const again = new Set(edges.filter(({ kind }) => kind === 'cycle').map(({ target }) => target))
  const visits = new Map<string, number>()
  const rounds: Loop[] = []
  const tries: (Loop & { of: string; many: number })[] = []
  steps.forEach(({ id, phase, visit }, place) => {
    const before = visits.get(phase)
    if (!place || again.has(id) || (visit && before && visit !== before)) {
      visits.clear()
      rounds.push({ from: place, to: place, name: texts.round(rounds.length + 1, again.has(id)) })
    }
    rounds.at(-1)!.to = place
    if (!visit) return
    const same = tries.find(({ of, from }) => of === `${phase} ${visit}` && from >= rounds.at(-1)!.from)
    if (same) Object.assign(same, { to: place, many: same.many + 1, name: texts.attempts(phase, same.many + 1) })
    else tries.push({ from: place, to: place, of: `${phase} ${visit}`, many: 1, name: '' })
    visits.set(phase, visit)
  })
  return { rounds: rounds.length > 1 ? rounds : [], tries: tries.filter(({ many }) => many > 1) }
}

/** What an issue went through: a column for each step in time, a lane for each phase, so that loops are seen. */
export function Course({ issue, policy }: { issue: string; policy: string | null }) {
  const asked = useQuery(asks.course(issue))
  const rules = useQuery({ ...asks.policy(policy ?? ''), enabled: policy !== null })
  const looks = useLooks()
  const wide = useWide()
  const { data } = asked
  const { word } = looks.run('running')
  const steps = useMemo(() => (data ? stepsOf(data, looks) : []), [data, looks.until, word])
  const loops = useMemo(() => loopsOf(steps, data?.edges ?? []), [steps])
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
        <Empty>{texts.none}</Empty>
      ) : (
        <>
          {wide && <Drawn issue={issue} steps={steps} lanes={lanes} loops={loops} edges={data.edges} />}
          <List steps={steps} lanes={lanes} loops={loops} />
        </>
      )}
    </>
  )
}

type Laid = { steps: Step[]; lanes: string[]; loops: Loops }

function Drawn({ issue, steps, lanes, loops: { rounds, tries }, edges }: Laid & { issue: string; edges: Told['edges'] }) {
  const boxes = useMemo(
    () =>
      steps.map((step, column): Box => {
        const within = [...rounds, ...tries].filter(({ from, to }) => from <= column && column <= to).map(({ name }) => name)
        return { ...step, x: column * STEP.x, y: lanes.indexOf(step.phase) * STEP.y, said: [...step.lines, ...within].join(', ') }
      }),
    [steps, lanes, rounds, tries],
  )
  const above = LANE + 8 + (rounds.length && ROUND)
  const height = lanes.length * STEP.y + 16 + (rounds.length && ROUND)
  const brackets = useMemo(() => {
    const wide = ({ from, to }: Loop, edge: number) => ({ x: from * STEP.x - edge, width: (to - from) * STEP.x + SIZE.width + 2 * edge })
    return [
      ...rounds.map((round): Bracket => ({ name: round.name, kind: 'round', ...wide(round, 12), y: -LANE - ROUND + 4, height: ROUND - 6 })),
      ...tries.map((one): Bracket => ({ name: one.name, kind: 'tries', ...wide(one, 8), y: lanes.indexOf(steps[one.from]!.phase) * STEP.y - 8, height: SIZE.height + 16 })),
    ]
  }, [rounds, tries, lanes])
  const arrows = useMemo(
    () =>
      edges.map(
        ({ source, target, kind, why }, place): Arrow => ({
          id: `${place}`,
          source,
          target,
          label: kind === 'cycle' ? texts.again(why) : why.replaceAll('_', ' '),
          way: 'on',
          dashed: kind === 'retry' || kind === 'cycle',
        }),
      ),
    [edges],
  )
  const titles = useMemo(() => lanes.map((title, place) => ({ title, y: place * STEP.y - LANE, height: STEP.y })), [lanes])
  const [chosen, choose] = useState('')
  const step = steps.find(({ id }) => id === chosen)
  return (
    <>
      <Suspense fallback={<div className="graph" style={{ height }} />}>
        <Flow
          lanes={titles}
          name={texts.name(issue, lanes)}
          boxes={boxes}
          arrows={arrows}
          size={SIZE}
          brackets={brackets}
          toEnd
          above={above}
          height={height}
          chosen={chosen}
          choose={choose}
        />
      </Suspense>
      {step && (
        <div className={`stands s-${step.as}`} role="status">
          <div>
            <Facts of={[<b>{step.title}</b>, ...step.lines, <When at={step.at} />, <Link href={step.href ?? ''}>{texts.open}</Link>]} />
            {step.why && <p><Words text={step.why} /></p>}
          </div>
        </div>
      )}
    </>
  )
}

function List({ steps, lanes, loops: { rounds, tries } }: Laid) {
  const item = (place: number) => {
    const { id, phase, at, title, lines, sign, as, href, why } = steps[place]!
    return (
      <li key={id} data-step data-newest={place === steps.length - 1 || undefined} tabIndex={-1} data-lane={Math.min(lanes.indexOf(phase), 5)}>
        <Mark as={as} sign={sign}><Link href={href ?? ''}>{title}</Link></Mark>{' '}
        <span className="quiet">{phase} · {lines.join(' · ')} · <When at={at} /></span>
        {why && <p>{why}</p>}
      </li>
    )
  }
  const items = (from: number, to: number, loops: Loop[], within: Loop[] = []): ReactNode[] => {
    const found: ReactNode[] = []
    for (let place = from; place <= to; place++) {
      const loop = loops.find(one => one.from === place)
      found.push(
        loop ? (
          <li key={`${loop.name} ${place}`} className="loop">
            <b>{loop.name}</b>
            <ol className="course">{items(place, loop.to, within)}</ol>
          </li>
        ) : item(place),
      )
      place = loop?.to ?? place
    }
    return found
  }
  return <ol className="course">{rounds.length ? items(0, steps.length - 1, rounds, tries) : items(0, steps.length - 1, tries)}</ol>
}
