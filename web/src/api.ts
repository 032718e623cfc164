import { QueryClient } from '@tanstack/react-query'
import type { Client } from 'openapi-fetch'
import type { components, paths } from './api-types'
import { api as texts } from './strings'

type Schemas = components['schemas']
export type Issue = Schemas['Issue']
export type State = Issue['state']
export type Waiting = Schemas['Waiting']
export type Running = Schemas['Running']
export type Way = Schemas['Way']
export type Story = Schemas['IssueStory']
export type RunReport = Schemas['RunReport']
export type Course = Schemas['Course']
export type RunRecord = Schemas['RunRecord']
export type Run = Schemas['Run']
export type Policy = Schemas['Policy']
export type Now = Schemas['Now']
export type Then = Schemas['Then']
export type Daemon = Schemas['Daemon']
export type Act = Schemas['Act']
export type Given = Schemas['StandingAnswer']
export type Verification = NonNullable<Story['verification']>
export type Line = Schemas['Report']['sections'][string][number]
export type TimelineData = Schemas['Timeline']

/** A request that was answered with a problem. */
export class Refused extends Error {
  constructor(
    public readonly status: number,
    detail: string,
    /** How far the journal is read, where the answer waits for that. */
    public readonly progress: number | null = null,
  ) {
    super(detail)
  }
}

/** A value that the page follows (`useSyncExternalStore`). */
export function store<T>(value: T) {
  const heard = new Set<() => void>()
  const set = (next: T) => {
    value = next
    heard.forEach(tell => tell())
  }
  const on = (tell: () => void) => {
    heard.add(tell)
    return () => void heard.delete(tell)
  }
  return { get: () => value, set, on }
}

// --- who asks ---------------------------------------------------------------------------------------------------

// The token is this tab's: never in a cookie, which every port of the host is sent, and never on the disk. A paired
// device keeps it, where the origin is a proxy's with TLS: what once listens on a port of loopback could be anybody's.
const TOKEN = 'ashep-token'
const PERSON = 'ashep-person'
const PLACE = 'ashep-place'

export type Session = { token: string; person: string; device?: string | null }
const places = [sessionStorage, localStorage]
const kept = store<Session | null>(known())

function known(): Session | null {
  const place = places.find(one => one.getItem(TOKEN))
  const token = place?.getItem(TOKEN)
  return token ? { token, person: place?.getItem(PERSON) ?? '' } : null
}

export const current = kept.get
export const onSession = kept.on

function become(found: Session | null) {
  places.forEach(one => [TOKEN, PERSON].forEach(key => one.removeItem(key)))
  if (found) {
    const place = found.device && location.protocol === 'https:' ? localStorage : sessionStorage
    place.setItem(TOKEN, found.token)
    place.setItem(PERSON, found.person)
  }
  proof = Promise.resolve()
  kept.set(found)
  if (found) void queries.invalidateQueries()
}

const tabs = new BroadcastChannel('ashep-session')
let entered = 0
tabs.onmessage = ({ data }: MessageEvent<'who?' | Session | { place: string }>) => {
  if (data === 'who?') {
    if (current()) tabs.postMessage(current())
  } else if ('place' in data) {
    if (Date.now() - entered < 2000) arrive(data.place) // this tab came in by the link, the other one knows where to
  } else if (!current()) {
    tabs.postMessage({ place: sessionStorage.getItem(PLACE) ?? '/' })
    arrive()
    become(data)
  }
}

/** Who is outside has asked for this place, and comes to it later. */
export const asksFor = (place: string) => place !== '/' && sessionStorage.setItem(PLACE, place)

/** Leads a link to the first page on to the place that was asked for before; a path of ours, whatever stands there. */
function arrive(place = sessionStorage.getItem(PLACE)) {
  sessionStorage.removeItem(PLACE)
  if (location.pathname === '/' && place && /^\/(?![/\\])/.test(place)) history.replaceState(history.state, '', place)
}

/** What a link's code is exchanged for, or what another tab knows; else an error that says why, or null. */
export async function enter(): Promise<string | null> {
  const code = new URLSearchParams(location.hash.slice(1)).get('enter')
  if (code) {
    history.replaceState(history.state, '', location.pathname + location.search)
    const answer = api.POST('/api/v1/enter', { body: { code } })
    try {
      const found = await got(answer)
      arrive()
      entered = Date.now()
      become(found)
      tabs.postMessage(found)
    } catch (error) {
      if (!current()) return told(error)
    }
  }
  if (current()) return null
  tabs.postMessage('who?')
  await new Promise(done => setTimeout(done, 250))
  return null
}

export async function leave() {
  await api.POST('/api/v1/leave').catch(() => null)
  become(null)
  queries.clear()
}

// --- asking -----------------------------------------------------------------------------------------------------

// While a server is away anybody could take its port, an agent too. After that no token is sent before whoever answers has
// shown that it knows its hash, by a word of now.
let proof: Promise<void> | null = Promise.resolve()
export const doubt = () => void (proof = null)

const bytes = (text: string) => new TextEncoder().encode(text)
const hex = (found: ArrayBuffer) => Array.from(new Uint8Array(found), one => one.toString(16).padStart(2, '0')).join('')
const sum = async (text: string) => hex(await crypto.subtle.digest('SHA-256', bytes(text)))

async function prove(token: string) {
  const hash = await sum(token)
  const body = JSON.stringify({ name: await sum(hash), nonce: crypto.randomUUID() })
  const headers = { Accept: 'application/json', 'Content-Type': 'application/json' }
  const answer = await fetch('/api/v1/prove', { method: 'POST', headers, body })
  const said = ((await answer.json()) as Partial<Schemas['ServerProof']>).proof
  if (answer.ok && said === null) {
    refused(`Bearer ${token}`)
    throw new Refused(401, texts.ended)
  }
  const key = await crypto.subtle.importKey('raw', bytes(hash), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  const expected = hex(await crypto.subtle.sign('HMAC', key, bytes(JSON.parse(body).nonce)))
  if (said !== expected) throw new TypeError(texts.silent) // another one answers
}

/** Asks the server, where it is still ours. */
export async function send(request: Request | string, init?: RequestInit): Promise<Response> {
  const session = current()
  try {
    if (session) await (proof ??= prove(session.token))
    return await fetch(request, init)
  } catch (error) {
    if (!(error instanceof DOMException)) doubt() // that of who asks no more
    throw error
  }
}

type Question = { params?: { path?: Record<string, string>; query?: Record<string, unknown> }; body?: unknown }

async function ask(method: string, path: string, { params: { path: parts = {}, query = {} } = {}, body }: Question = {}) {
  const place = path.replace(/{(\w+)}/g, (_, name: string) => encodeURIComponent(parts[name] ?? ''))
  const search = new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, String(value)]])))
  const headers = new Headers({ Accept: 'application/json', Prefer: 'wait=2' })
  if (body !== undefined) headers.set('Content-Type', 'application/json')
  const session = current()
  if (session) headers.set('Authorization', `Bearer ${session.token}`)
  const response = await send(`${place}${search.size ? `?${search}` : ''}`, { method, headers, body: body === undefined ? null : JSON.stringify(body) })
  if (response.status === 401) refused(headers.get('Authorization'))
  const told: unknown = await response.json().catch(() => undefined)
  return response.ok ? { data: told, response } : { error: told, response }
}

/** As openapi-fetch has it, whose types it has; of its two kilobytes this is what the page needs. */
export const api = {
  GET: (path: string, question?: Question) => ask('GET', path, question),
  POST: (path: string, question?: Question) => ask('POST', path, question),
} as unknown as Pick<Client<paths>, 'GET' | 'POST'>

/** The server knows this token no more; unless there is another by now, nobody is here. */
export function refused(authorization: string | null) {
  if (authorization === `Bearer ${current()?.token}`) become(null)
}

export async function got<T>(asked: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await asked
  if (data !== undefined) return data
  const { detail, progress } = (error ?? {}) as { detail?: string; progress?: number | null }
  throw new Refused(response.status, detail || response.statusText || texts.status(response.status), progress)
}

export function told(error: unknown): string {
  if (error instanceof Refused) return error.message
  return error instanceof TypeError ? texts.silent : String(error)
}

/** The server has yet to read the journal, which ends by itself. */
export const isReading = (error: unknown): error is Refused => error instanceof Refused && error.progress !== null

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 60_000,
      retry: (tries, error) => isReading(error) || (tries < 2 && !(error instanceof Refused && error.status < 500)),
      retryDelay: (tries, error) => (isReading(error) ? 1000 : Math.min(1000 * 2 ** tries, 30_000)),
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})

declare global {
  interface Window {
    early?: Promise<Response>
  }
}

let begun = false

/** The answer that public/early.js asked for, the first time; where there is none, it is asked for as any other. */
async function early(): Promise<Now | undefined> {
  const answer = begun ? undefined : await window.early?.catch(() => undefined)
  begun = true
  return answer?.ok ? ((await answer.json()) as Now) : undefined
}

export const asks = {
  now: () => ({ queryKey: ['now'], queryFn: async () => (await early()) ?? got(api.GET('/api/v1/now')) }),
  answers: () => ({ queryKey: ['answers'], queryFn: () => got(api.GET('/api/v1/answers')) }),
  issue: (issue: string) => ({
    queryKey: ['issue', issue],
    queryFn: () => got(api.GET('/api/v1/issues/{issue}', { params: { path: { issue } } })),
  }),
  course: (issue: string) => ({
    queryKey: ['course', issue],
    queryFn: () => got(api.GET('/api/v1/issues/{issue}/runs', { params: { path: { issue } } })),
  }),
  run: (issue: string, run: string) => ({
    queryKey: ['run', issue, run],
    queryFn: () => got(api.GET('/api/v1/runs/{issue}/{run}', { params: { path: { issue, run } } })),
  }),
  policy: (policy: string) => ({
    queryKey: ['policy', policy],
    queryFn: () => got(api.GET('/api/v1/policies/{policy}', { params: { path: { policy } } })),
  }),
  then: (at: string, issue: string | null) => ({
    queryKey: ['then', at, issue],
    queryFn: () => got(api.GET('/api/v1/then', { params: { query: { at, issue: issue ?? undefined } } })),
  }),
}

export const act = (issue: string, body: Act) => got(api.POST('/api/v1/issues/{issue}', { params: { path: { issue } }, body }))
