import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { asks, type Story } from './api'
import { Acts, Follows } from './Card'
import { CHECKS, count, evidence, figure, money, span, to } from './look'
import { Empty, Facts, Findings, H1, Loading, Mark, Pairs, Section, Stands, Table, Trouble, When, Words } from './parts'

const Course = lazy(() => import('./Course').then(({ Course }) => ({ default: Course })))
const TABS = [
  ['', 'Why'],
  ['runs', 'Runs'],
  ['evidence', 'Evidence'],
  ['usage', 'Usage'],
] as const

export default function Issue({ issue, tab }: { issue: string; tab: string }) {
  const asked = useQuery(asks.issue(issue))
  const { data } = asked
  const stands = data?.issue
  return (
    <>
      <H1 title={`${issue} ${stands?.title ?? ''}`}>{issue} <span className="title">{stands?.title}</span></H1>
      <Trouble of={asked} />
      {data && stands ? (
        <>
          <div className={`stands s-${stands.state}`} data-alone>
            <div>
              <p><Stands state={stands.state} />: <Words text={stands.question?.text ?? stands.reason} /></p>
              <Facts
                of={[
                  stands.phase,
                  <>since <When at={stands.since} /></>,
                  stands.due && <>until <When at={stands.due} /></>,
                  stands.policy && `policy ${stands.policy}`,
                  `${stands.type} P${stands.priority}`,
                  stands.run && <Link href={to.run(stands.run)}>{stands.run}</Link>,
                  data.under_way.length > 0 && `under way: ${data.under_way.join(', ')}`,
                ]}
              />
              <Dependencies of={data} />
              <Findings found={evidence(stands)} />
              <Follows issue={stands} />
            </div>
            <Acts issue={stands} />
          </div>
          <nav className="tabs" aria-label={`About ${issue}`}>
            {TABS.map(([name, word]) => (
              <Link key={name} href={to.issue(issue, name)} aria-current={tab === name ? 'page' : undefined}>{word}</Link>
            ))}
          </nav>
          <Suspense fallback={<Loading />}>
            {tab === 'runs' ? (
              <Course issue={issue} policy={stands.policy} />
            ) : tab === 'evidence' ? (
              <Evidence of={data} />
            ) : tab === 'usage' ? (
              <Used of={data} />
            ) : <Why of={data} />}
          </Suspense>
          <p className="quiet">The same in the terminal: <code>ashep why {issue}</code></p>
        </>
      ) : asked.isPending && <Loading />}
    </>
  )
}

function Dependencies({ of }: { of: Story }) {
  if (!of.depends_on.length) return null
  return (
    <p className="facts">
      Depends on{' '}
      {of.depends_on.map(({ issue, type, state }) => (
        <span key={issue + type}>
          <Link href={to.issue(issue)}>{issue}</Link> {type !== 'blocks' && type} {state ? <Stands state={state} /> : 'which is not known here'}
        </span>
      ))}
    </p>
  )
}

// --- why --------------------------------------------------------------------------------------------------------

const GAP = 30 * 60_000
const SHOWN = 300

function Why({ of: { story, kept_since } }: { of: Story }) {
  const [text, type] = useState('')
  const [all, showAll] = useState(false)
  const found = useMemo(() => {
    const wanted = text.toLowerCase()
    return story.filter(({ fact, reason, type, seq }) => `${fact} ${reason} ${type} #${seq}`.toLowerCase().includes(wanted))
  }, [story, text])
  const shown = all ? found : found.slice(-SHOWN)
  return (
    <Section name="why" title="Why">
      <form role="search" className="filter" onSubmit={event => event.preventDefault()}>
        <label>
          Only with
          <input type="search" value={text} onChange={event => type(event.target.value)} />
        </label>
        <span role="status">{text ? `${figure(found.length)} of ${count(story.length, 'line')}` : count(story.length, 'line')}</span>
      </form>
      {kept_since && <p className="quiet">The story is kept from <When at={kept_since} /> on.</p>}
      {shown.length < found.length && (
        <button onClick={() => showAll(true)}>Show the {figure(found.length - shown.length)} before</button>
      )}
      {found.length === 0 && <Empty>{text ? 'No line has these words.' : 'Nothing happened to it yet.'}</Empty>}
      <ol className="story">
        {shown.map((line, place) => {
          const before = shown[place - 1]
          const idle = before && !text ? Date.parse(line.at) - Date.parse(before.at) : 0
          return (
            <li key={line.seq} data-step tabIndex={-1}>
              {idle > GAP && <p className="gap">{span(idle)} nothing</p>}
              <When at={line.at} />
              <span>
                <Words text={line.fact} />
                {line.reason && (
                  <span className="quiet">
                    {' '}
                    – <Words text={line.reason} />
                  </span>
                )}
              </span>
              <Link href={to.record(line.seq)}>#{line.seq}</Link>
            </li>
          )
        })}
      </ol>
    </Section>
  )
}

// --- evidence ---------------------------------------------------------------------------------------------------

type Check = { check_id: string; type: string; status: string; message: string; proves_nothing?: boolean }
type Verification = { status: string; tree: string | null; commit: string | null; isolated: boolean | null; waived: string[]; checks: Check[]; log: string | null }
type Looked = { at: string; status: string; branch: string; commit: string; passed: number; failed: number; skipped: number; failures: string[] }

export function Checks({ checks, waived = [] }: { checks: Check[]; waived?: string[] }) {
  const row = ({ check_id, type, status, message, proves_nothing }: Check): [string, ...ReactNode[]] => [
    check_id,
    <>{check_id} <span className="quiet">{type}</span></>,
    <Mark {...(CHECKS[status] ?? CHECKS.skipped!)}>{status}</Mark>,
    <>
      {proves_nothing && status === 'passed' && <b>it passed before any work, too: it proves nothing; </b>}
      {waived.includes(check_id) && <b>a person let it pass; </b>}
      <Words text={message} />
    </>,
  ]
  return <Table heads={['Check', 'Found', 'What it says']} rows={checks.map(row)} />
}

function Evidence({ of }: { of: Story }) {
  const verification = of.verification as unknown as Verification | null
  const log = of.verification_log as unknown as Looked[]
  const { landing } = of
  return (
    <>
      <Section name="checks" title="Checks">
        {verification?.checks.length ? (
          <>
            <p>
              {verification.status}
              {verification.tree && <>, of the git tree <code>{verification.tree}</code></>}
              {verification.commit && <>, commit <code>{verification.commit}</code></>}
              {verification.isolated !== null && (verification.isolated ? ', in a sandbox' : ', without a sandbox')}
            </p>
            <Checks checks={verification.checks} waived={verification.waived} />
            {verification.log && <pre tabIndex={0}>{verification.log}</pre>}
          </>
        ) : <Empty>Nothing was verified. `ashep criteria` sets what is checked of an issue.</Empty>}
      </Section>
      {landing && (
        <Section name="landing" title="Landing">
          <Facts
            className=""
            of={[
              <b>{landing.state.replaceAll('_', ' ')}</b>,
              landing.onto && `onto ${landing.onto}`,
              landing.commit && <code>{landing.commit}</code>,
              landing.due && <>again at <When at={landing.due} /></>,
            ]}
          />
        </Section>
      )}
      {of.files && <Files of={of.files} />}
      {log.length > 0 && (
        <Section name="log" title="Verifications">
          <Table
            heads={['At', 'Found', 'Commit', 'Passed', 'Failed', 'Left out']}
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
        </Section>
      )}
    </>
  )
}

type Value = NonNullable<Story['files']>[string]
const lines = (value: Value) => (Array.isArray(value) ? value.map(one => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n') : String(value))

const Files = ({ of }: { of: NonNullable<Story['files']> }) => (
  <Section name="files" title="Files">
    <Pairs of={Object.entries(of).map(([name, value]) => [name.replaceAll('_', ' '), lines(value)])} />
  </Section>
)

// --- usage ------------------------------------------------------------------------------------------------------

const Used = ({ of: { usage, issue } }: { of: Story }) => (
  <Section name="usage" title="Usage">
    <Pairs
      of={[
        ['Runs', <Link href={`/runs?issue=${encodeURIComponent(issue.issue)}`}>{figure(usage.runs)}</Link>],
        ['Tokens', figure(usage.tokens)],
        ['Cost', money(usage.cost)],
        ['Cycles', issue.cycle],
      ]}
    />
  </Section>
)
