import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Policy, Running, State } from './api'
import { INTERRUPTED, STATES, to } from './look'
import { Section } from './parts'
import { counts as texts } from './strings'
import { figure } from './wording'

const LANDS = new Set(['finishing', 'landing', 'landing_verify'])
const CHECKS = new Set(['verify', 'landing_verify'])

/** What an issue that goes on is at: an agent works, its work is verified, it lands, or the daemon is away in its midst. */
const doing = ({ code, at_work }: Pick<Running, 'code' | 'at_work'>, runs: boolean) =>
  !runs ? INTERRUPTED.word : LANDS.has(code) ? texts.landing : CHECKS.has(code) ? texts.verifying : at_work ? texts.running : texts.underWay

type Many = Partial<Record<State, number>>

/** How many issues stand how, those that there are: one quiet line. */
export function Counts({ counts, running, runs = true, linked = true }: { counts: Many; running?: Running[]; runs?: boolean; linked?: boolean }) {
  const lines = (Object.keys(STATES) as State[]).flatMap(state => {
    const { sign } = state === 'running' && !runs ? INTERRUPTED : STATES[state]
    if (state !== 'running' || !running) return [{ state, sign, word: STATES[state].word, many: counts[state] ?? 0 }]
    const words = running.map(one => doing(one, runs))
    return [...new Set(words)].map(word => ({ state, sign, word, many: words.filter(one => one === word).length }))
  })
  return (
    <ul className="counts" aria-label={texts.states}>
      {lines.filter(({ many }) => many).map(({ state, sign, word, many }) => (
        <li key={word} className={`s-${state}`}>
          <Maybe href={linked && to.issues({ state })}><i aria-hidden>{sign}</i> <b>{figure(many)}</b> {word}</Maybe>
        </li>
      ))}
    </ul>
  )
}

/** A policy without its graph. */
export function PhaseList({ title, policy: { policy, phases }, linked = false }: { title: string; policy: Policy; linked?: boolean }) {
  return (
    <Section name={`policy-${policy}`} title={title}>
      <ol className="phases">
        {phases
          .filter(one => one.issues !== null)
          .map(({ name, kind, issues }) => (
            <li key={name}>
              <Maybe href={linked && kind !== 'end' && to.issues({ policy, phase: name })}>{name}</Maybe> <b>{figure(issues ?? 0)}</b>
            </li>
          ))}
      </ol>
    </Section>
  )
}

const Maybe = ({ href, children }: { href: string | false; children: ReactNode }) =>
  href ? <Link href={href}>{children}</Link> : <span>{children}</span>
