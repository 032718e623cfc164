import type { Issue, RunRecord, State } from './api'
import { look as texts } from './strings'
import { figure } from './wording'

/** States as people see them: a word, a sign, and a colour (`s-…` of page.css), never a colour alone. */
export const STATES: Record<State, { word: string; sign: string }> = {
  person: { word: texts.states.person, sign: '?' },
  running: { word: texts.states.running, sign: '▶' },
  time: { word: texts.states.time, sign: '◷' },
  parked: { word: texts.states.parked, sign: '■' },
  not_eligible: { word: texts.states.not_eligible, sign: '–' },
  closed: { word: texts.states.closed, sign: '✓' },
}

export type Look = { word: string; sign: string; as: State }
/** What was under way when the daemon ended. */
export const INTERRUPTED = { word: texts.interrupted, sign: '▷' }
export const RUNS: Record<RunRecord['state'], Look> = {
  planned: { word: texts.runs.planned, sign: '◷', as: 'time' },
  running: { word: texts.runs.running, sign: '▶', as: 'running' },
  succeeded: { word: texts.runs.succeeded, sign: '✓', as: 'closed' },
  failed: { word: texts.runs.failed, sign: '✕', as: 'parked' },
  timed_out: { word: texts.runs.timed_out, sign: '⊘', as: 'parked' },
  stalled: { word: texts.runs.stalled, sign: '⊘', as: 'parked' },
  aborted: { word: texts.runs.aborted, sign: '✕', as: 'parked' },
  lost: { word: texts.runs.lost, sign: '✕', as: 'parked' },
  withdrawn: { word: texts.runs.withdrawn, sign: '–', as: 'not_eligible' },
}

export const CHECKS: Record<string, { sign: string; as: State }> = {
  passed: { sign: '✓', as: 'closed' },
  failed: { sign: '✕', as: 'parked' },
  error: { sign: '✕', as: 'parked' },
  skipped: { sign: '–', as: 'not_eligible' },
}

// --- places -----------------------------------------------------------------------------------------------------

/** The pages, and the key that leads to each behind `g`. */
export const PLACES = [
  ['/', texts.pages.now, 'n'],
  ['/issues', texts.pages.issues, 'i'],
  ['/runs', texts.pages.runs, 'r'],
  ['/report', texts.pages.report, 'p'],
  ['/usage', texts.pages.usage, 'u'],
] as const

export const to = {
  issue: (issue: string, tab = '') => `/issues/${encodeURIComponent(issue)}${tab && `/${tab}`}`,
  run: (run: string) => `/runs/${run.split('/').map(encodeURIComponent).join('/')}`,
  record: (seq: number) => `/records/${seq}`,
  then: (at: string, issue: string | null) => `/?${new URLSearchParams({ at, ...(issue && { issue }) })}`,
  policy: (policy: string) => `/policies/${encodeURIComponent(policy)}`,
  issues: (which: Record<string, string>) => `/issues?${new URLSearchParams(which)}`,
}
export const short = (run: string) => run.slice(run.indexOf('/') + 1)

// --- evidence ---------------------------------------------------------------------------------------------------

export type Finding = { text: string; as: State }

/** What a person should know of an issue's work before answering, the worst first. */
export function evidence({ verification, flags, changes }: Issue): Finding[] {
  const found: Finding[] = flags.map(flag => ({ text: texts.touches(flag), as: 'person' }))
  const more: Finding[] = []
  if (changes) {
    const { files, added, removed } = changes
    more.push({ text: texts.changes(added === null || removed === null ? '' : `+${figure(added)} −${figure(removed)}`, files), as: 'not_eligible' })
  }
  if (!verification) return [...found, { text: texts.unverified, as: 'not_eligible' }, ...more]
  const { summary, green_before: before, on_base: blameless, changed, waived } = verification
  if (summary.failed) found.push({ text: texts.failed(summary.failed, summary.total), as: 'parked' })
  for (const words of blameless) found.push({ text: texts.note(words), as: 'person' })
  if (changed === false) found.push({ text: texts.noChange, as: 'person' })
  if (before) found.push({ text: texts.green(before), as: 'person' })
  if (waived.length) found.push({ text: texts.waived(waived), as: 'person' })
  if (summary.passed) found.push({ text: texts.passed(summary.passed, summary.total), as: 'closed' })
  if (summary.skipped) found.push({ text: texts.skipped(summary.skipped), as: 'not_eligible' })
  if (!summary.total) found.push({ text: texts.noChecks(verification.status), as: 'not_eligible' })
  return [...found, ...more]
}
