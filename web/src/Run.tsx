import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import { api, asks, got, type Run as Told } from './api'
import { took } from './moments'
import { Checks } from './Review'
import { to } from './look'
import { Coded, H1, Loading, Mark, Pairs, Section, Trouble, useLooks, When, Words } from './parts'
import { run as texts, shared } from './strings'
import { lasting, money } from './wording'
import { Alive, Diff, Session, useLife } from './Work'

type Choice = { why?: string; others?: { agent: string; why: string }[]; slug?: string; timeout?: string }
type Verified = { at: string; tree: string | null; changed: boolean | null; results: Parameters<typeof Checks>[0]['checks'] | null }

export default function Run({ issue, run }: { issue: string; run: string }) {
  const asked = useQuery(asks.run(issue, run))
  const { data } = asked
  return (
    <>
      <H1 title={`${issue}/${run}`}><Link href={to.issue(issue)}>{issue}</Link>/{run}</H1>
      <Trouble of={asked} />
      {data ? <Shown issue={issue} name={run} told={data} /> : asked.isPending && <Loading />}
    </>
  )
}

function Shown({ issue, name, told }: { issue: string; name: string; told: Told }) {
  const { run, prompts, turns, rejected, commits } = told
  const choice = told.choice as unknown as Choice
  const verified = told.verified as unknown as Verified[]
  const looks = useLooks()
  const { sign, word, as } = looks.run(run.state)
  const { outcome } = run
  const signs = useLife(run)
  return (
    <>
      <p className={`pinned facts s-${as}`}>
        <span><Mark as={as} sign={sign}><b>{word}</b></Mark> {outcome?.verdict && <b>· {outcome.verdict.replaceAll('_', ' ')}</b>}</span>
        <span>{run.agent}</span>
        {(run.provider || run.model) && <span>{[run.provider, run.model].filter(Boolean).join('/')}</span>}
        {run.started_at && <span>{took(run, looks.until)}</span>}
        {run.tokens > 0 && <span>{shared.tokens(run.tokens)}</span>}
        {run.cost > 0 && <span>{money(run.cost)}</span>}
      </p>
      <div className={`stands s-${as}`}>
        <div>
          <p><Words text={run.why} /></p>
          {outcome && <blockquote><Words text={outcome.summary} /></blockquote>}
          {signs && <Alive signs={signs} />}
          {run.error && <p className="line bad">! <Words text={run.error} /></p>}
        </div>
      </div>
      <Diff issue={issue} run={name} title={texts.changed} />
      <Session issue={issue} run={name} record={run} signs={signs} />
      <Section name="words" title={texts.texts}>
        {prompts.length === 0 && <p className="quiet">{texts.noPrompt}</p>}
        {prompts.map(({ n, sent }) => {
          const turn = turns.filter(one => one.n === n).at(-1)
          return (
            <div key={n}>
              <Text issue={issue} run={name} what="prompts" n={n}>{texts.prompt(n, sent && <When at={sent} />)}</Text>
              {turn?.answered && <Text issue={issue} run={name} what="answers" n={n}>{texts.answer(n, <When at={turn.at} />)}</Text>}
              {turn && !turn.answered && <p className="quiet">{texts.lost(n)}</p>}
              {turn?.error && <p className="line bad">! {turn.error}</p>}
            </div>
          )
        })}
      </Section>
      {rejected.length > 0 && (
        <Section name="rejected" title={texts.rejected}>
          <ul>
            {rejected.map(({ at, n, why, then }, place) => (
              <li key={place}><When at={at} />{texts.reject(n, <Words text={why} />, then)}</li>
            ))}
          </ul>
        </Section>
      )}
      {(verified.length > 0 || commits.length > 0 || Boolean(outcome?.pointers.length)) && (
        <Section name="evidence" title={shared.evidence}>
          {verified.map(({ at, tree, changed, results }, place) => (
            <div key={place}>
              <p>
                <When at={at} />{texts.tree(<code>{tree}</code>)}
                {changed === false && <b>{texts.noChange}</b>}
              </p>
              {results && results.length > 0 && <Checks checks={results} />}
            </div>
          ))}
          <ul>
            {commits.map(commit => (
              <li key={commit}>{texts.commit(<code>{commit}</code>)}</li>
            ))}
            {outcome?.pointers.map(pointer => (
              <li key={pointer}><Words text={pointer} /></li>
            ))}
          </ul>
        </Section>
      )}
      <Section name="facts" title={texts.facts}>
        <Pairs
          of={[
            [texts.phase, texts.visit(run.phase, run.visit, run.attempt)],
            [texts.runner, [run.runner, choice.slug && texts.agent(choice.slug)].filter(Boolean).join(', ')],
            [texts.access, run.access],
            [texts.queued, <When key="planned" at={run.planned_at} />],
            [texts.agentWrote, run.last_agent_message_at && <When key="agent" at={run.last_agent_message_at} />],
            [texts.personWrote, run.last_human_message_at && <When key="person" at={run.last_human_message_at} />],
            [texts.timeLimit, choice.timeout && lasting(choice.timeout)],
            [texts.restarts, run.restarts > 0 && run.restarts],
            [texts.session, run.session && <code key="session">{run.session}</code>],
            [texts.decision, <Link key="trace" href={to.record(run.trace)}>{`#${run.trace}`}</Link>],
          ]}
        />
        <details>
          <summary data-step>{texts.why}</summary>
          <p>{texts.chosen(<b>{run.agent}</b>, choice.why)}</p>
          <ul>
            {choice.others?.map(({ agent, why }) => (
              <li key={agent}>{texts.others(<b>{agent}</b>, why)}</li>
            ))}
          </ul>
        </details>
      </Section>
      <p className="quiet"><Coded text={texts.terminal(run.run)} /></p>
    </>
  )
}

type Which = { issue: string; run: string; what: 'prompts' | 'answers'; n: number }

/** A text of a run, asked for when it is opened, and shown as what it is: text. */
function Text({ issue, run, what, n, children }: Which & { children: ReactNode }) {
  const [open, set] = useState(false)
  const asked = useQuery({
    queryKey: ['words', issue, run, what, n],
    queryFn: () => {
      const params = { params: { path: { issue, run, n: String(n) } } }
      return got(what === 'prompts' ? api.GET('/api/v1/runs/{issue}/{run}/prompts/{n}', params) : api.GET('/api/v1/runs/{issue}/{run}/answers/{n}', params))
    },
    enabled: open,
    staleTime: Infinity,
  })
  return (
    <details onToggle={event => set(event.currentTarget.open)}>
      <summary data-step>{children}</summary>
      <Trouble of={asked} />
      {asked.isLoading && <Loading />}
      {asked.data && (asked.data.text === null ? <p className="quiet">{texts.gone}</p> : <pre tabIndex={0}>{asked.data.text}</pre>)}
      {asked.data?.cut && <p className="quiet">{texts.cut}</p>}
    </details>
  )
}
