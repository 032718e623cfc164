import { useMutation, useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import { api, asks, current, got, leave, told } from './api'
import { PLACES, RUNS, STATES, to } from './look'
import { Choice, Mark } from './parts'
import { chooseTimes, dialog, LETTERS, NOTICES, SCHEME, shine, times } from './settings'
import { allowNotices } from './notices'

function Modal({ name, title, close, children }: { name: string; title: string; close: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} className={name} aria-labelledby={name} onClose={close}>
      <h2 id={name}>{title}</h2>
      {children}
    </dialog>
  )
}

// --- search -----------------------------------------------------------------------------------------------------

const SCHEMES = [['system', 'system'], ['light', 'light'], ['dark', 'dark']] as const
const HOUR = 60

function setScheme(scheme: string) {
  localStorage.setItem(SCHEME, scheme)
  shine(scheme)
}

/** `words`: what it is found by, beside its own; `act`: it is no place, and may fail. */
type Entry = { key: string; name: ReactNode; words: string; act?: boolean; open: () => unknown }
type Group = { name: string; entries: Entry[] }

const matches = ({ key, words }: Entry, text: string) => text.toLowerCase().split(/\s+/).every(word => `${key} ${words}`.toLowerCase().includes(word))

function usePlaces(): Entry[] {
  const [, go] = useLocation()
  const pages = PLACES.map(([href, name, key]) => ({ key: name, name: <>{name} <kbd>g {key}</kbd></>, words: 'page go to', open: () => go(href) }))
  return [...pages, { key: 'Keys and settings', name: <>Keys and settings <kbd>?</kbd></>, words: 'page shortcuts theme time notifications help', open: () => dialog.set('keys') }]
}

/** What can be done anywhere, as things are now. */
function useActs(): Entry[] {
  const { data } = useQuery(asks.now())
  const { running, pauses } = data?.daemon ?? { running: false, pauses: [] }
  const isPaused = pauses.some(pause => pause.provider === null)
  const scheme = localStorage.getItem(SCHEME) ?? 'system'
  const pause = () => got(api.POST('/api/v1/pause', { body: { minutes: HOUR } }))
  const resume = () => got(api.POST('/api/v1/resume', { body: {} }))
  return [
    ...(running ? [isPaused ? { key: 'Resume', words: 'runs go on', name: 'Resume all runs', act: true, open: resume } : { key: 'Pause', words: 'runs stop hour', name: 'Pause for an hour: no new run starts', act: true, open: pause }] : []),
    ...SCHEMES.filter(([one]) => one !== scheme).map(([one]) => ({ key: `Theme ${one}`, words: 'colours mode', name: `Theme: ${one}`, open: () => setScheme(one) })),
    { key: 'Sign out', words: 'leave end session log', name: 'Sign out', open: leave },
  ]
}

function useFound(text: string): { groups: Group[]; error: unknown; isKnown: boolean } {
  const [, go] = useLocation()
  const [places, acts] = [usePlaces(), useActs()]
  const issues = useQuery({ ...asks.found(text), placeholderData: before => before })
  const runs = useQuery({ ...asks.foundRuns(text), placeholderData: before => before })
  const groups = [
    { name: 'Pages', entries: places },
    {
      name: 'Issues',
      entries: (issues.data?.items ?? []).map(({ issue, title, state }) => ({
        key: issue, words: title, open: () => go(to.issue(issue)),
        name: <><Mark as={state} sign={STATES[state].sign} /> <b>{issue}</b> {title}</>,
      })),
    },
    {
      name: 'Runs',
      entries: (text ? (runs.data?.items ?? []) : []).map(({ run, state, agent }) => ({
        key: run, words: '', open: () => go(to.run(run)),
        name: <><Mark {...RUNS[state]} /> <b>{run}</b> {agent}</>,
      })),
    },
    { name: 'Actions', entries: acts },
  ]
  // also of what was found for the words before, while the next answer is on its way
  const found = groups.map(({ name, entries }) => ({ name, entries: entries.filter(one => matches(one, text)) }))
  return { groups: found.filter(({ entries }) => entries.length > 0), error: issues.error, isKnown: issues.data !== undefined }
}

export function Palette({ close }: { close: () => void }) {
  const [text, type] = useState('')
  const [at, point] = useState(0)
  const { groups, error, isKnown } = useFound(text.trim())
  const entries = groups.flatMap(group => group.entries)
  const chosen = entries[Math.min(at, entries.length - 1)]
  const { mutate, error: failed } = useMutation({ mutationFn: async (entry: Entry) => entry.open(), onSuccess: close })
  const open = (entry: Entry) => {
    if (entry.act) return mutate(entry)
    close() // first, so that the page takes the focus
    entry.open()
  }
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) point(Math.min(entries.length - 1, Math.max(0, Math.min(at, entries.length - 1) + step)))
    else if (event.key === 'Enter' && chosen) open(chosen)
    else if (event.key === 'Escape') close()
    else return
    event.preventDefault()
  }
  useEffect(() => {
    document.querySelector('.palette [aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen?.key])
  const id = (entry: Entry) => `to-${entry.key}`
  return (
    <Modal name="palette" title="Search" close={close}>
      <input
        type="search" role="combobox" aria-label="Search issues, runs, pages and actions" placeholder="Issue, words of its title, run, page or action"
        aria-expanded aria-controls="palette-found" aria-activedescendant={chosen && id(chosen)} autoFocus value={text} onKeyDown={pressed}
        onChange={event => {
          type(event.target.value)
          point(0)
        }}
      />
      <div id="palette-found" role="listbox" aria-label="Found">
        {groups.map(group => (
          <div key={group.name} role="group" aria-label={group.name}>
            <p aria-hidden className="quiet">{group.name}</p>
            {group.entries.map(entry => (
              <div key={entry.key} id={id(entry)} role="option" aria-selected={entry === chosen} onClick={() => open(entry)}>{entry.name}</div>
            ))}
          </div>
        ))}
      </div>
      {isKnown && !entries.length && <p className="quiet" role="status">No matches.</p>}
      {Boolean(error ?? failed) && <p role="alert" className="line bad">Not done: {told(error ?? failed)}</p>}
    </Modal>
  )
}

// --- keys and settings ------------------------------------------------------------------------------------------

const KEYS = [
  ['g n · g i · g r', 'Now, Issues, Runs'],
  ['g p · g u', 'Report, Usage'],
  ['j · k', 'next, previous'],
  ['Enter', 'open'],
  ['a', 'approve what has the focus; five seconds to undo'],
  ['x', 'write a comment'],
  ['Ctrl Enter', 'send it: request changes, or answer'],
  ['t', 'take over, or hand back'],
  ['v', 'mark a file as seen'],
  ['[ · ]', 'previous, next tab'],
  ['.', 'newest'],
  ['/', 'filter'],
  ['Ctrl K', 'search issues, runs, pages and actions'],
  ['Esc', 'leave a field'],
  ['?', 'keys and settings'],
] as const

const TIMES = [['local', 'local time'], ['relative', 'relative, in lists'], ['utc', 'UTC']] as const
const SWITCH = [['on', 'on'], ['off', 'off']] as const

/** A choice that this browser remembers. */
function useKept(name: string, first: string): [string, (value: string) => void] {
  const [value, tell] = useState(() => localStorage.getItem(name) ?? first)
  return [value, value => (localStorage.setItem(name, value), tell(value))]
}

export function Help({ close }: { close: () => void }) {
  const [scheme, choose] = useKept(SCHEME, 'system')
  const [letters, set] = useKept(LETTERS, 'on')
  const shown = useSyncExternalStore(times.on, times.get)
  return (
    <Modal name="keys" title="Keys and settings" close={close}>
      <div className="settings">
        <Choice label="Time" value={shown} choose={chooseTimes} of={TIMES} />
        <Choice label="Theme" value={scheme} choose={value => (choose(value), shine(value))} of={SCHEMES} />
        <Choice label="Single-key shortcuts" value={letters} choose={set} of={SWITCH} />
        <Notices />
      </div>
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p className="quiet">You are signed in as {current()?.person}; your answers are written under this name.</p>
      <p className="quiet"><a href="/THIRD_PARTY.txt" target="_blank" rel="noopener">Open-source licences</a></p>
      <div className="acts">
        <button onClick={close}>Close</button>
        <button onClick={() => void leave()}>Sign out</button>
      </div>
    </Modal>
  )
}

/** Off until a person wants them, and the browser allows them. */
function Notices() {
  const [value, keep] = useKept(NOTICES, 'off')
  const [why, say] = useState('')
  const choose = async (wanted: string) => {
    const why = wanted === 'on' ? await allowNotices() : ''
    say(why)
    keep(why ? 'off' : wanted)
  }
  return (
    <>
      <Choice label="Browser notifications" value={value} choose={value => void choose(value)} of={SWITCH} />
      <p role="status" className="quiet">{why}</p>
    </>
  )
}
