import type { Now } from './api'
import { NOTICES } from './settings'
import { frame } from './strings'

/** What a tab of the browser says: its title, its icon, and, where a person wants them, notifications. */

let [title, project, waiting] = ['', '', 0]
let known: Set<string> | null = null

export function entitle(page: string) {
  title = page.replace(/^\(\d+\) /, '') // the number is that of every page
  show()
}

function show() {
  document.title = `${waiting ? `(${waiting}) ` : ''}${project || frame.product}${title && ` · ${title}`}`
}

/** Whether a person is to be told of what is new: then a tab that nobody sees goes on reading. */
export const notifies = () => 'Notification' in window && Notification.permission === 'granted' && localStorage.getItem(NOTICES) === 'on'

/** `speaks`: of all tabs this one tells a person what is new. */
export function announce(now: Now, speaks: boolean) {
  ;[project, waiting] = [now.project.name, now.waiting.length]
  show()
  const [{ colours }, name, many] = [now.project.page, project, waiting]
  const later = import('./notices').catch(() => null) // a server that is away
  void later.then(found => (found?.icon(name, many), found?.dress(colours)))
  const asks = new Map(now.waiting.map(one => [`${one.issue} ${one.question?.asked ?? ''}`, one]))
  const fresh = [...asks].filter(([key]) => known && !known.has(key)).map(([, one]) => one)
  known = new Set(asks.keys())
  if (fresh.length && speaks && notifies() && (document.hidden || !document.hasFocus())) void later.then(found => found?.notice(name, fresh))
}
