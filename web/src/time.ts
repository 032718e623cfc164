import type { TimelineData } from './api'
import { RUNS } from './look'

/** Times are seconds since the timeline's epoch; places are seconds, too, with idle time folded. */
export type Gap = { from: number; to: number; since: number; until: number }
export type Drawn = {
  data: TimelineData
  /** Runs that are shown, by the time at which they were planned; the columns below are in this order. */
  runs: number[]
  row: Int32Array
  rows: number
  /** Places: when it began to wait, was planned, began, ended, and was verified. */
  held: Float64Array
  from: Float64Array
  begin: Float64Array
  end: Float64Array
  to: Float64Array
  failed: Uint8Array
  gaps: Gap[]
  length: number
  now: number
  place: (time: number) => number
  time: (place: number) => number
}

const FOLDED = 3600 // seconds of nothing that are folded
const LEFT = 1200 // of them, as places
const HEADROOM = 60
export const DAY = 86_400

export const look = (data: TimelineData, run: number) => RUNS[data.states[data.state[run]!] as keyof typeof RUNS] ?? RUNS.lost
export const goesOn = (data: TimelineData, run: number) => look(data, run).as === 'running' || look(data, run).as === 'time'

/** The first row that is free, for each of these spans in order of their beginning. */
function packed(from: ArrayLike<number>, to: ArrayLike<number>): [Int32Array, number] {
  const rows: number[] = []
  const places = new Int32Array(from.length)
  for (let i = 0; i < from.length; i++) {
    const free = rows.findIndex(end => end <= from[i]!)
    places[i] = free < 0 ? rows.length : free
    rows[places[i]!] = to[i]!
  }
  return [places, rows.length]
}

/** Piecewise linear, both ways. */
function between(known: number[], other: number[]) {
  return (value: number) => {
    let [low, high] = [0, known.length - 1]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if (known[middle]! <= value) low = middle
      else high = middle
    }
    const [a, b] = [known[low]!, known[high]!]
    return other[low]! + (b > a ? ((value - a) / (b - a)) * (other[high]! - other[low]!) : 0)
  }
}

export function laid(data: TimelineData, keep: (run: number) => boolean, byIssue: boolean, fold: boolean, at: number, later: number): Drawn {
  const from = (run: number) => data.begin[run]! - data.starting[run]!
  const end = (run: number) => data.begin[run]! + data.length[run]! + (goesOn(data, run) ? later : 0)
  const to = (run: number) => Math.max(from(run) + 1, end(run) + data.verified[run]!)
  const runs = data.run.map((_, run) => run).filter(keep).sort((a, b) => from(a) - from(b))
  const now = at - data.epoch
  const first = runs.length ? from(runs[0]!) : now
  const idle: [number, number][] = []
  let reach = first
  for (const run of runs) {
    if (from(run) - reach > FOLDED) idle.push([reach, from(run)])
    reach = Math.max(reach, to(run))
  }
  if (now - reach > FOLDED) idle.push([reach, now])
  const last = Math.max(reach, now) + HEADROOM
  const [times, places] = [[first - HEADROOM], [0]]
  const gaps: Gap[] = []
  const go = (time: number, by: number) => (times.push(time), places.push(places.at(-1)! + by))
  for (const [since, until] of idle) {
    go(since, since - times.at(-1)!)
    go(until, fold ? LEFT : until - since)
    gaps.push({ from: places.at(-2)!, to: places.at(-1)!, since, until })
  }
  go(last, last - times.at(-1)!)
  const place = between(times, places)
  const column = (of: (run: number) => number) => Float64Array.from(runs, run => place(of(run)))
  const [starts, ends] = [runs.map(from), runs.map(to)]
  let [row, rows] = packed(starts, ends)
  const waits = Float64Array.from(starts) // since when; of an issue's first run its row does not show it
  if (byIssue) {
    const spans = new Map<number, [number, number]>()
    runs.forEach((run, i) => {
      const span = spans.get(data.issue[run]!)
      if (span) [waits[i], span[1]] = [Math.min(starts[i]!, Math.max(span[1], starts[i]! - data.held[run]!)), Math.max(span[1], ends[i]!)]
      else spans.set(data.issue[run]!, [starts[i]!, ends[i]!])
    })
    const [of, many] = packed([...spans.values()].map(one => one[0]), [...spans.values()].map(one => one[1]))
    const rowOf = new Map([...spans.keys()].map((issue, i) => [issue, of[i]!]))
    ;[row, rows] = [Int32Array.from(runs, run => rowOf.get(data.issue[run]!)!), many]
  }
  return {
    data, runs, row, rows, gaps, now, place, length: places.at(-1)!, time: between(places, times),
    held: waits.map(place), from: column(from), begin: column(run => data.begin[run]!),
    end: column(end), to: column(to), failed: Uint8Array.from(runs, run => +(look(data, run).as === 'parked')),
  }
}

/** The last day in which anything ran, as places. */
export function lastDay({ runs, to, now, place, time, length }: Drawn): [number, number] {
  const reach = to.reduce((most, one) => Math.max(most, one), 0)
  const until = runs.length && now - time(reach) > DAY ? time(reach) + HEADROOM : now + HEADROOM
  return [Math.max(0, place(until - DAY)), Math.min(length, place(until))]
}
