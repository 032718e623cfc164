import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Policy, State } from './api'
import { STATES, to } from './look'
import { Section } from './parts'

export function Chips({ counts, linked = true }: { counts: Partial<Record<State, number>>; linked?: boolean }) {
  return (
    <ul className="chips" aria-label="Issues by state">
      {(Object.keys(STATES) as State[]).map(state => (
        <li key={state} className={`s-${state}`}>
          <Maybe href={linked && to.issues({ state })}>
            <i aria-hidden>{STATES[state].sign}</i> <b>{counts[state] ?? 0}</b> {STATES[state].word}
          </Maybe>
        </li>
      ))}
    </ul>
  )
}

/** A policy without its graph. */
export function PhaseList({ policy: { policy, phases }, linked = true }: { policy: Policy; linked?: boolean }) {
  if (!phases.some(one => one.issues)) return null
  return (
    <Section name={`policy-${policy}`} title={`Policy ${policy}`}>
      <ol className="phases">
        {phases
          .filter(one => one.issues !== null)
          .map(({ name, kind, issues }) => (
            <li key={name}>
              <Maybe href={linked && kind !== 'end' && to.issues({ policy, phase: name })}>{name}</Maybe> <b>{issues}</b>
            </li>
          ))}
      </ol>
    </Section>
  )
}

const Maybe = ({ href, children }: { href: string | false; children: ReactNode }) =>
  href ? <Link href={href}>{children}</Link> : <span>{children}</span>
