import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useEffect, useRef, useSyncExternalStore } from 'react'
import { useLocation, useSearch } from 'wouter'
import { asks, isReading, Refused, type RunRecord, type State, store, told } from './api'
import { type Finding, INTERRUPTED, type Look, RUNS, STATES } from './look'
import { exactly, when } from './moments'
import { times } from './settings'
import { parts as texts, shared } from './strings'
import { entitle } from './tab'
import { span } from './wording'

// --- headings ---------------------------------------------------------------------------------------------------

let returned = false
addEventListener('popstate', () => {
  returned = true
})

/** A page's heading. It takes the focus once the page is there, which of a page that is loaded late is after the place changed. */
export function H1({ title, children }: { title: string; children?: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => entitle(title), [title])
  useEffect(() => {
    if (!document.activeElement?.matches('input, textarea, select')) heading.current?.focus({ preventScroll: true })
    if (!returned) scrollTo(0, 0)
    returned = false
  }, [])
  return <h1 ref={heading} tabIndex={-1}>{children ?? title}</h1>
}

export type Head = 'h2' | 'h4' | undefined

export function Section({ name, title, head: Heading = 'h2', children }: { name: string; title: ReactNode; head?: Head; children: ReactNode }) {
  return (
    <section aria-labelledby={name}>
      <Heading id={name}>{title}</Heading>
      {children}
    </section>
  )
}

// --- times ------------------------------------------------------------------------------------------------------

const TICK = 10_000
let now = Date.now()

function onTick(tell: () => void) {
  const timer = setInterval(() => {
    if (document.hidden) return
    now = Date.now()
    tell()
  }, TICK)
  return () => clearInterval(timer)
}

export const useNow = () => useSyncExternalStore(onTick, () => now)

export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow()
  if (!at) return null
  return <time dateTime={at} title={exactly(at)}>{span(now - Date.parse(at))}</time>
}

/** A moment; one that stands `alone`, not in a sentence, is told by its distance to who wants that. */
export function When({ at, alone = false }: { at: string | null | undefined; alone?: boolean }) {
  if (!at) return null
  return <time dateTime={at} title={exactly(at)}>{alone && times.get() === 'relative' ? <Distance at={at} /> : when(at)}</time>
}

/** How far a moment is from now, either way. */
function Distance({ at }: { at: string }) {
  const ahead = Date.parse(at) - useNow()
  return ahead > 0 ? texts.ahead(span(ahead)) : texts.past(span(-ahead))
}

// --- states -----------------------------------------------------------------------------------------------------

export function Mark({ as, sign, children }: { as: State; sign: string; children?: ReactNode }) {
  return (
    <span className={`mark s-${as}`}>
      <i aria-hidden>{sign}</i>
      {children}
    </span>
  )
}

/** How issues and runs look now: without a daemon nothing runs; `until`: how far goes what has not ended. */
export function useLooks() {
  const now = useNow()
  const { running: runs = true, ended } = useQuery(asks.now()).data?.daemon ?? {}
  const issue = (state: State) => ({ as: state, ...STATES[state], ...(state === 'running' && !runs && INTERRUPTED) })
  const run = (state: RunRecord['state']): Look => ({ ...RUNS[state], ...(state === 'running' && !runs && INTERRUPTED) })
  return { issue, run, until: runs ? now : Date.parse(ended ?? '') }
}

/** How an issue stands now, or `then`. */
export function Stands({ state, then = false }: { state: State; then?: boolean }) {
  const { issue } = useLooks()
  const { sign, word } = then ? STATES[state] : issue(state)
  return <Mark as={state} sign={sign}>{word}</Mark>
}

export function Findings({ found, label = shared.evidence }: { found: Finding[]; label?: string }) {
  return (
    <ul className="findings" aria-label={label}>
      {found.map(({ text, as }) => (
        <li key={text} className={`s-${as}`}>{text}</li>
      ))}
    </ul>
  )
}

/** A line of small facts; those that are not there are left out. */
export const Facts = ({ of, className = 'quiet' }: { of: ReactNode[]; className?: string }) => (
  <p className={`${className} facts`}>{of.map((one, place) => one && <span key={place}>{one}</span>)}</p>
)

export function Pairs({ of }: { of: [string, ReactNode][] }) {
  const known = of.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false)
  return (
    <dl className="pairs">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

type Table = { heads: string[]; rows: [string, ...ReactNode[]][]; foot?: ReactNode[]; numbers?: number; className?: string }

/** A table; each row begins with its key, and so many of its last columns are numbers. */
export function Table({ heads, rows, foot, numbers = 0, className }: Table) {
  const as = (place: number) => (place >= heads.length - numbers ? 'number' : undefined)
  const cells = (of: ReactNode[]) => of.map((cell, place) => <td key={place} className={as(place)}>{cell}</td>)
  return (
    <div className="scroll" role="group" aria-label={heads.join(', ')} tabIndex={0}>
      <table className={className}>
        <thead><tr>{heads.map((head, place) => <th key={head} className={as(place)}>{head}</th>)}</tr></thead>
        <tbody>{rows.map(([key, ...row]) => <tr key={key}>{cells(row)}</tr>)}</tbody>
        {foot && <tfoot><tr>{cells(foot)}</tr></tfoot>}
      </table>
    </div>
  )
}

type Choice = { label: string; value: string; of: readonly (readonly [string, string])[]; choose: (value: string) => void; className?: string }

export const Choice = ({ label, value, of, choose, className }: Choice) => (
  <label className={className}>
    {label}{' '}
    <select value={value} onChange={event => choose(event.target.value)}>
      {of.map(([one, word]) => <option key={one} value={one}>{word}</option>)}
    </select>
  </label>
)

/** What a page is narrowed to stands in its address, so that Back and a link lead to the same. */
export function useNarrow(): [URLSearchParams, (name: string, value: string) => void] {
  const search = useSearch()
  const [place, go] = useLocation()
  const set = (name: string, value: string) => {
    const next = new URLSearchParams(search)
    if (value) next.set(name, value)
    else next.delete(name)
    go(`${place}${next.size ? `?${next}` : ''}`, { replace: true })
  }
  return [new URLSearchParams(search), set]
}

// --- what is not there ------------------------------------------------------------------------------------------

export function Empty({ children }: { children: string }) {
  return <p className="empty"><Coded text={children} /></p>
}

/** A list that filters left nothing of. */
export function NoMatch({ of }: { of: string }) {
  const [place, go] = useLocation()
  return (
    <div className="empty">
      {texts.noMatch(of)} <button onClick={() => go(place)}>{texts.clearFilters}</button>
    </div>
  )
}

type Asked = { error: unknown; data?: unknown; dataUpdatedAt: number; refetch: () => unknown; isFetching?: boolean }

/** Says what went wrong, and of when is what is seen all the same. */
export function Trouble({ of }: { of: Asked }) {
  if (!of.error) return null
  const sentence = told(of.error)
  const said = sentence.charAt(0).toUpperCase() + sentence.slice(1)
  if (of.error instanceof Refused && of.error.status === 404) return <Suspense><DeadEnd>{said}</DeadEnd></Suspense>
  return (
    <p role="alert" className="line bad">
      {said}
      {of.data !== undefined && texts.seenAt(when(of.dataUpdatedAt))}.{' '}
      <button onClick={() => void of.refetch()} disabled={of.isFetching}>{texts.again}</button>
    </p>
  )
}

const DeadEnd = lazy(() => import('./DeadEnd'))

/** `error`: what the last try came to. */
export function Loading({ error = null }: { error?: unknown }) {
  if (!isReading(error)) return <p role="status" className="quiet loading">{shared.loading}</p>
  return (
    <div className="loading reading">
      <p role="status">{error.message}</p>
      <progress aria-label={texts.reading} max={1} value={error.progress ?? 0} />
      <p className="quiet">{texts.once}</p>
    </div>
  )
}

// --- words ------------------------------------------------------------------------------------------------------

const ADDRESS = /(https:\/\/[^\s<>"']+[^\s<>"'.,;:!?)\]])/

/** Text of anybody's, as text; of what is in it only addresses with TLS can be followed, and are seen whole. */
export function Words({ text }: { text: string }) {
  const parts = text.split(ADDRESS)
  return parts.map((part, place) =>
    place % 2 ? (
      <a key={place} href={part} target="_blank" rel="noopener noreferrer">{part}</a>
    ) : (
      part
    ),
  )
}

/** Words of ours, in which `…` is what is typed into a terminal. */
export function Coded({ text }: { text: string }) {
  return text.split('`').map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part))
}

const writes = store(0)

/** A text of the browser's storage, which several places of the page show and write. */
function useStored(place: Storage, key: string): [string, (text: string) => void] {
  const text = useSyncExternalStore(writes.on, () => place.getItem(key) ?? '')
  const keep = (text: string) => {
    if (text) place.setItem(key, text)
    else place.removeItem(key)
    writes.set(writes.get() + 1)
  }
  return [text, keep]
}

/** Half-written words: they outlive the page, a session that ends, and a reload, but not the tab. */
export const useDraft = (of: string) => useStored(sessionStorage, `ashep-words:${of}`)

const SEEN = 'ashep-seen'
const MOST = 20

type Seen = { head: string; paths: string[] }

/** Marks by issue; none where somebody else has left something under their name. */
function readSeen(text: string): Record<string, Seen> {
  try {
    const found = Object.entries(JSON.parse(text || '{}') as Record<string, Seen>)
    return Object.fromEntries(found.filter(([, seen]) => typeof seen.head === 'string' && Array.isArray(seen.paths)))
  } catch {
    return {}
  }
}

/** Files of an issue's work that a person has looked through, of the commit that they were of; the last issues are kept. */
export function useSeen(issue: string): [Seen, (seen: Seen) => void] {
  const [text, keep] = useStored(localStorage, SEEN)
  const { [issue]: seen = { head: '', paths: [] }, ...others } = readSeen(text)
  return [seen, next => keep(JSON.stringify(Object.fromEntries([...Object.entries(others).slice(-MOST), [issue, next]])))]
}


function from(width: number) {
  const media = matchMedia(`(min-width: ${width}px)`)
  const on = (tell: () => void) => {
    media.addEventListener('change', tell)
    return () => media.removeEventListener('change', tell)
  }
  return () => useSyncExternalStore(on, () => media.matches)
}
export const useWide = from(761)
export const useDesk = from(1101)
