import { createElement, Fragment, type ReactNode } from 'react'

/** How lengths of time, numbers and sentences are put into words; the words themselves stand in strings.ts. */

/** A sentence with links, moments or marks in it. */
export const sentence = (texts: TemplateStringsArray, ...parts: ReactNode[]) =>
  createElement(Fragment, null, ...texts.flatMap((text, place) => [text, parts[place]]))

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function span(length: number): string {
  const ms = Math.max(0, length)
  if (ms < MINUTE) return `${Math.floor(ms / 1000)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  const [large, small, unit, part] = ms < DAY ? [HOUR, MINUTE, 'h', 'min'] : [DAY, HOUR, 'd', 'h']
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)} ${unit}${rest ? ` ${rest} ${part}` : ''}`
}

/** A length of time as JSON has it (PT1H30M). */
export function lasting(iso: string): string {
  const [, days, hours, minutes, seconds] = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(iso) ?? []
  const ms = Number(days ?? 0) * DAY + Number(hours ?? 0) * HOUR + Number(minutes ?? 0) * MINUTE + Number(seconds ?? 0) * 1000
  return ms ? span(ms) : iso
}

const number = new Intl.NumberFormat('en-GB')
export const figure = (value: number) => number.format(value)
/** A noun for so many things, and with its number. */
export const noun = (many: number, one: string, more = `${one}s`) => (many === 1 ? one : more)
export const plural = (many: number, one: string, more?: string) => `${figure(many)} ${noun(many, one, more)}`
const cents = new Intl.NumberFormat('en-GB', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
/** Dollars; nothing where nobody knows the cost. */
export const money = (cost: number) => (cost <= 0 ? '' : cost < 0.01 ? '<$0.01' : `$${cents.format(cost)}`)
