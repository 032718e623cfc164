import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { ReactNode } from 'react'
import { api, asks, got, type RunReport, type Story, type Verification } from './api'
import { CHECKS, short, to } from './look'
import { Empty, Facts, type Head, Loading, Mark, Pairs, Section, Table, Trouble, When, Words } from './parts'
import { review as texts, shared } from './strings'
import { Diff } from './Work'

const PARTS = ['description', 'acceptance', 'design', 'notes'] as const
const OLDER = 3

/** What a person reads before they answer: what was asked, what agents say they did, and the sum of the change. */
export function Review({ issue, head }: { issue: string; head?: Head }) {
  const asked = useQuery({ queryKey: ['work', issue], queryFn: () => got(api.GET('/api/v1/issues/{issue}/work', { params: { path: { issue } } })) })
  const story = useQuery(asks.issue(issue))
  const { data } = asked
  const parts = PARTS.filter(name => data?.words[name])
  return (
    <div className="review">
      <Trouble of={asked} />
      {asked.isLoading && <Loading />}
      {data && (
        <>
          <Section name={`asked-${issue}`} title={texts.asked} head={head}>
            {data.words.error && <p className="quiet">{data.words.error}</p>}
            {!data.words.error && parts.length === 0 && <p className="quiet">{texts.titleOnly}</p>}
            {parts.map(name => (
              <div key={name} className="text">{texts.texts[name] && <b>{texts.texts[name]}</b>}<p><Words text={data.words[name]!} /></p></div>
            ))}
          </Section>
          <Section name={`done-${issue}`} title={texts.done} head={head}>
            {data.summaries.length === 0 && <p className="quiet">{texts.noReport}</p>}
            {data.summaries.slice(0, OLDER).map(one => <Report key={one.run} of={one} />)}
            {data.summaries.length > OLDER && (
              <details><summary data-step>{texts.earlierReports}</summary>{data.summaries.slice(OLDER).map(one => <Report key={one.run} of={one} />)}</details>
            )}
          </Section>
        </>
      )}
      {!asked.isLoading && story.data && <Evidence of={story.data} head={head} />}
      {!asked.isLoading && <Diff issue={issue} title={texts.changes} head={head} judged={story.data !== undefined && story.data.issue.state !== 'closed'} />}
      {story.data && <Landing of={story.data} head={head} />}
    </div>
  )
}

const Report = ({ of: { run, phase, agent, ended_at, result, summary } }: { of: RunReport }) => (
  <div className="text">
    <Facts of={[<Link href={to.run(run)}>{short(run)}</Link>, phase, agent, <b>{result}</b>, <When at={ended_at} />]} />
    <p><Words text={summary} /></p>
  </div>
)

// --- evidence ---------------------------------------------------------------------------------------------------

type Check = { check_id: string; status: string; message: string; proves_nothing?: boolean; on_base?: boolean; cause?: string }

const rank = ({ status }: Check) => (status === 'failed' || status === 'error' ? 0 : 1)

/** Checks of a verification; what failed stands first. */
export function Checks({ checks, waived = [] }: { checks: Check[]; waived?: string[] }) {
  const row = ({ check_id, status, message, proves_nothing, on_base, cause }: Check): [string, ...ReactNode[]] => [
    check_id,
    check_id,
    <Mark {...(CHECKS[status] ?? CHECKS.skipped!)}>{status}</Mark>,
    <>
      {proves_nothing && status === 'passed' && <b>{texts.provesNothing}</b>}
      {on_base && <b>{texts.onBase(cause)}</b>}
      {waived.includes(check_id) && <b>{texts.waived}</b>}
      <Words text={message} />
    </>,
  ]
  return <Table heads={[texts.check, shared.result, texts.details]} rows={[...checks].sort((one, other) => rank(one) - rank(other)).map(row)} />
}

function Evidence({ of: { issue: { issue }, usage, verification, verification_log: log }, head }: { of: Story; head: Head }) {
  return (
    <Section name={`checks-${issue}`} title={texts.checks} head={head}>
      {verification?.checks.length ? <Found of={verification} /> : <Empty>{texts.unchecked(usage.runs)}</Empty>}
      {log.length > 1 && (
        <details>
          <summary data-step>{texts.earlierChecks}</summary>
          <Table
            heads={texts.heads}
            numbers={3}
            rows={log.map((one, place) => [
              `${place}`,
              <When at={one.at} />,
              one.status,
              <><code>{one.commit}</code> <span className="quiet">{one.branch}</span></>,
              one.passed,
              `${one.failed} ${one.failures.join(', ')}`,
              one.skipped,
            ])}
          />
        </details>
      )}
    </Section>
  )
}

const Found = ({ of: { status, tree, commit, isolated, checks, waived, log } }: { of: Verification }) => (
  <>
    <p>
      {status}
      {tree && texts.tree(<code>{tree}</code>)}
      {commit && texts.commit(<code>{commit}</code>)}
      {isolated !== null && texts.sandbox(isolated)}
    </p>
    <Checks checks={checks} waived={waived} />
    {log && <pre tabIndex={0}>{log}</pre>}
  </>
)

// --- landing ----------------------------------------------------------------------------------------------------

function Landing({ of: { landing, issue: { issue } }, head }: { of: Story; head: Head }) {
  if (!landing) return null
  return (
    <Section name={`landing-${issue}`} title={texts.landing} head={head}>
      <Pairs
        of={[
          [texts.pairs.work, texts.ways[landing.state] ?? landing.state],
          [texts.pairs.onto, landing.onto],
          [texts.pairs.commit, landing.commit && <code>{landing.commit}</code>],
          [texts.pairs.retry, landing.due && <When at={landing.due} />],
        ]}
      />
    </Section>
  )
}
