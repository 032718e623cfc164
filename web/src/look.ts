import type { Issue, RunRecord, State } from './api'
import { times } from './settings'

/** States as people see them: a word, a sign, and a colour (`s-…` of page.css), never a colour alone. */
export const STATES: Record<State, { word: string; sign: string }> = {
  person: { word: 'waiting for you', sign: '?' },
  running: { word: 'running', sign: '▶' },
  time: { word: 'scheduled', sign: '◷' },
  parked: { word: 'parked', sign: '■' },
  not_eligible: { word: 'not picked up', sign: '–' },
  closed: { word: 'closed', sign: '✓' },
}

export type Look = { word: string; sign: string; as: State }
/** What was under way when the daemon ended. */
export const INTERRUPTED = { word: 'interrupted', sign: '▷' }
export const RUNS: Record<RunRecord['state'], Look> = {
  planned: { word: 'planned', sign: '◷', as: 'time' },
  running: { word: 'running', sign: '▶', as: 'running' },
  succeeded: { word: 'succeeded', sign: '✓', as: 'closed' },
  failed: { word: 'failed', sign: '✕', as: 'parked' },
  timed_out: { word: 'timed out', sign: '⊘', as: 'parked' },
  stalled: { word: 'stalled', sign: '⊘', as: 'parked' },
  aborted: { word: 'aborted', sign: '✕', as: 'parked' },
  lost: { word: 'lost', sign: '✕', as: 'parked' },
  withdrawn: { word: 'withdrawn', sign: '–', as: 'not_eligible' },
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
  ['/', 'Now', 'n'],
  ['/issues', 'Issues', 'i'],
  ['/runs', 'Runs', 'r'],
  ['/report', 'Report', 'p'],
  ['/usage', 'Usage', 'u'],
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

// --- times and numbers ------------------------------------------------------------------------------------------

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function span(length: number): string {
  const ms = Math.max(0, length)
  if (ms < MINUTE) return `${Math.floor(ms / 1000)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  const [large, small, unit, part] = ms < DAY ? [HOUR, MINUTE, 'h', 'min'] : [DAY, HOUR, 'd', 'h']
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)} ${unit}${rest ? ` ${rest} ${part}` : ''}`
}

/** A length of time as JSON has it (PT1H30M). */
export function lasting(iso: string): string {
  const [, days, hours, minutes, seconds] = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(iso) ?? []
  const ms = Number(days ?? 0) * DAY + Number(hours ?? 0) * HOUR + Number(minutes ?? 0) * MINUTE + Number(seconds ?? 0) * 1000
  return ms ? span(ms) : iso
}

const formats = (timeZone?: string) => {
  const made = (how: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat('en-GB', { ...how, timeZone })
  return {
    clock: made({ hour: '2-digit', minute: '2-digit' }),
    day: made({ day: 'numeric', month: 'short' }),
    date: made({ day: 'numeric', month: 'short', year: 'numeric' }),
    full: made({ dateStyle: 'full', timeStyle: 'long' }),
  }
}
const zones = { here: formats(), utc: formats('UTC') }
const zone = () => (times.get() === 'utc' ? zones.utc : zones.here)

/** A moment in short: without its day where that is today, without its year where that is this one. */
export function when(at: string | number | Date, withClock = true): string {
  const { clock, day, date } = zone()
  const [then, now] = [new Date(at), new Date()]
  const on = date.format(then).slice(-4) === date.format(now).slice(-4) ? day.format(then) : date.format(then)
  if (!withClock) return on
  const time = `${clock.format(then)}${times.get() === 'utc' ? ' UTC' : ''}`
  return date.format(then) === date.format(now) ? time : `${on}, ${time}`
}
export const exactly = (at: string | number) => zone().full.format(new Date(at))

/** How far a moment is from now, either way. */
export const distance = (at: string, now: number) => (Date.parse(at) > now ? `in ${span(Date.parse(at) - now)}` : `${span(now - Date.parse(at))} ago`)

/** `until`: how far it goes that has not ended; NaN: nobody knows. */
export function took({ started_at, ended_at }: RunRecord, until: number): string {
  const length = (ended_at ? Date.parse(ended_at) : until) - Date.parse(started_at ?? '')
  return Number.isNaN(length) ? '' : span(length)
}

const number = new Intl.NumberFormat('en-GB')
export const count = (many: number, one: string, more = `${one}s`) => `${number.format(many)} ${many === 1 ? one : more}`
export const figure = (value: number) => number.format(value)
const cents = new Intl.NumberFormat('en-GB', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
/** Dollars; nothing where nobody knows the cost. */
export const money = (cost: number) => (cost <= 0 ? '' : cost < 0.01 ? '<$0.01' : `$${cents.format(cost)}`)

// --- evidence ---------------------------------------------------------------------------------------------------

export type Finding = { text: string; as: State }

function touched({ files, added, removed }: NonNullable<Issue['changes']>): string {
  const lines = added === null || removed === null ? '' : `+${number.format(added)} −${number.format(removed)} in `
  return `± ${lines}${count(files, 'file')}`
}

/** What a person should know of an issue's work before answering, the worst first. */
export function evidence({ verification, flags, changes }: Issue): Finding[] {
  const found: Finding[] = flags.map(flag => ({ text: `! touches ${flag}`, as: 'person' }))
  const more: Finding[] = changes ? [{ text: touched(changes), as: 'not_eligible' }] : []
  if (!verification) return [...found, { text: '– nothing was verified', as: 'not_eligible' }, ...more]
  const { summary, green_before: before, on_base: blameless, changed, waived } = verification
  if (summary.failed) found.push({ text: `✕ ${summary.failed} of ${count(summary.total, 'check')} failed`, as: 'parked' })
  for (const words of blameless) found.push({ text: `! ${words}`, as: 'person' })
  if (changed === false) found.push({ text: '! the work changes nothing', as: 'person' })
  if (before) found.push({ text: `! ${before} passed before any work, too: ${before === 1 ? 'it proves' : 'they prove'} nothing`, as: 'person' })
  if (waived.length) found.push({ text: `! a person let pass: ${waived.join(', ')}`, as: 'person' })
  if (summary.passed) found.push({ text: `✓ ${summary.passed < summary.total ? `${figure(summary.passed)} of ` : ''}${count(summary.total, 'check')} passed`, as: 'closed' })
  if (summary.skipped) found.push({ text: `– ${summary.skipped} left out`, as: 'not_eligible' })
  if (!summary.total) found.push({ text: `– ${verification.status}: there are no checks`, as: 'not_eligible' })
  return [...found, ...more]
}
