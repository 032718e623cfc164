import { useMutation, useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Link } from 'wouter'
import { act, type Act, asks, current, type Given, type Issue, queries, Refused, store, told, type Waiting, type Way } from './api'
import { count, evidence, figure, money, to } from './look'
import { Ago, Choice, Facts, Findings, Loading, useDraft, useSeen, When, Words } from './parts'

// --- approvals that can be taken back ---------------------------------------------------------------------------

const TAKE_BACK = 5000

type Sent = { issue: string; due: number; timer: number; failed?: string }
type Done = (said: string | null, error: unknown) => void

// They outlive their card: whoever goes on to the next page has approved all the same, and is told there if it failed.
const waiting = new Map<string, Sent>()
const sent = store<Sent[]>([])
const changed = () => sent.set([...waiting.values()])
const useWaiting = () => useSyncExternalStore(sent.on, sent.get)

addEventListener('beforeunload', event => sent.get().some(one => !one.failed) && event.preventDefault())

function sendSoon(issue: string, body: Act, done: Done) {
  if (waiting.has(issue) && !waiting.get(issue)?.failed) return
  const timer = window.setTimeout(() => {
    waiting.delete(issue)
    changed()
    act(issue, body).then(
      ({ said }) => done(said, null),
      (error: unknown) => {
        waiting.set(issue, { issue, due: 0, timer, failed: told(error) })
        changed()
        done(null, error)
      },
    )
  }, TAKE_BACK)
  waiting.set(issue, { issue, due: Date.now() + TAKE_BACK, timer })
  changed()
}

function takeBack(issue: string) {
  clearTimeout(waiting.get(issue)?.timer)
  waiting.delete(issue)
  changed()
}

function Left({ due }: { due: number }) {
  const [left, set] = useState(TAKE_BACK)
  useEffect(() => {
    const timer = setInterval(() => set(Math.max(0, due - Date.now())), 250)
    return () => clearInterval(timer)
  }, [due])
  return <span aria-hidden>{Math.ceil(left / 1000)} s</span>
}

/** What is about to be sent, wherever on the page a person is by then. */
export function Sending() {
  const sent = useWaiting()
  if (!sent.length) return null
  return (
    <div className="sending" role="status">
      {sent.map(({ issue, due, failed }) =>
        failed ? (
          <p key={issue}>
            ✕ <Link href={to.issue(issue)}>{issue}</Link> is not approved: {failed} <button onClick={() => takeBack(issue)}>Dismiss</button>
          </p>
        ) : (
          <p key={issue}>Approving {issue} in <Left due={due} /> <button onClick={() => takeBack(issue)}>Take back</button></p>
        ),
      )}
    </div>
  )
}

// --- acts -------------------------------------------------------------------------------------------------------

// --- answers that stand already ---------------------------------------------------------------------------------

const ANSWERS: Record<Given['answer'], [string, string]> = {
  approved: ['approved', 'the approval'],
  changes_requested: ['changes requested', 'the wish for changes'],
  answered: ['answered', 'the answer'],
}

/** An answer that stands in the tracker, and that no daemon has followed yet; and how it is called in a button. */
function useGiven({ issue, question }: Issue): [Given, Given['answer'], boolean] | null {
  const { data } = useQuery({ ...asks.answers(), enabled: question !== null, refetchOnMount: 'always' })
  const given = question && data?.items.find(one => one.issue === issue)
  return data && given ? [given, question.kind === 'input' ? 'answered' : given.answer, data.running] : null
}

type Came = { said: string | null; error: unknown; of: string | null }
const NOTHING: Came = { said: null, error: null, of: null }

/** What a person can do about an issue as it stands, and the words that go with it. */
export function Acts({ issue }: { issue: Issue }) {
  const [text, write] = useDraft(issue.issue)
  const [phase, pick] = useState('')
  const [looking, look] = useState(false)
  const [said, say] = useState(NOTHING)
  const [seen] = useSeen(issue.issue)
  const words = useRef<HTMLTextAreaElement>(null)
  const approving = useWaiting().some(one => one.issue === issue.issue && !one.failed)
  const { question, code, state, flags } = issue
  const [given, answer, running] = useGiven(issue) ?? [null, 'answered' as const, false]

  const done = (found: string | null, error: unknown) => {
    say({ said: found, error, of: question?.asked ?? null })
    if (error === null) write('')
    if (error instanceof Refused && error.status === 409) void queries.invalidateQueries()
    else void queries.invalidateQueries({ queryKey: ['answers'] })
  }
  const doing = useMutation({
    mutationFn: (body: Act) => act(issue.issue, body),
    onSuccess: ({ said }) => done(said, null),
    onError: error => done(null, error),
  })
  const send = (what: Act['do'], more: Partial<Act> = {}) => {
    say(NOTHING)
    const answers = ['approve', 'reject', 'answer'].includes(what)
    const asked = answers ? { asked: question?.asked ?? null, instead: given?.id ?? null } : {}
    const body: Act = { do: what, message: text, ...asked, ...more }
    if (what === 'approve') sendSoon(issue.issue, body, done)
    else doing.mutate(body)
  }
  const approve = () => {
    look(!looking && flags.length > 0)
    if (looking || !flags.length) send('approve', { flags, seen: seen.head ? seen : null })
  }
  const wanting = (then: () => void) => () => (text.trim() ? then() : words.current?.focus())

  const busy = doing.isPending || approving
  const sendWords = () => (asksApproval ? send('reject') : asksWords && send('answer'))
  const asksApproval = question?.kind === 'approval' && code === 'question'
  const asksWords = question?.kind === 'input' && (code === 'input' || code === 'question')
  const replace = given && <>Replace {ANSWERS[answer][1]} of <When at={given.at} /></>
  const options = asksWords ? (question.about === 'permission' ? ['yes', 'no'] : question.options) : []
  const choose = (option: string) =>
    question?.several ? write(text.trim() ? `${text.trim()}, ${option}` : option) : send('answer', { message: option })
  const parked = state === 'parked'
  if (state === 'closed') return null
  if (said.said !== null && said.of === (question?.asked ?? null)) {
    return (
      <div className="do">
        <p role="status">
          ✓ {said.said}; the daemon sees it at its next look. <button onClick={() => say(NOTHING)}>Say something else</button>
        </p>
      </div>
    )
  }
  return (
    <div className="do">
      <label>
        {asksApproval ? 'Words for the agent' : asksWords ? 'Your answer' : 'Words for whoever reads the issue'}
        <textarea ref={words} data-key="x" rows={2} maxLength={10_000} readOnly={busy} value={text} onChange={event => write(event.target.value)}
          onKeyDown={event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !busy && text.trim() && sendWords()} />
      </label>
      {looking && (
        <p className="line" role="alert">
          Its work touches <b>{flags.join(', ')}</b>. Look at it first; then say once more that you approve.
        </p>
      )}
      {given && (
        <p className="line" role="status">
          ✓ {ANSWERS[answer][0]} by {given.by === current()?.person ? 'you' : given.by} at <When at={given.at} />, counts{' '}
          {running ? 'at the next look of the daemon' : 'when the daemon runs'}
        </p>
      )}
      <div className="acts">
        {asksApproval && given?.answer !== 'approved' && (
          <>
            <button className="yes" data-key="a" disabled={busy} onClick={approve}>
              {looking ? `I have seen ${flags.length === 1 ? 'it' : 'them'}: approve` : replace ? <>{replace}: approve</> : 'Approve'} <kbd>a</kbd>
            </button>
            {looking && <button onClick={() => look(false)}>Not yet</button>}
          </>
        )}
        {asksApproval && given?.answer !== 'changes_requested' && (
          <button disabled={busy} onClick={wanting(() => send('reject'))} title="Wants words">
            {replace ? <>{replace}: ask for changes</> : 'Ask for changes'} <kbd>x</kbd>
          </button>
        )}
        {options.map(option => <button key={option} disabled={busy} onClick={() => choose(option)}>{option}</button>)}
        {asksWords && <button className="yes" disabled={busy} onClick={wanting(() => send('answer'))}>{replace ?? 'Answer'} <kbd>x</kbd></button>}
        {parked && <Retry policy={issue.policy} phase={phase} choose={pick} busy={busy} retry={() => send('retry', { phase: phase || null })} />}
        {code === 'paused' ? (
          <button data-key="t" disabled={busy} onClick={() => send('release')}>Release <kbd>t</kbd></button>
        ) : <button data-key="t" disabled={busy} onClick={() => send('take')}>Take <kbd>t</kbd></button>}
      </div>
      <Said error={said.error}>
        {doing.isPending
          ? 'being written to the tracker …'
          : approving && 'approved; it is sent in a moment, and can be taken back until then'}
      </Said>
    </div>
  )
}

function Said({ error, children }: { error: unknown; children: ReactNode }) {
  if (error === null) return <p role="status">{children}</p>
  return <p role="alert" className="line bad">Not done, and your words are still here: {told(error)}</p>
}

type Retrying = { policy: string | null; phase: string; choose: (phase: string) => void; busy: boolean; retry: () => void }

function Retry({ policy, phase, choose, busy, retry }: Retrying) {
  const { data } = useQuery({ ...asks.policy(policy ?? ''), enabled: policy !== null })
  return (
    <>
      <button className="yes" disabled={busy} onClick={retry}>Start afresh</button>
      <Choice
        label="with"
        className="inline"
        value={phase}
        choose={choose}
        of={[['', 'the phase where it ended'], ...(data?.phases ?? []).filter(one => one.kind !== 'end').map(({ name }) => [name, name] as const)]}
      />
    </>
  )
}

// --- what follows -----------------------------------------------------------------------------------------------

const REPLIES: Record<Way['answer'], string> = { approved: 'approve', changes_requested: 'changes', answered: 'answer', deadline: 'no answer' }

function leads({ answer, kind, target, visit, times, most, afresh, onto, by_pull_request, why }: Way, about: string): [string, string] {
  if (kind === 'close') return ['closed', onto ? (by_pull_request ? `by a pull request into ${onto}` : `lands on ${onto}`) : '']
  if (kind === 'park') return ['parked', answer === 'deadline' ? '' : (why ?? '')]
  if (kind === 'run') return [target, answer !== 'deadline' ? 'its run goes on' : about === 'permission' ? 'it is denied' : 'the agent is told to decide itself']
  if (kind === 'person') return [target, 'asks a person']
  return [target, times === null ? '' : `visit ${visit}; ${times} of ${most} in ${afresh ? 'a new' : 'this'} cycle`]
}

/** Where each answer leads, as the core would decide now. */
export function Follows({ issue: { question, due } }: { issue: Issue }) {
  if (!question?.follows.length) return null
  return (
    <ul className="follows" aria-label="What follows">
      {question.follows.map(way => {
        const [target, more] = leads(way, question.about)
        return (
          <li key={way.answer}>
            {REPLIES[way.answer]}{way.answer === 'deadline' && due && <> until <When at={due} /></>} → <b>{target}</b>{more && `, ${more}`}
          </li>
        )
      })}
    </ul>
  )
}

// --- cards ------------------------------------------------------------------------------------------------------

export type Shown = { issue: Waiting; gone: boolean }

export const Review = lazy(() => import('./Review').then(({ Review }) => ({ default: Review })))

function Folded({ issue }: { issue: string }) {
  const [open, set] = useState(false)
  return (
    <details onToggle={event => set(event.currentTarget.open)}>
      <summary>What was asked, what was done, what it changes</summary>
      {open && <Suspense fallback={<Loading />}><Review issue={issue} head="h4" /></Suspense>}
    </details>
  )
}

/** A question to a person with what is to be known before it is answered. */
export function Card({ issue, gone, dismiss }: Shown & { dismiss: () => void }) {
  const { issue: id, title, question, reason, priority, used, cycle, since, due } = issue
  const name = `card-${id}`
  return (
    <li data-step tabIndex={-1} className={gone ? 'card gone' : 'card'} aria-labelledby={name}>
      <h3 id={name}><Link href={to.issue(id)}>{id}</Link> <span>{title}</span></h3>
      <Facts
        of={[
          question?.phase ?? issue.phase,
          <>for <Ago at={since} /></>,
          due && <>until <When at={due} /></>,
          `P${priority}`,
          count(used.runs, 'run'),
          used.tokens > 0 && `${figure(used.tokens)} tokens`,
          used.cost > 0 && `cost ${money(used.cost)}`,
          cycle > 1 && `cycle ${cycle}`,
        ]}
      />
      <blockquote><Words text={question?.text ?? reason} /></blockquote>
      <Findings found={evidence(issue)} />
      {!gone && <Folded issue={id} />}
      <Follows issue={issue} />
      {gone ? (
        <p className="line">
          It waits for you no more: it was answered, here or elsewhere. <button onClick={dismiss}>Dismiss</button>
        </p>
      ) : <Acts issue={issue} />}
    </li>
  )
}
