import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import type { Policy, State } from './api'
import Flow, { type Arrow, type Box } from './Flow'
import { type Look, STATES, to } from './look'
import { Section, Table, useLooks } from './parts'
import { policyGraph as texts, shared } from './strings'
import { figure } from './wording'

const SIZE = { width: 146, height: 72 }
const STEP = { x: 226, y: 96 }
const FAILURES = new Set(['failed', 'partial', 'timed out', 'stalled'])
const ENDS: Record<string, { as: State; state?: State }> = {
  close: { as: 'closed', state: 'closed' },
  park: { as: 'parked', state: 'parked' },
  ask: { as: 'person' },
}

type Bundle = { source: string; target: string; kind: string; moves: string[]; findings: string[]; taken: number }

/** All moves of a kind that lead from one box to another, together. */
function bundles(edges: Policy['edges']): Bundle[] {
  const found = new Map<string, Bundle>()
  for (const { source, target, kind, move, findings, taken } of edges) {
    const key = [source, target, kind].join('\n')
    const one = found.get(key) ?? { source, target, kind, moves: [], findings: [], taken: 0 }
    one.moves.push(move)
    one.findings.push(...findings)
    one.taken += taken ?? 0
    found.set(key, one)
  }
  return [...found.values()]
}

const named = (moves: string[]) =>
  moves.length === FAILURES.size && moves.every(move => FAILURES.has(move)) ? texts.anyFailure : moves.join(', ').replaceAll('_', ' ')

type Say = (state: State) => Look
const inStates = (states: Policy['phases'][number]['states'], say: (state: State) => string) =>
  (Object.keys(STATES) as State[]).flatMap(state => (states?.[state] ? [`${say(state)} ${figure(states[state])}`] : []))

/** Phases on a line in the policy's order, ends in the last column; what leads back is an arc above, failures go below. */
function placed({ policy, phases, edges }: Policy, linked: boolean, look: Say): [Box[], Arrow[]] {
  const steps = phases.filter(one => one.kind !== 'end')
  const ends = phases.filter(one => one.kind === 'end')
  const column = new Map(phases.map(one => [one.name, one.kind === 'end' ? steps.length : steps.indexOf(one)]))
  const lane = new Map(ends.map((one, place) => [one.name, place]))
  const boxes = phases.map(({ name, kind, issues, states, capabilities, findings }): Box => {
    const end = ENDS[name]
    const as = kind === 'end' ? (end?.as ?? 'closed') : kind === 'human' ? 'person' : issues ? 'running' : 'not_eligible'
    const needs = capabilities.filter(one => one !== name).join(', ')
    return {
      id: name,
      x: (column.get(name) ?? 0) * STEP.x,
      y: (lane.get(name) ?? 0) * STEP.y,
      title: name,
      lines: [issues === null ? '' : issues ? inStates(states, state => look(state).sign).join(' · ') : texts.none, findings.length ? `✕ ${findings.join(', ')}` : needs].filter(Boolean),
      said: [issues === null ? '' : texts.issues(issues), ...inStates(states, state => look(state).word), ...findings, needs].filter(Boolean).join(', '),
      sign: '',
      as,
      shape: kind === 'agent' ? undefined : kind,
      bad: findings.length > 0,
      href: !linked ? undefined : kind !== 'end' ? to.issues({ policy, phase: name }) : end?.state && to.issues({ policy, state: end.state }),
    }
  })
  const arrows = bundles(edges).map(({ source, target, kind, moves, findings, taken }, place): Arrow => {
    const [from = 0, into = 0] = [column.get(source), column.get(target)]
    const way = into <= from ? 'over' : into === from + 1 && kind !== 'failure' && !lane.get(target) ? 'on' : lane.get(target) ? 'under' : 'over'
    return {
      id: `${place}`,
      source,
      target,
      label: `${findings.length ? '✕ ' : ''}${named(moves)}${taken ? ` ×${figure(taken)}` : ''}`,
      way,
      rise: 34 + 26 * Math.abs(into - from),
      dashed: kind === 'failure' || kind === 'deadline',
      bad: findings.length > 0,
    }
  })
  return [boxes, arrows]
}

/** Room above its boxes, for arcs, and how high it is in its own size. */
function measured([boxes, arrows]: [Box[], Arrow[]]) {
  const above = Math.max(24, ...arrows.map(({ way, rise = 0 }) => (way === 'over' ? 0.75 * rise + 24 : 0)))
  return { above, height: Math.max(...boxes.map(({ y }) => y)) + SIZE.height + above + 24 }
}

/** Policies, the one with the most issues first; `linked`: as they are now, else nothing leads to the present. */
export default function PolicyGraph({ title, policies, linked = false }: { title: string; policies: Policy[]; linked?: boolean }) {
  const [chosen, choose] = useState<string | null>(null)
  const many = (policy: Policy) => policy.phases.reduce((sum, one) => sum + (one.issues ?? 0), 0)
  const busiest = policies.toSorted((a, b) => many(b) - many(a))[0]
  const policy = policies.find(one => one.policy === chosen) ?? busiest
  const { issue: look } = useLooks()
  const interrupted = linked && look('running').word
  const graph = useMemo(() => (policy ? placed(policy, linked, linked ? look : state => ({ as: state, ...STATES[state] })) : null), [policy, linked, interrupted])
  return (
    <Section name="policy" title={title}>
      {policies.length > 1 && (
        <select aria-label={texts.choose} value={policy?.policy} onChange={event => choose(event.target.value)}>
          {policies.map(one => <option key={one.policy} value={one.policy}>{texts.option(one.policy, many(one))}</option>)}
        </select>
      )}
      {graph && policy ? <Flow key={policy.policy} name={shared.policy(policy.policy)} boxes={graph[0]} arrows={graph[1]} size={SIZE} {...measured(graph)} /> : <div className="graph" />}
      {policy?.findings.map(({ code, severity, phase, message }) => (
        <p key={code + phase + message} className={severity === 'error' ? 'line bad' : 'line'}>
          {severity} {code}: {phase && <><Link href={to.issues({ policy: policy.policy, phase })}>{phase}</Link>: </>}
          {message}
        </p>
      ))}
      {policy && <AsTable policy={policy} linked={linked} />}
    </Section>
  )
}

function AsTable({ policy: { policy, phases, edges }, linked }: { policy: Policy; linked: boolean }) {
  return (
    <details open={linked}>
      <summary>{texts.asTable}</summary>
      <Table
        heads={texts.heads}
        rows={phases.map(({ name, kind, issues }) => [
          name,
          kind === 'end' || !linked ? name : <Link href={to.issues({ policy, phase: name })}>{name}</Link>,
          issues,
          bundles(edges.filter(edge => edge.source === name)).map(one => `${named(one.moves)} → ${one.target}${one.taken ? texts.taken(one.taken) : ''}`).join('; '),
        ])}
      />
    </details>
  )
}
