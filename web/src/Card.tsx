import { useMutation, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useRef, useState } from 'react'
import { Link } from 'wouter'
import { byWhom, give, Given, useOwn } from './Answered'
import { type Act, asks, type Given as Standing, type Issue, told, type Waiting, type Way } from './api'
import { evidence, to } from './look'
import { Ago, Choice, Facts, Findings, Loading, useDraft, useSeen, When, Words } from './parts'
import { answered, card as texts, shared } from './strings'
import { money } from './wording'

// --- answers that stand already ---------------------------------------------------------------------------------

/** An answer that stands in the tracker, and that no daemon has followed yet; and how it is called in a button. */
function useGiven({ issue, question }: Issue): [Standing, Standing['answer'], boolean] | null {
  const { data } = useQuery({ ...asks.answers(), enabled: question !== null, refetchOnMount: 'always' })
  const given = question && data?.items.find(one => one.issue === issue)
  return data && given ? [given, question.kind === 'input' ? 'answered' : given.answer, data.running] : null
}

/** What a person can do about an issue as it stands, and the words that go with it. */
export function Acts({ issue }: { issue: Issue }) {
  const [text, write] = useDraft(issue.issue)
  const [phase, pick] = useState('')
  const [looking, look] = useState(false)
  const [seen] = useSeen(issue.issue)
  const words = useRef<HTMLTextAreaElement>(null)
  const own = useOwn(issue)
  const { question, code, state, flags } = issue
  const [given, answer, running] = useGiven(issue) ?? [null, 'answered' as const, false]

  const doing = useMutation({ mutationFn: (body: Act) => give(issue, body, () => write('')) })
  const send = (what: Act['do'], more: Partial<Act> = {}) => {
    const answers = ['approve', 'reject', 'answer'].includes(what)
    const asked = answers ? { asked: question?.asked ?? null, instead: given?.id ?? null } : {}
    doing.mutate({ do: what, message: text, ...asked, ...more })
  }
  const approve = () => {
    look(!looking && flags.length > 0)
    if (looking || !flags.length) send('approve', { flags, seen: seen.head ? seen : null })
  }
  const wanting = (then: () => void) => () => (text.trim() ? then() : words.current?.focus())

  const busy = doing.isPending
  const sendWords = () => (asksApproval ? send('reject') : asksWords && send('answer'))
  const asksApproval = question?.kind === 'approval' && code === 'question'
  const asksWords = question?.kind === 'input' && (code === 'input' || code === 'question')
  const replace = given && texts.replace[answer](<When at={given.at} />)
  const options = asksWords ? (question.about === 'permission' ? ['yes', 'no'] : question.options) : []
  const choose = (option: string) =>
    question?.several ? write(text.trim() ? `${text.trim()}, ${option}` : option) : send('answer', { message: option })
  const parked = state === 'parked'
  if (state === 'closed') return null
  if (own && own.error === undefined) return <div className="do"><p role="status"><Given of={own} /></p></div>
  return (
    <div className="do">
      <label>
        {asksApproval ? texts.commentForAgent : asksWords ? texts.yourAnswer : texts.comment}
        <textarea ref={words} data-key="x" rows={2} maxLength={10_000} readOnly={busy} value={text} onChange={event => write(event.target.value)}
          onKeyDown={event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !busy && text.trim() && sendWords()} />
      </label>
      {looking && (
        <p className="line" role="alert">
          {texts.touches(<b>{flags.join(', ')}</b>)}
        </p>
      )}
      {given && (
        <p className="line" role="status">
          {texts.given(answered.by(answered.said[answer], byWhom(given.by), <When at={given.at} />), running ? answered.soon : answered.whenRuns)}
        </p>
      )}
      <div className="acts">
        {asksApproval && given?.answer !== 'approved' && (
          <>
            <button className="yes" data-key="a" disabled={busy} onClick={approve}>
              {looking ? texts.reviewed : replace ? texts.approveInstead(replace) : texts.approve} <kbd>a</kbd>
            </button>
            {looking && <button onClick={() => look(false)}>{texts.notYet}</button>}
          </>
        )}
        {asksApproval && given?.answer !== 'changes_requested' && (
          <button disabled={busy} onClick={wanting(() => send('reject'))} title={texts.needsComment}>
            {replace ? texts.changesInstead(replace) : texts.changes} <kbd>x</kbd>
          </button>
        )}
        {options.map(option => <button key={option} disabled={busy} onClick={() => choose(option)}>{option}</button>)}
        {asksWords && <button className="yes" disabled={busy} onClick={wanting(() => send('answer'))}>{replace ?? texts.answer} <kbd>x</kbd></button>}
        {parked && <Retry policy={issue.policy} phase={phase} choose={pick} busy={busy} retry={() => send('retry', { phase: phase || null })} />}
        {code === 'paused' ? (
          <button data-key="t" disabled={busy} onClick={() => send('release')}>{texts.handBack} <kbd>t</kbd></button>
        ) : <button data-key="t" disabled={busy} onClick={() => send('take')}>{texts.takeOver} <kbd>t</kbd></button>}
      </div>
      {own ? <p role="alert" className="line bad">{texts.failed(told(own.error))}</p> : <p role="status">{busy && texts.saving}</p>}
    </div>
  )
}

type Retrying = { policy: string | null; phase: string; choose: (phase: string) => void; busy: boolean; retry: () => void }

function Retry({ policy, phase, choose, busy, retry }: Retrying) {
  const { data } = useQuery({ ...asks.policy(policy ?? ''), enabled: policy !== null })
  return (
    <>
      <button className="yes" disabled={busy} onClick={retry}>{texts.retry}</button>
      <Choice
        label={texts.retryFrom}
        className="inline"
        value={phase}
        choose={choose}
        of={[['', texts.whereStopped], ...(data?.phases ?? []).filter(one => one.kind !== 'end').map(({ name }) => [name, name] as const)]}
      />
    </>
  )
}

// --- what follows -----------------------------------------------------------------------------------------------

function leads({ answer, kind, target, times, most, afresh, onto, by_pull_request, why }: Way, about: string): [string, string] {
  if (kind === 'close') return onto ? [by_pull_request ? texts.request : texts.merged, texts.into(onto, by_pull_request)] : [texts.closed, '']
  if (kind === 'park') return [texts.parked, answer === 'deadline' || !why ? '' : texts.why(why)]
  if (kind === 'run') return [target, answer !== 'deadline' ? texts.goesOn : about === 'permission' ? texts.withoutLeave : texts.agentDecides]
  if (kind === 'person') return [target, texts.asksPerson]
  return [answer === 'changes_requested' ? texts.back(target) : target, times === null ? '' : texts.round(times, most, afresh)]
}

/** Where each answer leads, as the core would decide now. */
export function Follows({ issue: { question, due } }: { issue: Issue }) {
  if (!question?.follows.length) return null
  return (
    <ul className="follows" aria-label={texts.follows}>
      {question.follows.map(way => {
        const [target, more] = leads(way, question.about)
        return (
          <li key={way.answer}>
            {way.answer === 'deadline' ? texts.noAnswer(due && <When at={due} />) : texts.replies[way.answer]}: <b>{target}</b>{more}
          </li>
        )
      })}
    </ul>
  )
}

// --- cards ------------------------------------------------------------------------------------------------------

export const Review = lazy(() => import('./Review').then(({ Review }) => ({ default: Review })))

function Folded({ issue }: { issue: string }) {
  const [open, set] = useState(false)
  return (
    <details onToggle={event => set(event.currentTarget.open)}>
      <summary>{texts.work}</summary>
      {open && <Suspense fallback={<Loading />}><Review issue={issue} head="h4" /></Suspense>}
    </details>
  )
}

/** A question to a person with what is to be known before it is answered. */
export function Card({ issue, desk = false }: { issue: Waiting; desk?: boolean }) {
  const Box = desk ? 'article' : 'li'
  const { issue: id, title, question, reason, priority, used, cycle, since, due } = issue
  const [name, phase] = [`card-${id}`, question?.phase ?? issue.phase]
  return (
    <Box data-step={desk ? undefined : true} data-alone={desk || undefined} tabIndex={-1} className="card" aria-labelledby={name}>
      <h3 id={name}><Link href={to.issue(id)}>{id}</Link> <span>{title}</span></h3>
      <Facts
        of={[
          phase && (issue.policy ? <Link href={to.policy(issue.policy)}>{phase}</Link> : phase),
          texts.waits(<Ago at={since} />),
          due && shared.until(<When at={due} />),
          `P${priority}`,
          shared.tries(used.runs),
          used.tokens > 0 && shared.tokens(used.tokens),
          used.cost > 0 && shared.cost(money(used.cost)),
          cycle > 1 && texts.cycle(cycle),
        ]}
      />
      <blockquote><Words text={question?.text ?? reason} /></blockquote>
      <Findings found={evidence(issue)} />
      <Folded issue={id} />
      <Follows issue={issue} />
      <Acts issue={issue} />
    </Box>
  )
}
