import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { ReactNode } from 'react'
import { asks, type RunReport, type Story, type Verification } from './api'
import { CHECKS, short, to } from './look'
import { Empty, Facts, type Head, Loading, Mark, Pairs, Section, Table, Trouble, When, Words } from './parts'
import { Diff } from './Work'

const TEXTS = [['description', ''], ['acceptance', 'Accepted when'], ['design', 'Design'], ['notes', 'Notes']] as const
const OLDER = 3

/** What a person reads before they answer: what was asked, what agents say they did, and the sum of the change. */
export function Review({ issue, head }: { issue: string; head?: Head }) {
  const asked = useQuery(asks.work(issue))
  const story = useQuery(asks.issue(issue))
  const { data } = asked
  const texts = TEXTS.filter(([name]) => data?.words[name])
  return (
    <div className="review">
      <Trouble of={asked} />
      {asked.isLoading && <Loading />}
      {data && (
        <>
          <Section name={`asked-${issue}`} title="Asked" head={head}>
            {data.words.error && <p className="quiet">{data.words.error}</p>}
            {!data.words.error && texts.length === 0 && <p className="quiet">Its title is all that it says.</p>}
            {texts.map(([name, word]) => (
              <div key={name} className="text">{word && <b>{word}</b>}<p><Words text={data.words[name]!} /></p></div>
            ))}
          </Section>
          <Section name={`done-${issue}`} title="Done" head={head}>
            {data.summaries.length === 0 && <p className="quiet">No agent has reported yet.</p>}
            {data.summaries.slice(0, OLDER).map(one => <Report key={one.run} of={one} />)}
            {data.summaries.length > OLDER && (
              <details><summary data-step>Earlier reports</summary>{data.summaries.slice(OLDER).map(one => <Report key={one.run} of={one} />)}</details>
            )}
          </Section>
        </>
      )}
      {!asked.isLoading && story.data && <Evidence of={story.data} head={head} />}
      {!asked.isLoading && <Diff issue={issue} title="Changes" head={head} judged={story.data !== undefined && story.data.issue.state !== 'closed'} />}
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
      {proves_nothing && status === 'passed' && <b>it passed before any work, too: it proves nothing; </b>}
      {on_base && <b>it fails on the base, too{cause && ` (likely cause: ${cause})`}: no work is to blame; </b>}
      {waived.includes(check_id) && <b>a person let it pass; </b>}
      <Words text={message} />
    </>,
  ]
  return <Table heads={['Check', 'Result', 'Details']} rows={[...checks].sort((one, other) => rank(one) - rank(other)).map(row)} />
}

function Evidence({ of: { issue: { issue }, usage, verification, verification_log: log }, head }: { of: Story; head: Head }) {
  return (
    <Section name={`checks-${issue}`} title="Checks" head={head}>
      {verification?.checks.length ? <Found of={verification} /> : <Empty>{`${usage.runs ? 'No test ran: nobody but an agent says that this works' : 'Nothing is checked yet'}. \`ashep criteria\` sets what is checked of an issue.`}</Empty>}
      {log.length > 1 && (
        <details>
          <summary data-step>Earlier verifications</summary>
          <Table
            heads={['At', 'Result', 'Commit', 'Passed', 'Failed', 'Skipped']}
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
      {tree && <>, of the git tree <code>{tree}</code></>}
      {commit && <>, commit <code>{commit}</code></>}
      {isolated !== null && (isolated ? ', in a sandbox' : ', without a sandbox')}
    </p>
    <Checks checks={checks} waived={waived} />
    {log && <pre tabIndex={0}>{log}</pre>}
  </>
)

// --- landing ----------------------------------------------------------------------------------------------------

const WAYS: Record<string, string> = {
  queued: 'waits for its turn to land',
  integrating: 'is brought onto the newest base',
  verifying: 'is checked as it is to land',
  moving: 'stands on the newest base; the branch is to follow',
  opening: 'its pull request is being opened',
  pull_request: 'is to be merged by people',
  waits: 'waits for the base',
  landed: 'landed',
  branch: 'stays on its branch',
  unchanged: 'landed nowhere: nothing was changed',
}

function Landing({ of: { landing, issue: { issue } }, head }: { of: Story; head: Head }) {
  if (!landing) return null
  return (
    <Section name={`landing-${issue}`} title="Landing" head={head}>
      <Pairs
        of={[
          ['Its work', WAYS[landing.state] ?? landing.state],
          ['Onto', landing.onto],
          ['Commit', landing.commit && <code>{landing.commit}</code>],
          ['Tried again', landing.due && <When at={landing.due} />],
        ]}
      />
    </Section>
  )
}
