import type { Now } from './api'
import { to } from './look'
import { notices as texts } from './strings'

/** What a browser shows of the page outside of it: the icon of its tab, and notifications. */

const [CALM, CALLS] = [['#12288d', '#fff'], ['#f3b417', '#15181d']] as const
const NAMED = 5 // issues that one names

/** Why there can be none; empty: there can. */
export async function allowNotices(): Promise<string> {
  if (!('Notification' in window)) return texts.unsupported
  if ((await Notification.requestPermission()) === 'granted') return ''
  return texts.blocked
}

export function notice(project: string, fresh: { issue: string; title: string }[]) {
  const more = fresh.length > NAMED ? `\n${texts.more(fresh.length - NAMED)}` : ''
  const body = fresh.slice(0, NAMED).map(({ issue, title }) => `${issue} ${title}`).join('\n') + more
  try {
    const told = new Notification(texts.heading(project, fresh.length), { body })
    told.onclick = () => {
      focus()
      history.pushState(null, '', fresh.length === 1 ? to.issue(fresh[0]!.issue) : '/') // the router follows it
      told.close()
    }
  } catch {
    // a phone's browser takes them from service workers alone
  }
}

/** The number that waits; where none does, the project's first letter. */
export function icon(project: string, waiting: number) {
  const [paper, ink] = waiting ? CALLS : CALM
  const sign = waiting ? (waiting > 9 ? '9+' : String(waiting)) : (/[\p{L}\p{N}]/u.exec(project)?.[0] ?? 'A').toUpperCase()
  const text = `<text x="16" y="24" font-family="system-ui, sans-serif" font-size="${sign.length > 1 ? 19 : 23}" font-weight="700" text-anchor="middle" fill="${ink}">${sign}</text>`
  const drawn = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${paper}"/>${text}</svg>`
  const link = document.querySelector<HTMLLinkElement>('link[rel=icon]')!
  const href = `data:image/svg+xml,${encodeURIComponent(drawn)}`
  if (link.href !== href) link.href = href
}

let own: string[] = []

/** Colours of the user's own, in the place of the page's. */
export function dress(colours: Now['project']['page']['colours']) {
  const { style } = document.documentElement
  own.forEach(name => style.removeProperty(name))
  own = Object.entries(colours).map(([name, [light, dark]]) => {
    style.setProperty(`--${name}`, CSS.supports('color', 'light-dark(#000, #fff)') ? `light-dark(${light}, ${dark})` : light!)
    return `--${name}`
  })
}
