import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { asks, current, leave } from './api'
import { STATES, to } from './look'
import { Choice, Mark } from './parts'
import { LETTERS, SCHEME, shine } from './settings'

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

// --- go to ------------------------------------------------------------------------------------------------------

export function Palette({ close }: { close: () => void }) {
  const [, go] = useLocation()
  const [text, type] = useState('')
  const [at, point] = useState(0)
  const { data, error } = useQuery({ ...asks.found(text.trim()), placeholderData: before => before })
  const found = data?.items ?? []
  const chosen = found[Math.min(at, found.length - 1)]
  const open = (issue: string) => {
    close()
    go(to.issue(issue))
  }
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) point(Math.min(found.length - 1, Math.max(0, at + step)))
    else if (event.key === 'Enter' && chosen) open(chosen.issue)
    else return
    event.preventDefault()
  }
  return (
    <Modal name="palette" title="Go to an issue" close={close}>
      <input
        type="search" role="combobox" aria-label="Its id, or words of its title" aria-expanded aria-controls="palette-found"
        aria-activedescendant={chosen && `to-${chosen.issue}`} autoFocus value={text} onKeyDown={pressed}
        onChange={event => {
          type(event.target.value)
          point(0)
        }}
      />
      <ul id="palette-found" role="listbox" aria-label="Issues">
        {found.map(({ issue, title, state }) => (
          <li key={issue} id={`to-${issue}`} role="option" aria-selected={issue === chosen?.issue} onClick={() => open(issue)}>
            <Mark as={state} sign={STATES[state].sign} /> <b>{issue}</b> {title}
          </li>
        ))}
      </ul>
      {data && !found.length && <p className="quiet" role="status">No issue is called so.</p>}
      {error && <p role="alert">The server does not answer.</p>}
    </Modal>
  )
}

// --- keys and settings ------------------------------------------------------------------------------------------

const KEYS = [
  ['g n · g i · g r', 'Now, Issues, Runs'],
  ['g p · g u', 'Report, Usage'],
  ['j · k', 'next, previous'],
  ['Enter', 'open'],
  ['a', 'approve what has the focus; five seconds to take it back'],
  ['x', 'to the comment'],
  ['Ctrl Enter', 'send it: request changes, or answer'],
  ['t', 'take over, or hand back'],
  ['v', 'mark a file as seen'],
  ['[ · ]', 'tab before, tab behind'],
  ['.', 'newest'],
  ['/', 'filter'],
  ['Ctrl K', 'go to an issue, by its id or words of its title'],
  ['Esc', 'out of a field'],
  ['?', 'these keys'],
] as const

const SCHEMES = [['system', 'as the system has them'], ['light', 'light'], ['dark', 'dark']] as const

export function Help({ close }: { close: () => void }) {
  const [scheme, choose] = useState(() => localStorage.getItem(SCHEME) ?? 'system')
  const [letters, set] = useState(() => localStorage.getItem(LETTERS) ?? 'on')
  const keep = (name: string, tell: (value: string) => void) => (value: string) => {
    localStorage.setItem(name, value)
    tell(value)
    if (name === SCHEME) shine(value)
  }
  return (
    <Modal name="keys" title="Keys" close={close}>
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <Choice label="Keys" value={letters} choose={keep(LETTERS, set)} of={[['on', 'do this'], ['off', 'do nothing']]} />
      <Choice label="Colours" value={scheme} choose={keep(SCHEME, choose)} of={SCHEMES} />
      <p className="quiet">You are here as {current()?.person}; your answers are written under this name.</p>
      <p className="quiet"><a href="/THIRD_PARTY.txt" target="_blank" rel="noopener">What this page is made with, and its licences</a></p>
      <div className="acts">
        <button onClick={close}>Close</button>
        <button onClick={() => void leave()}>End the session</button>
      </div>
    </Modal>
  )
}
