import { useSyncExternalStore } from 'react'
import { current, doubt, onSession, queries, refused, send, store } from './api'
import type { components } from './api-types'
import { notifies } from './tab'

type Changed = components['schemas']['Changed']
export type Connection = { live: boolean; at: number }

const [FIRST_WAIT, LONGEST_WAIT, BEAT] = [1000, 30_000, 15_000]

const connection = store<Connection>({ live: true, at: Date.now() })
export const useConnection = () => useSyncExternalStore(connection.on, connection.get)
let [seq, at] = [0, Date.now()]
let streaming: AbortController | null = null
let holds = false
const tabs = new BroadcastChannel('ashep-live')
tabs.onmessage = ({ data }: MessageEvent<Changed | Connection>) => ('seq' in data ? changed(data) : say(data))

/** Of a connection that lives on only when it last did is noted: nothing is to be shown anew. */
function say(now: Connection) {
  at = now.at
  if (!now.live) doubt()
  if (!now.live || !connection.get().live) connection.set(now)
}

function tell(now: Connection) {
  say(now)
  tabs.postMessage(now)
}

const OF_AN_ISSUE = new Set(['issue', 'course', 'work', 'run', 'diff', 'session', 'transcript'])
const FOR_EVER = new Set(['words', 'record', 'patch', 'then', 'projects']) // those of others are no part of what changed

const seqOf = (data: unknown): number | undefined => {
  const { seq, pages } = (data ?? {}) as { seq?: number; pages?: { seq: number }[] }
  return seq ?? pages?.[0]?.seq
}

function changed({ seq: found, issues }: Changed) {
  say({ live: true, at: Date.now() })
  if (found === seq) return
  const first = seq === 0
  seq = found
  const touched = issues && new Set(issues)
  const ask = (cancelRefetch: boolean) =>
    queries.invalidateQueries(
      {
        predicate: ({ queryKey: [kind, issue], state }) =>
          !FOR_EVER.has(String(kind)) &&
          seqOf(state.data) !== found &&
          (!touched || !OF_AN_ISSUE.has(String(kind)) || touched.has(String(issue))),
        refetchType: document.hidden ? 'none' : 'active',
      },
      { cancelRefetch },
    )
  void ask(!first)
  if (first) setTimeout(() => seq === found && void ask(false), 2 * FIRST_WAIT) // what was asked before this came
}

/** One stream for all tabs of a browser: whoever holds the lock reads it and tells the others. A hidden tab holds none,
    unless a person is to be notified. */
function follow() {
  streaming?.abort()
  streaming = null
  if (document.hidden && !notifies()) doubt() // nobody watches whether the server goes
  if ((document.hidden && !notifies()) || !current()) return
  const { signal } = (streaming = new AbortController())
  const held = navigator.locks?.request('ashep-events', { signal }, () => stream(signal)) ?? stream(signal)
  held.catch(() => null)
}

export function watch() {
  document.addEventListener('visibilitychange', follow)
  for (const word of ['offline', 'online']) addEventListener(word, follow) // nobody says on an old connection that it is cut
  onSession(follow)
  follow()
}

export type Heard = (kind: string | undefined, found: unknown) => void

function hear(kind: string | undefined, found: unknown) {
  if (kind !== 'changed') return
  changed(found as Changed)
  tabs.postMessage(found)
  if (document.hidden) void queries.refetchQueries({ queryKey: ['now'] }) // for the person who is to be notified
}

/** Whether this tab reads for all. */
export const holdsStream = () => holds

/** Reads a stream until it is aborted, and begins it again where it breaks off. */
export async function stream(signal: AbortSignal, which = '', heard: Heard = hear) {
  if (heard === hear) {
    holds = true
    signal.addEventListener('abort', () => (holds = false))
  }
  for (let wait = FIRST_WAIT; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      await read(signal, which, heard, () => (wait = FIRST_WAIT))
    } catch {
      // it is told below
    }
    if (signal.aborted) return
    if (heard === hear) tell({ live: false, at })
    await new Promise(done => setTimeout(done, wait))
  }
}

async function read(outer: AbortSignal, which: string, heard: Heard, begun: () => void) {
  const authorization = `Bearer ${current()?.token}`
  const silence = new AbortController()
  const signal = AbortSignal.any([outer, silence.signal])
  const answer = await send(`/api/v1/events${which}`, { headers: { Authorization: authorization, Accept: 'text/event-stream' }, signal })
  if (answer.status === 401) refused(authorization)
  if (!answer.ok || !answer.body) throw new Error(String(answer.status))
  begun()
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ;) {
    const quiet = setTimeout(() => silence.abort(), 3 * BEAT)
    const { value, done } = await reader.read().finally(() => clearTimeout(quiet))
    if (done) return
    tell({ live: true, at: Date.now() })
    const parts = (rest + value).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const [, kind, data] = /^event: (\w+)\ndata: (.*)$/s.exec(part) ?? []
      if (data) heard(kind, JSON.parse(data))
    }
  }
}
