import { useEffect, useState } from 'react'
import { type Heard, stream } from './live'

export type Signs = { tokens: number; cost: number; heard: string | null; quiet?: number; tool?: string | null; tool_for?: number; retry_in?: number | null }

/** Signs of life of a run that goes on and is looked at, by a stream of this tab's own; a hidden tab has none. */
export function useSigns(run: string, goes: boolean): Signs | null {
  const [signs, set] = useState<Signs | null>(null)
  useEffect(() => {
    if (!goes) return
    let own: AbortController | null = null
    const look = () => {
      own?.abort()
      own = document.hidden ? null : new AbortController()
      const heard: Heard = (kind, found) => kind === 'signs' && set((found as Record<string, Signs>)[run] ?? null)
      if (own) void stream(own.signal, `?${new URLSearchParams({ run })}`, heard)
    }
    document.addEventListener('visibilitychange', look)
    look()
    return () => {
      document.removeEventListener('visibilitychange', look)
      own?.abort()
    }
  }, [run, goes])
  return goes ? signs : null
}
