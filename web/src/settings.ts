import { store } from './api'

/** What a person chose for this browser. */

export const LETTERS = 'ashep-keys'
export const SCHEME = 'ashep-scheme'
export const NOTICES = 'ashep-notices'
export const shine = (scheme: string | null) => document.documentElement.setAttribute('data-scheme', scheme ?? 'system')

const TIMES = 'ashep-times'
export type Times = 'local' | 'relative' | 'utc'
const read = (): Times => (['relative', 'utc'] as const).find(one => one === localStorage.getItem(TIMES)) ?? 'local'

/** How moments are shown. */
export const times = store(read())
addEventListener('storage', ({ key }) => key === TIMES && times.set(read()))

export function chooseTimes(chosen: string) {
  localStorage.setItem(TIMES, chosen)
  times.set(read())
}

export type Asked = 'keys' | 'find'
/** The dialog that is open. */
export const dialog = store<Asked | null>(null)
