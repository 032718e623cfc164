import { when } from './moments'
import { timeline as texts } from './strings'
import { DAY, type Drawn, lastDay, look } from './time'
import { span } from './wording'

const AXIS = 22
const [LOW, HIGH] = [14, 56] // pixels of a row
const LEAST = 30 // seconds that can fill the canvas
const STEPS = [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 28 * DAY]
const FONT = '12px system-ui, sans-serif'

export type Pointed = { run: number; x: number; y: number } | null
type Heard = { point: (run: number) => void; open: (name: string) => void; hover: (at: Pointed) => void }
type Surface = { to: CanvasRenderingContext2D; width: number; height: number }

function surface(canvas: HTMLCanvasElement): Surface {
  const [width, height, dots] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio]
  const [wide, high] = [Math.round(width * dots), Math.round(height * dots)]
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high]
  const to = canvas.getContext('2d', { alpha: false })!
  to.setTransform(dots, 0, 0, dots, 0, 0)
  to.font = FONT
  to.textBaseline = 'middle'
  return { to, width, height }
}

/** The canvas of runs, and the brush above it. What is drawn is set from outside; what is seen of it is its own. */
export function chart(canvas: HTMLCanvasElement, brush: HTMLCanvasElement, palette: HTMLElement, heard: Heard) {
  let drawn: Drawn | null = null
  let [left, wide, down] = [0, 0, 0] // places, places, pixels
  let [chosen, over] = [-1, -1] // places in `runs`
  let [asked, seen] = [0, 0]
  let inks: Record<string, string> = {}
  const colours = () => {
    inks = Object.fromEntries([...palette.children].map(one => [(one as HTMLElement).dataset.as!, getComputedStyle(one).color]))
    inks.paper = getComputedStyle(canvas).backgroundColor
    ask()
  }
  const forced = matchMedia('(forced-colors: active)')

  // --- what is seen ---------------------------------------------------------------------------------------------

  const row = () => Math.min(HIGH, Math.max(LOW, (canvas.clientHeight - AXIS) / Math.max(1, drawn?.rows ?? 1)))
  const within = () => {
    const { length, rows } = drawn!
    wide = Math.min(length, Math.max(LEAST, wide))
    left = Math.min(length - wide, Math.max(0, left))
    down = Math.max(0, Math.min(rows * row() - canvas.clientHeight + AXIS, down))
  }
  const ask = () => (asked ||= requestAnimationFrame(draw))
  const at = (x: number) => left + (x / canvas.clientWidth) * wide
  const zoom = (by: number, x = canvas.clientWidth / 2) => {
    const place = at(x)
    wide = Math.min(drawn?.length ?? wide, Math.max(LEAST, wide * by))
    left = place - (x / canvas.clientWidth) * wide
    ask()
  }
  const pan = (x: number, y = 0) => {
    left += (x / canvas.clientWidth) * wide
    down += y
    ask()
  }
  const see = (of: number) => {
    if (!drawn || of < 0) return
    const [from, to, y] = [drawn.from[of]!, drawn.to[of]!, drawn.row[of]! * row()]
    if (from < left || to > left + wide) left = from - 0.3 * wide
    down = Math.max(y + row() - canvas.clientHeight + AXIS, Math.min(y, down))
  }

  // --- drawing --------------------------------------------------------------------------------------------------

  function draw() {
    asked = 0
    if (!drawn || !canvas.clientWidth) return
    within()
    const { to, width, height } = surface(canvas)
    const k = width / wide
    const x = (place: number) => (place - left) * k
    to.fillStyle = inks.paper!
    to.fillRect(0, 0, width, height)
    for (const gap of drawn.gaps) nothing(to, x(gap.from), x(gap.to), height, texts.idle(span(1000 * (gap.until - gap.since))))
    axis(to, width, x)
    to.save()
    to.beginPath()
    to.rect(0, AXIS, width, height - AXIS)
    to.clip()
    for (const failed of [0, 1]) for (let i = 0; i < drawn.runs.length; i++) if (drawn.failed[i] === failed) bar(to, i, x, width, height)
    for (const [i, ink] of [[over, inks.quiet], [chosen, inks.focus]] as const) {
      if (i < 0) continue
      to.strokeStyle = ink!
      to.lineWidth = 2
      to.strokeRect(x(drawn.from[i]!) - 2, AXIS + drawn.row[i]! * row() - down, Math.max(2, x(drawn.to[i]!) - x(drawn.from[i]!)) + 4, row())
    }
    const now = x(drawn.place(drawn.now))
    to.fillStyle = inks.person!
    to.fillRect(now, AXIS, 1, height - AXIS)
    to.restore()
    overview()
    if (!seen++) performance.mark('runs drawn')
  }

  function nothing(to: CanvasRenderingContext2D, from: number, until: number, height: number, text: string) {
    if (until < 0 || from > canvas.clientWidth) return
    to.fillStyle = inks.soft!
    to.fillRect(from, AXIS, Math.max(1, until - from), height - AXIS)
    if (until - from < 14) return
    to.save()
    to.translate((from + until) / 2, (AXIS + height) / 2)
    if (until - from < to.measureText(text).width + 8) to.rotate(-Math.PI / 2)
    to.fillStyle = inks.quiet!
    to.textAlign = 'center'
    to.fillText(text, 0, 0)
    to.restore()
  }

  function bar(to: CanvasRenderingContext2D, i: number, x: (place: number) => number, width: number, height: number) {
    const { held, from, begin, end, to: done, row: rows, failed, data, runs } = drawn!
    const high = row()
    const y = AXIS + rows[i]! * high - down + 2
    if (y > height || y + high < AXIS) return
    const [a, b, c, d, z] = [x(held[i]!), x(from[i]!), x(begin[i]!), x(end[i]!), x(done[i]!)]
    if (z < -2 || a > width) return
    const tall = high - 4
    const { sign, as } = look(data, runs[i]!)
    const ink = inks[as]!
    to.fillStyle = inks.quiet!
    if (b - a >= 1) to.fillRect(Math.max(a, -1), y + tall / 2, b - Math.max(a, -1), 1)
    to.fillStyle = inks.time!
    if (c - b >= 1) to.fillRect(b, y + tall / 4, c - b, tall / 2)
    const long = Math.max(failed[i] ? 2 : 1, d - c)
    to.fillStyle = ink
    if (forced.matches && !failed[i] && long > 4) {
      to.strokeStyle = ink
      to.lineWidth = 1
      to.strokeRect(c + 0.5, y + 0.5, long - 1, tall - 1)
    } else to.fillRect(c, y, long, tall)
    if (z - d >= 1) {
      to.fillRect(d, y, z - d, 2)
      to.fillRect(d, y + tall - 2, z - d, 2)
    }
    if (long < 15) return
    const start = Math.max(c, 0) + 4
    to.fillStyle = forced.matches && !failed[i] ? ink : inks.paper!
    to.textAlign = 'left'
    to.fillText(sign, start, y + tall / 2)
    const name = data.run[runs[i]!]!
    if (d - start > 20 + 7 * name.length) to.fillText(name, start + 17, y + tall / 2)
  }

  function axis(to: CanvasRenderingContext2D, width: number, x: (place: number) => number) {
    const { data, time, place, gaps } = drawn!
    to.fillStyle = inks.soft!
    to.fillRect(0, 0, width, AXIS)
    to.fillStyle = inks.ink!
    to.textAlign = 'left'
    const step = STEPS.find(one => (one / wide) * width >= 45) ?? STEPS.at(-1)!
    const [begin, until] = [time(left), time(left + wide)]
    const zone = -60 * new Date(1000 * (data.epoch + begin)).getTimezoneOffset() + data.epoch
    let free = -1
    for (let tick = Math.ceil((begin + zone) / step) * step - zone; tick <= until; tick += step) {
      const gap = gaps.find(one => one.since < tick && tick < one.until)
      if (gap) {
        tick += Math.floor((gap.until - tick) / step) * step
        continue
      }
      const at = x(place(tick))
      to.fillStyle = inks.line!
      to.fillRect(at, 0, 1, canvas.clientHeight)
      if (at < free) continue
      const text = when(1000 * (data.epoch + tick), step < DAY)
      to.fillStyle = inks.ink!
      to.fillText(text, at + 4, AXIS / 2)
      free = at + to.measureText(text).width + 14
    }
    if (free >= 0) return
    to.fillText(texts.range(when(1000 * (data.epoch + begin)), when(1000 * (data.epoch + until))), 4, AXIS / 2) // nothing round in sight
  }

  /** How many runs went on when, those that failed below, and what of it is seen. */
  function overview() {
    const { to, width, height } = surface(brush)
    const { from, to: until, failed, length } = drawn!
    const [all, bad] = [new Float32Array(width + 2), new Float32Array(width + 2)]
    for (let i = 0; i < from.length; i++) {
      const [a, z] = [Math.max(0, Math.floor((from[i]! / length) * width)), Math.floor((until[i]! / length) * width) + 1]
      for (const of of failed[i] ? [all, bad] : [all]) {
        of[a]!++
        of[Math.min(z, width)]!--
      }
    }
    for (const of of [all, bad]) for (let i = 1; i < width; i++) of[i]! += of[i - 1]!
    const most = all.reduce((most, one) => Math.max(most, one), 1)
    to.fillStyle = inks.soft!
    to.fillRect(0, 0, width, height)
    for (const [of, ink, least] of [[all, inks.time, 1], [bad, inks.parked, 2]] as const) {
      to.fillStyle = ink!
      for (let i = 0; i < width; i++) if (of[i]! > 0) to.fillRect(i, height - Math.max(least, (of[i]! / most) * (height - 4)), 1, height)
    }
    const [a, z] = [(left / length) * width, ((left + wide) / length) * width]
    to.strokeStyle = inks.focus!
    to.lineWidth = 2
    to.strokeRect(Math.max(1, a), 1, Math.max(3, Math.min(width - 1, z) - Math.max(1, a)), height - 2)
  }

  // --- hands ----------------------------------------------------------------------------------------------------

  const hit = (x: number, y: number) => {
    if (!drawn || y < AXIS) return -1
    const line = Math.floor((y - AXIS + down) / row())
    const near = (3 / canvas.clientWidth) * wide
    let found = -1
    for (let i = 0; i < drawn.runs.length; i++) {
      if (drawn.row[i] !== line || drawn.from[i]! - near > at(x) || drawn.to[i]! + near < at(x)) continue
      if (found < 0 || drawn.failed[i]! >= drawn.failed[found]!) found = i
    }
    return found
  }
  const hover = (i: number, x = 0, y = 0) => {
    if (i !== over) ask()
    over = i
    heard.hover(i < 0 ? null : { run: drawn!.runs[i]!, x, y })
  }
  const held = new Map<number, PointerEvent>()
  let moved = 0
  const press = (event: PointerEvent) => {
    canvas.setPointerCapture(event.pointerId)
    held.set(event.pointerId, event)
    moved = held.size > 1 ? Infinity : 0
  }
  const move = (event: PointerEvent) => {
    const before = held.get(event.pointerId)
    if (!before) return hover(hit(event.offsetX, event.offsetY), event.offsetX, event.offsetY)
    const other = [...held.values()].find(one => one.pointerId !== event.pointerId)
    const [x, y] = [event.offsetX - before.offsetX, event.offsetY - before.offsetY]
    moved += Math.abs(x) + Math.abs(y)
    if (other) {
      const [was, is] = [before, event].map(one => Math.max(10, Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY)))
      zoom(was! / is!, (event.offsetX + other.offsetX) / 2)
      pan(-x / 2, -y / 2)
    } else if (moved > 4) {
      hover(-1)
      pan(-x, -y)
    }
    held.set(event.pointerId, event)
  }
  const release = (event: PointerEvent) => {
    if (!held.delete(event.pointerId) || moved > 4 || event.type !== 'pointerup') return
    const found = hit(event.offsetX, event.offsetY)
    if (found >= 0 && (event.pointerType === 'mouse' || found === chosen)) heard.open(drawn!.data.run[drawn!.runs[found]!]!)
    else heard.point(found < 0 ? -1 : drawn!.runs[found]!)
  }
  const wheel = (event: WheelEvent) => {
    event.preventDefault()
    const much = event.deltaMode ? 16 : 1
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(much * (event.deltaX || event.deltaY))
    else zoom(Math.exp((much * event.deltaY) / (event.ctrlKey ? 100 : 500)), event.offsetX)
  }
  const away = () => hover(-1)

  let [moves, from] = [false, 0]
  const place = (event: PointerEvent) => Math.min(drawn!.length, Math.max(0, (event.offsetX / brush.clientWidth) * drawn!.length))
  const take = (event: PointerEvent) => {
    if (!drawn) return
    brush.setPointerCapture(event.pointerId)
    const [on, near] = [place(event), (6 / brush.clientWidth) * drawn.length]
    const edge = [left, left + wide].findIndex(one => Math.abs(on - one) < near)
    moves = edge < 0 && on > left && on < left + wide
    from = moves ? on - left : edge < 0 ? on : edge ? left : left + wide
  }
  const drag = (event: PointerEvent) => {
    if (!drawn || !brush.hasPointerCapture(event.pointerId)) return
    const on = place(event)
    if (moves) left = on - from
    else [left, wide] = [Math.min(on, from), Math.max(LEAST, Math.abs(on - from))]
    ask()
  }

  const ends = new AbortController()
  const on = <E extends Event>(of: EventTarget, name: string, hear: (event: E) => void) =>
    of.addEventListener(name, hear as EventListener, { signal: ends.signal, passive: false })
  on(canvas, 'pointerdown', press)
  on(canvas, 'pointermove', move)
  for (const name of ['pointerup', 'pointercancel']) on(canvas, name, release)
  on(canvas, 'pointerleave', away)
  on(canvas, 'wheel', wheel)
  on(brush, 'pointerdown', take)
  on(brush, 'pointermove', drag)
  const sized = new ResizeObserver(ask)
  sized.observe(canvas)
  const shone = new MutationObserver(colours)
  shone.observe(document.documentElement, { attributeFilter: ['data-scheme'] })
  for (const one of [forced, matchMedia('(prefers-color-scheme: dark)')]) on(one, 'change', colours)
  colours()

  return {
    zoom,
    pan,
    day() {
      const [from, until] = drawn ? lastDay(drawn) : [0, 0]
      ;[left, wide] = [from, until - from]
      ask()
    },
    all() {
      ;[left, wide] = [0, Infinity]
      ask()
    },
    /** What was in sight stays there, whatever came in; where that is the end, or all, it still is. */
    show(next: Drawn, run: number, other: boolean) {
      const before = other ? null : drawn
      const same = (place: number) => next.place(before!.time(place) + before!.data.epoch - next.data.epoch)
      const [from, until] = before ? [same(left), same(left + wide)] : lastDay(next)
      const end = before && left + wide > before.length - 1 ? next.length : until
      ;[left, wide] = before && wide >= before.length ? [0, Infinity] : [from + end - until, until - from]
      ;[drawn, over, chosen] = [next, -1, next.runs.indexOf(run)]
      ask()
    },
    choose(run: number) {
      chosen = drawn?.runs.indexOf(run) ?? -1
      see(chosen)
      ask()
    },
    end() {
      ends.abort()
      sized.disconnect()
      shone.disconnect()
      cancelAnimationFrame(asked)
    },
  }
}
