import type { RunRecord } from './api'
import { times } from './settings'
import { span } from './wording'

/** How moments are shown, as a person chose for this browser. */

const formats = (timeZone?: string) => {
  const made = (how: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat('en-GB', { ...how, timeZone })
  return {
    clock: made({ hour: '2-digit', minute: '2-digit', timeZoneName: timeZone ? 'short' : undefined }),
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
  const time = clock.format(then)
  return date.format(then) === date.format(now) ? time : `${on}, ${time}`
}
export const exactly = (at: string | number) => zone().full.format(new Date(at))

/** `until`: how far it goes that has not ended; NaN: nobody knows. */
export function took({ started_at, ended_at }: RunRecord, until: number): string {
  const length = (ended_at ? Date.parse(ended_at) : until) - Date.parse(started_at ?? '')
  return Number.isNaN(length) ? '' : span(length)
}
