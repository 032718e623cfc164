/** What a person chose for this browser. */

export const LETTERS = 'ashep-keys'
export const SCHEME = 'ashep-scheme'
export const shine = (scheme: string | null) => document.documentElement.setAttribute('data-scheme', scheme ?? 'system')
