import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import { act, type Act, asks, current, type Issue, queries, Refused, store, type Story, told, type Waiting } from './api'
import { STATES, to } from './look'
import { useDraft, When, Words } from './parts'
import { answered as texts, shared } from './strings'

const TAKE_BACK = 5000
const STAYS = 30_000 // ms, once it is known what an answer led to
const SETTLES = 600 // ms in which what moved up under the pointer takes no click

/** What a person has done here, to what stood there then: to be sent at `due`, sent (0), or not done (`error`). */
type Own = { issue: string; title: string; stood: string; asked: string | null; did: Act['do']; due: number; timer: number; error?: unknown }

const stood = ({ code, question }: Issue) => `${code} ${question?.asked ?? ''}`

const own = new Map<string, Own>()
const writing = new Set<string>()
const all = store<Own[]>([])
let moved = 0
const useAll = () => useSyncExternalStore(all.on, all.get)

function keep(one: Own) {
  own.set(one.issue, one)
  all.set([...own.values()])
}

export function forget(issue: string) {
  clearTimeout(own.get(issue)?.timer)
  if (own.delete(issue)) all.set([...own.values()])
}

addEventListener('beforeunload', event => all.get().some(one => one.due) && event.preventDefault())

/** What was done here about an issue as it stands, or could not be. */
export function useOwn(issue: Issue): Own | undefined {
  return useAll().find(one => one.issue === issue.issue && (one.error !== undefined || one.stood === stood(issue)))
}

/** Writes what a person does, an approval once it cannot be taken back any more; `done` once it is written. */
export async function give(issue: Issue, body: Act, done: () => void) {
  if (own.get(issue.issue)?.due || writing.has(issue.issue) || performance.now() - moved < SETTLES) return
  const one: Own = { issue: issue.issue, title: issue.title, stood: stood(issue), asked: issue.question?.asked ?? null, did: body.do, due: 0, timer: 0 }
  const write = async () => {
    writing.add(issue.issue)
    try {
      await act(issue.issue, body)
      moved = performance.now()
      keep(one)
      done()
    } catch (error) {
      keep({ ...one, error })
      if (error instanceof Refused && error.status === 409) return queries.invalidateQueries()
    } finally {
      writing.delete(issue.issue)
    }
    return queries.invalidateQueries({ queryKey: ['answers'] })
  }
  forget(issue.issue)
  if (body.do !== 'approve') return write()
  moved = performance.now()
  keep({ ...one, due: Date.now() + TAKE_BACK, timer: window.setTimeout(() => void write(), TAKE_BACK) })
}

// --- in a line --------------------------------------------------------------------------------------------------

const ANSWERS = new Set<Act['do']>(['approve', 'reject', 'answer'])
const LANDS = new Set(['finishing', 'landing', 'landing_verify', 'landing_queue'])

export const byWhom = (by: string) => (by === current()?.person ? texts.you : by)

/** What became of an issue once it was answered, and whether that is the end of it. */
function outcome({ issue: { state, code, phase, reason, question }, landing, answered }: Story, asked: string | null, runs: boolean): [string, boolean] {
  if (state === 'person' && code !== 'pull_request' && (question?.asked ?? null) === asked) return ['…', false]
  if (state === 'closed' && landing?.state === 'landed') return [texts.merged(landing.onto, landing.commit?.slice(0, 7)), true]
  if (state === 'closed') return [landing?.state === 'branch' ? texts.onBranch : texts.closed, true]
  if (code === 'pull_request') return [texts.pullRequest, true]
  if (landing || LANDS.has(code)) {
    const waits = landing?.state === 'waits'
    const what = waits ? texts.blocked(reason) : landing?.onto ? texts.landing(landing.onto) : texts.closing
    return [`${what}${runs ? (waits ? '' : texts.goesOn) : texts.later}`, false]
  }
  if (state === 'parked' || state === 'not_eligible') return [`${STATES[state].word}: ${reason}`, true]
  return [phase ? (answered?.answer === 'changes_requested' ? texts.back : texts.on)(phase) : reason, true]
}

function Left({ due }: { due: number }) {
  const [left, set] = useState(TAKE_BACK)
  useEffect(() => {
    const timer = setInterval(() => set(Math.max(0, due - Date.now())), 250)
    return () => clearInterval(timer)
  }, [due])
  return <span aria-hidden>{texts.left(Math.ceil(left / 1000))}</span>
}

/** Takes an approval back that was not sent yet; its card is there again, with its words. */
function Undo({ issue, due }: { issue: string; due: number }) {
  const undo = () => {
    forget(issue)
    const back = () => document.getElementById(`item-${issue}`) ?? document.getElementById(`card-${issue}`)?.closest<HTMLElement>('.card')
    requestAnimationFrame(() => back()?.focus({ preventScroll: true }))
  }
  return <button onClick={undo}>{texts.undo} <Left due={due} /></button>
}

/** The answer that was given here, until the daemon has followed it. */
export function Given({ of: { issue, did, due }, named = false }: { of: Own; named?: boolean }) {
  const { data } = useQuery(asks.now())
  return (
    <>
      ✓ {named && <Link href={to.issue(issue)}>{issue}</Link>} {texts.byYou(texts.did[did])}
      {due ? <> <Undo issue={issue} due={due} /></> : (
        <> · {data?.daemon.running ? texts.soon : texts.whenRuns} <button onClick={() => forget(issue)}>{ANSWERS.has(did) ? texts.edit : texts.other}</button></>
      )}
    </>
  )
}

const outcomes = new Map<string, string>() // what came of it first: an issue goes on from there

/** By whom a question was answered that is asked no more, what that led to, and for how long that is told. */
function Gone({ issue, asked, did, input, end }: { issue: string; asked: string | null; did: Act['do'] | undefined; input: boolean; end: () => void }) {
  const { data, isError } = useQuery(asks.issue(issue))
  const now = useQuery(asks.now())
  const [found, over] = data ? outcome(data, asked, Boolean(now.data?.daemon.running)) : ['', isError]
  const key = `${issue} ${asked}`
  if (over && !outcomes.has(key)) outcomes.set(key, found)
  const text = outcomes.get(key) ?? found
  const [draft] = useDraft(issue)
  const answered = data?.answered && data.answered.at >= (asked ?? '') ? data.answered : null
  const ends = useRef(end)
  ends.current = end
  useEffect(() => {
    if (!over || draft) return
    const timer = setTimeout(() => ends.current(), STAYS)
    return () => clearTimeout(timer)
  }, [over, draft])
  const word = answered && (input ? texts.said.answered : texts.said[answered.answer as keyof typeof texts.said])
  return (
    <>
      {answered || did ? '✓' : '–'} <Link href={to.issue(issue)}>{issue}</Link>{' '}
      {answered ? texts.by(word, byWhom(answered.by), <When at={answered.at} />) : did ? texts.byYou(texts.did[did]) : texts.moved}
      {text && ` → ${text}`}
      {draft && <>{texts.unsent(<Words text={draft} />)}<button onClick={end}>{shared.dismiss}</button></>}
    </>
  )
}

const isAnswer = ({ did, error }: Own) => error === undefined && (ANSWERS.has(did) || did === 'release')

/** Whether it was answered here as it stands, and so waits no more for a person. */
export function useIsAnswered(): (issue: Issue) => boolean {
  const mine = useAll().filter(isAnswer)
  return issue => mine.some(one => one.issue === issue.issue && one.stood === stood(issue))
}

type Lines = { gone: Waiting[]; waiting: Waiting[]; end: (issue: string) => void }

/** What was answered, a line each: here, and meanwhile elsewhere. */
export function Answered({ gone, waiting, end }: Lines) {
  const mine = useAll().filter(isAnswer)
  const open = new Map(waiting.map(one => [one.issue, one]))
  const stale = mine.filter(one => open.has(one.issue) && stood(open.get(one.issue)!) !== one.stood)
  useEffect(() => stale.forEach(one => forget(one.issue)))
  const others = gone.filter(({ issue }) => !mine.some(one => one.issue === issue))
  const here = mine.filter(one => !stale.includes(one))
  if (!here.length && !others.length) return null
  return (
    <ul className="answered" aria-label={texts.list} aria-live="polite">
      {here.map(one => (
        <Line key={one.issue} title={one.title}>
          {open.has(one.issue) ? <Given of={one} named /> : <Gone {...one} input={one.did === 'answer'} end={() => end(one.issue)} />}
        </Line>
      ))}
      {others.map(({ issue, title, question }) => (
        <Line key={issue} title={title}>
          <Gone issue={issue} asked={question?.asked ?? null} did={undefined} input={question?.kind === 'input'} end={() => end(issue)} />
        </Line>
      ))}
    </ul>
  )
}

/** Who answered by keys goes on from here: the card that had the focus is not there any more. */
function Line({ title, children }: { title: string; children: ReactNode }) {
  const line = useRef<HTMLLIElement>(null)
  useEffect(() => {
    if (document.activeElement === document.body) line.current?.focus({ preventScroll: true })
  }, [])
  return <li ref={line} tabIndex={-1} title={title}><p>{children}</p></li>
}

// --- wherever a person is by then -------------------------------------------------------------------------------

const news = store('')
let until = 0

/** Says what an act has done, in sight. */
export function say(text: string) {
  news.set(text)
  clearTimeout(until)
  until = window.setTimeout(() => news.set(''), TAKE_BACK)
}

/** What is about to be sent, was not done, or has just been done; where the issue is in sight, that is said there. */
export function Sending() {
  const [place] = useLocation()
  const back = new URLSearchParams(useSearch()).has('at')
  const text = useSyncExternalStore(news.on, news.get)
  const inSight = (issue: string) => (place === '/' ? !back : `${place}/`.startsWith(`${to.issue(issue)}/`))
  const sent = useAll().filter(one => (one.due || (one.error !== undefined && one.did === 'approve')) && !inSight(one.issue))
  return (
    <div className="sending" role="status" hidden={!sent.length && !text}>
      {text && <p>✓ {text}</p>}
      {sent.map(({ issue, due, error }) =>
        error === undefined ? <p key={issue}>{texts.approved(issue)}<Undo issue={issue} due={due} /></p> : (
          <p key={issue}>✕ {texts.failed(<Link href={to.issue(issue)}>{issue}</Link>, told(error))}<button onClick={() => forget(issue)}>{shared.dismiss}</button></p>
        ),
      )}
    </div>
  )
}
