import { useMutation, useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useEffect, useRef, useSyncExternalStore } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import { api, asks, current, type Daemon, got, told } from './api'
import { say, Sending } from './Answered'
import { holdsStream, useConnection } from './live'
import { PLACES } from './look'
import { when } from './moments'
import { Coded, Loading, useWide } from './parts'
import { dialog, LETTERS } from './settings'
import { frame as texts, shared } from './strings'
import { announce } from './tab'
import { figure, money } from './wording'

export const dialogs = () => import('./Dialogs')
const Help = lazy(() => dialogs().then(({ Help }) => ({ default: Help })))
const LATER = 2000
const later = new Promise(done => setTimeout(done, LATER))
const Others = lazy(() => later.then(() => import('./Projects')).then(({ Others }) => ({ default: Others }), () => ({ default: () => null })))
const Palette = lazy(() => dialogs().then(({ Palette }) => ({ default: Palette })))

const within = (place: string, href: string) => (href === '/' ? place === '/' : place.startsWith(href))

export function Frame({ children }: { children: ReactNode }) {
  const [place] = useLocation()
  const opened = useSyncExternalStore(dialog.on, dialog.get)
  const now = useQuery(asks.now())
  const { project, waiting } = now.data ?? {}
  useKeys()
  useEffect(() => now.data && announce(now.data, holdsStream()), [now.data])
  const back = new URLSearchParams(useSearch()).has('at') && place === '/'
  return (
    <>
      <a className="skip" href="#main">{texts.skip}</a>
      <header>
        <div className="project">
          <strong title={project?.name}>{project?.name ?? texts.product}</strong>
          {project?.base && <span className="quiet" title={texts.base(project.base)}>→ {project.base}</span>}
        </div>
        <nav aria-label={texts.pages}>
          {PLACES.map(([href, name]) => (
            <Link key={href} href={href} aria-current={within(place, href) ? 'page' : undefined}>
              {name}
              {href === '/' && waiting && waiting.length > 0 && <> <span className="badge">{figure(waiting.length)}<span className="unseen">{texts.forYou}</span></span></>}
            </Link>
          ))}
        </nav>
        {project?.page.panel && <Link className="others" href="/panel">{project.page.title}</Link>}
        <Suspense fallback={null}><Others /></Suspense>
        <Live known={!now.isPending} />
        <button className="plain find" aria-label={shared.search} onClick={() => dialog.set('find')}>
          <span>{shared.search}</span> <kbd>Ctrl K</kbd>
        </button>
        <button className="plain keys" aria-label={shared.settings} data-short={texts.settingsPhone} onClick={() => dialog.set('keys')}>
          <span>{texts.settingsShort}</span> <kbd>?</kbd>
        </button>
      </header>
      {!back && <Lines />}
      <main id="main" tabIndex={-1}>
        {now.isPending ? <Loading error={now.failureReason} /> : children}
      </main>
      <Sending />
      <Suspense fallback={null}>
        {opened === 'keys' && <Help close={() => dialog.set(null)} />}
        {opened === 'find' && <Palette close={() => dialog.set(null)} />}
      </Suspense>
    </>
  )
}

function Live({ known }: { known: boolean }) {
  const { live, at } = useConnection()
  return (
    <span className={live ? 'live' : 'live away'}>
      {texts.person(current()?.person)} · <span role="status">{live ? (known ? texts.live : texts.loading) : texts.away(when(at))}</span>
    </span>
  )
}

// --- what is true of everything ---------------------------------------------------------------------------------

type Pause = Daemon['pauses'][number]

function linesOf(daemon: Daemon): { key: string; bad?: boolean; text: string; pause?: Pause }[] {
  const until = (at: string | null) => (at ? texts.until(when(at)) : '')
  const { edit } = daemon
  return [
    ...(daemon.running ? [] : [{ key: 'daemon', bad: true, text: daemon.ended ? texts.stopped(when(daemon.ended), daemon.why) : texts.noDaemon }]),
    ...daemon.pauses.map(pause => ({
      key: `pause ${pause.provider}`,
      text: texts.paused(pause.provider, pause.drain, pause.by, until(pause.until) || texts.untilResumed, pause.why),
      pause,
    })),
    ...(daemon.disk === 'low' ? [{ key: 'disk', bad: true, text: texts.disk }] : []),
    ...(daemon.behind ? [{ key: 'behind', text: texts.behind }] : []),
    ...daemon.providers.map(one => ({
      key: `provider ${one.provider}`,
      bad: true,
      text: texts.outage(one.provider, texts.outages[one.state] ?? one.state, until(one.until), one.why, one.waiting),
    })),
    ...daemon.sources.map(one => ({
      key: `source ${one.source}`,
      bad: true,
      text: texts.source(one.source, one.reason),
    })),
    ...daemon.quotas.filter(quota => quota.status !== 'allowed' && (!quota.resets || new Date(quota.resets) > new Date())).map(quota => ({
      key: `quota ${quota.runner} ${quota.provider} ${quota.login}`,
      bad: quota.status === 'rejected',
      text: texts.quota(quota.provider, quota.runner, texts.usedUp(quota.status === 'rejected'), until(quota.resets), quota.window ?? ''),
    })),
    ...daemon.budgets.map(one => ({
      key: `budget ${one.scope} ${one.name}`,
      bad: one.reached,
      text: texts.budget(texts.budgets[one.scope] ?? one.name, texts.usedUp(one.reached), one.unit === 'cost' ? texts.amount(money(one.used), money(one.limit), '') : texts.amount(figure(one.used), figure(one.limit), one.unit), until(one.until)),
    })),
    ...(edit ? [{ key: 'edit', bad: true, text: texts.edit(when(edit.since), edit.problems[0] ?? '') }] : []),
    ...daemon.runners
      .filter(one => one.state !== 'up')
      .map(one => ({ key: `runner ${one.runner}`, bad: true, text: texts.runner(one.runner, one.state, one.detail) })),
    ...daemon.notices.map(one => ({ key: `notice ${one.target}`, text: texts.unreached(one.target, one.error) })),
    ...(daemon.findings ? [{ key: 'findings', bad: true, text: texts.audit(daemon.findings) }] : []),
  ]
}

/** They stay in sight, so that an act of a person's is seen where they are; `--top` is how much of the page is under them. */
function Lines() {
  const { data } = useQuery(asks.now())
  const refused = data?.project.page.refused
  const lines = data ? [...linesOf(data.daemon), ...(refused ? [{ key: 'colours', bad: true, text: texts.colours(refused) }] : [])] : []
  const box = useRef<HTMLDivElement>(null)
  const many = useWide() ? 2 : 1
  useEffect(() => {
    const parts = [document.querySelector<HTMLElement>('header'), box.current].filter(one => one !== null)
    const measured = () => {
      const high = parts.reduce((sum, one) => sum + (getComputedStyle(one).position === 'sticky' ? one.offsetHeight : 0), 0)
      document.documentElement.style.setProperty('--top', `${high}px`)
    }
    const seen = new ResizeObserver(measured)
    parts.forEach(one => seen.observe(one))
    return () => {
      seen.disconnect()
      document.documentElement.style.removeProperty('--top')
    }
  }, [])
  const shown = (some: typeof lines) =>
    some.map(({ key, bad, text, pause }) => (
      <p key={key} className={bad ? 'line bad' : 'line'}>
        <span>
          {bad ? '! ' : ''}
          <Coded text={text} />
        </span>
        {pause && data?.daemon.running && <Resume provider={pause.provider} />}
      </p>
    ))
  return (
    <div ref={box} className="lines" role="region" aria-label={texts.notices} hidden={!lines.length}>
      {shown(lines.slice(0, many))}
      {lines.length > many && <details><summary>{texts.more(lines.length - many)}</summary>{shown(lines.slice(many))}</details>}
    </div>
  )
}

function Resume({ provider }: { provider: string | null }) {
  const resume = useMutation({
    mutationFn: () => got(api.POST('/api/v1/resume', { body: { provider } })),
    onSuccess: () => say(texts.resumed(provider)),
  })
  return (
    <>
      <button onClick={() => resume.mutate()} disabled={resume.isPending || resume.isSuccess}>{texts.resume}</button>
      {resume.isError && <span role="status">{told(resume.error)}</span>}
    </>
  )
}

// --- keys -------------------------------------------------------------------------------------------------------

/** Keys press what is on the page, so that a key does what the mouse does. */
function useKeys() {
  const [, go] = useLocation()
  useEffect(() => {
    let led = 0
    const pressed = (event: KeyboardEvent) => {
      const on = event.target as HTMLElement
      if ((event.ctrlKey || event.metaKey) && event.key === 'k' && !event.altKey && !event.shiftKey) {
        event.preventDefault()
        if (!document.querySelector('dialog[open]')) dialog.set('find')
      }
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
      if (on.matches('input, textarea, select, [contenteditable]')) {
        if (event.key === 'Escape') (on.closest<HTMLElement>('[data-step]') ?? on).focus(), on.blur()
        return
      }
      if (document.querySelector('dialog[open]') || localStorage.getItem(LETTERS) === 'off' || event.repeat) return
      const place = Date.now() - led < 1500 ? PLACES.find(([, , key]) => key === event.key) : undefined
      led = event.key === 'g' ? Date.now() : 0
      if (place) go(place[0])
      else if (event.key === '?') dialog.set('keys')
      else if (event.key === '/') document.querySelector<HTMLElement>('input[type=search]')?.focus()
      else if (event.key === 'j' || event.key === 'k') step(event.key === 'j' ? 1 : -1)
      else if (event.key === 'Enter' && on.matches('[data-step]:not(a, button, summary)')) on.querySelector('a')?.click()
      else if (event.key === '.') newest()
      else if (event.key === '[' || event.key === ']') tab(event.key === ']' ? 1 : -1)
      else if ('axtv'.includes(event.key)) press(event.key)
      else return
      event.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [go])
}

function step(by: number) {
  const all = [...document.querySelectorAll<HTMLElement>('[data-step]')]
  const here = document.activeElement
  const within = all.findIndex(one => one.contains(here))
  const beside = here === document.body || here?.closest('.answered, .desk .card')
  const at = within < 0 && beside ? all.findIndex(one => one.ariaCurrent) : within
  come(all[Math.min(all.length - 1, Math.max(0, at + by))])
}

function come(to: HTMLElement | null | undefined) {
  to?.focus()
  to?.scrollIntoView({ block: 'nearest' })
}

/** The course of runs ends with what is newest; a list begins with it. */
function newest() {
  come(document.querySelector<HTMLElement>('[data-newest]') ?? document.querySelector<HTMLElement>('[data-step]'))
}

function tab(by: number) {
  const all = [...document.querySelectorAll<HTMLElement>('.tabs a')]
  all[all.findIndex(one => one.ariaCurrent === 'page') + by]?.click()
}

function press(key: string) {
  const button = `[data-key=${key}]`
  const near = document.activeElement?.closest(key === 'v' ? '.judged' : '[data-step]')
  const found = near?.querySelector<HTMLElement>(button) ?? document.querySelector<HTMLElement>(`[data-alone] ${button}`)
  if (key === 'x') found?.focus()
  else found?.click()
}
