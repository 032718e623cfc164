import { useMutation, useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import { api, asks, current, got, leave, told } from './api'
import { PLACES, RUNS, STATES, to } from './look'
import { Choice, Mark } from './parts'
import { chooseTimes, dialog, LETTERS, NOTICES, SCHEME, shine, times } from './settings'
import { allowNotices } from './notices'
import { dialogs as texts, shared } from './strings'

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

const SCHEMES = Object.entries(texts.schemes)
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
  const pages = PLACES.map(([href, name, key]) => ({ key: name, name: <>{name} <kbd>g {key}</kbd></>, words: texts.pageWords, open: () => go(href) }))
  return [...pages, { key: shared.settings, name: <>{shared.settings} <kbd>?</kbd></>, words: texts.settingsWords, open: () => dialog.set('keys') }]
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
    ...(running ? [isPaused ? { ...texts.resume, act: true, open: resume } : { ...texts.pause, act: true, open: pause }] : []),
    ...SCHEMES.filter(([one]) => one !== scheme).map(([one, word]) => ({ key: texts.theme(word), words: texts.themeWords, name: texts.theme(word), open: () => setScheme(one) })),
    { key: texts.signOut, words: texts.signOutWords, name: texts.signOut, open: leave },
  ]
}

function useFound(text: string): { groups: Group[]; error: unknown; isKnown: boolean } {
  const [, go] = useLocation()
  const [places, acts] = [usePlaces(), useActs()]
  const placeholderData = <T,>(before: T) => before
  const issues = useQuery({ queryKey: ['found', text], queryFn: () => got(api.GET('/api/v1/issues', { params: { query: { q: text, limit: 8 } } })), placeholderData })
  const runs = useQuery({
    queryKey: ['foundRuns', text],
    queryFn: () => got(api.GET('/api/v1/runs', { params: { query: { q: text, limit: 6 } } })),
    enabled: text !== '',
    placeholderData,
  })
  const groups = [
    { name: texts.groups.pages, entries: places },
    {
      name: texts.groups.issues,
      entries: (issues.data?.items ?? []).map(({ issue, title, state }) => ({
        key: issue, words: title, open: () => go(to.issue(issue)),
        name: <><Mark as={state} sign={STATES[state].sign} /> <b>{issue}</b> {title}</>,
      })),
    },
    {
      name: texts.groups.runs,
      entries: (text ? (runs.data?.items ?? []) : []).map(({ run, state, agent }) => ({
        key: run, words: '', open: () => go(to.run(run)),
        name: <><Mark {...RUNS[state]} /> <b>{run}</b> {agent}</>,
      })),
    },
    { name: texts.groups.actions, entries: acts },
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
    <Modal name="palette" title={shared.search} close={close}>
      <input
        type="search" role="combobox" aria-label={texts.searchAll} placeholder={texts.placeholder}
        aria-expanded aria-controls="palette-found" aria-activedescendant={chosen && id(chosen)} autoFocus value={text} onKeyDown={pressed}
        onChange={event => {
          type(event.target.value)
          point(0)
        }}
      />
      <div id="palette-found" role="listbox" aria-label={texts.found}>
        {groups.map(group => (
          <div key={group.name} role="group" aria-label={group.name}>
            <p aria-hidden className="quiet">{group.name}</p>
            {group.entries.map(entry => (
              <div key={entry.key} id={id(entry)} role="option" aria-selected={entry === chosen} onClick={() => open(entry)}>{entry.name}</div>
            ))}
          </div>
        ))}
      </div>
      {isKnown && !entries.length && <p className="quiet" role="status">{shared.empty}</p>}
      {Boolean(error ?? failed) && <p role="alert" className="line bad">{texts.failed(told(error ?? failed))}</p>}
    </Modal>
  )
}

// --- keys and settings ------------------------------------------------------------------------------------------

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
    <Modal name="keys" title={shared.settings} close={close}>
      <div className="settings">
        <Choice label={texts.time} value={shown} choose={chooseTimes} of={texts.times} />
        <Choice label={texts.themeLabel} value={scheme} choose={value => (choose(value), shine(value))} of={SCHEMES} />
        <Choice label={texts.shortcuts} value={letters} choose={set} of={texts.toggle} />
        <Notices />
      </div>
      <dl>
        {texts.keys.map(([key, what]) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p className="quiet">{texts.person(current()?.person)}</p>
      <p className="quiet"><a href="/THIRD_PARTY.txt" target="_blank" rel="noopener">{texts.licences}</a></p>
      <div className="acts">
        <button onClick={close}>{texts.close}</button>
        <button onClick={() => void leave()}>{texts.signOut}</button>
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
      <Choice label={texts.notifications} value={value} choose={value => void choose(value)} of={texts.toggle} />
      <p role="status" className="quiet">{why}</p>
    </>
  )
}
