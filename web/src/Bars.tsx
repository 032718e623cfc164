import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { components } from './api-types'
import { bars as texts, shared } from './strings'
import { figure, money } from './wording'

type Row = components['schemas']['DayRow']

const COLOURS = ['running', 'person', 'closed', 'parked', 'time']
const DAY = 86_400_000
const MOST = 400
const HEIGHT = 220
const iso = (at: number) => new Date(at).toISOString().slice(0, 10)
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** What was used: by day, and in it by name; names that used least are one. */
function stacked(rows: Row[], of: 'cost' | 'tokens') {
  const sums = new Map<string, number>()
  for (const row of rows) sums.set(row.name ?? shared.unknown, (sums.get(row.name ?? shared.unknown) ?? 0) + row[of])
  const order = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name)
  const names = order.length > COLOURS.length + 1 ? [...order.slice(0, COLOURS.length), texts.others] : order
  const last = Date.parse(rows.at(-1)!.day)
  const first = Math.max(Date.parse(rows[0]!.day), last - MOST * DAY)
  const days = Array.from({ length: Math.round((last - first) / DAY) + 1 }, (_, at) => iso(first + at * DAY))
  const at = new Map(days.map((day, place) => [day, place]))
  const parts = names.map(() => days.map(() => 0))
  for (const row of rows) {
    const place = at.get(row.day)
    const name = names.indexOf(row.name ?? shared.unknown)
    if (place !== undefined) parts[name < 0 ? names.length - 1 : name]![place]! += row[of]
  }
  return { names, days, parts }
}

/** A colour of the style sheet as a canvas takes it, which knows no variables. */
function resolved(box: HTMLElement, name: string) {
  box.style.color = `var(--${name})`
  const { color } = getComputedStyle(box)
  box.style.color = ''
  return color
}

const SHINES = matchMedia('(prefers-color-scheme: dark)')

/** Stacked bars by day. What they show stands in the table, too. */
export default function Bars({ rows }: { rows: Row[] }) {
  const box = useRef<HTMLDivElement>(null)
  const [shine, again] = useState(0)
  const [over, look] = useState<number | null>(null)
  const of = rows.some(row => row.cost > 0) ? 'cost' : 'tokens'
  const { names, days, parts } = stacked(rows, of)
  const say = of === 'cost' ? money : figure
  const key = JSON.stringify([names, days, parts, of])
  useEffect(() => {
    const tell = () => again(count => count + 1)
    const scheme = new MutationObserver(tell)
    scheme.observe(document.documentElement, { attributeFilter: ['data-scheme'] })
    SHINES.addEventListener('change', tell)
    return () => {
      scheme.disconnect()
      SHINES.removeEventListener('change', tell)
    }
  }, [])
  useEffect(() => {
    const at = box.current!
    const [ink, line] = [resolved(at, 'ink'), resolved(at, 'line')]
    const sums = parts.map((_, last) => days.map((_, day) => parts.slice(0, last + 1).reduce((sum, part) => sum + part[day]!, 0)))
    const bars = uPlot.paths.bars!({ size: [0.8, 48] })
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: '13px system-ui' }
    const plot = new uPlot(
      {
        width: at.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: { x: { time: false, range: [-0.6, Math.max(days.length, 7) - 0.4] }, y: { range: (_, __, most) => [0, most * 1.05 || 1] } },
        axes: [
          { ...axis, grid: { show: false }, space: 70, incrs: [1, 2, 7, 14, 28, 56, 112], values: (_, at) => at.map(one => (days[one] ? day.format(new Date(days[one])) : '')) },
          { ...axis, size: 70, values: (_, at) => at.map(one => `${of === 'cost' ? '$' : ''}${figure(one)}`) },
        ],
        series: [{}, ...names.map((_, name) => { const colour = resolved(at, COLOURS[name] ?? 'not_eligible'); return { fill: colour, stroke: colour, width: 0, paths: bars, points: { show: false } } }).reverse()],
        hooks: { setCursor: [({ cursor: { idx } }) => look(idx ?? null)] },
      },
      [days.map((_, place) => place), ...sums.reverse()],
      at,
    )
    const size = new ResizeObserver(() => plot.setSize({ width: at.clientWidth, height: HEIGHT }))
    size.observe(at)
    return () => {
      size.disconnect()
      plot.destroy()
    }
  }, [key, shine])
  const place = over !== null && days[over] ? over : days.length - 1
  return (
    <figure className="bars">
      <figcaption>
        {texts.byDay(of, <time dateTime={days[place]}>{day.format(new Date(days[place]!))}</time>)}
        <ul>
          {names.map((name, at) => (
            <li key={name} className={`s-${COLOURS[at] ?? 'not_eligible'}`}><i aria-hidden /> {name} {say(parts[at]![place]!) || '–'}</li>
          ))}
        </ul>
      </figcaption>
      <div ref={box} role="img" aria-label={texts.name} />
    </figure>
  )
}
