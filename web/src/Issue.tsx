import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { asks, type Story, type Verification } from './api'
import { Acts, Follows, Review } from './Card'
import { CHECKS, count, evidence, figure, money, span, STATES, to } from './look'
import { Choice, Empty, Facts, Findings, H1, Loading, Mark, Pairs, Section, Table, Trouble, useNarrow, When, Words } from './parts'

const Course = lazy(() => import('./Course').then(({ Course }) => ({ default: Course })))
const TABS = [
  ['', 'Overview'],
  ['why', 'Why'],
  ['runs', 'Runs'],
  ['evidence', 'Evidence'],
  ['landing', 'Landing'],
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
          <p className={`pinned s-${stands.state}`}>
            <Mark as={stands.state} sign={STATES[stands.state].sign}><b>{STATES[stands.state].word}</b></Mark> since <When at={stands.since} />:{' '}
            <Words text={stands.reason} />
            {stands.due && <>; {stands.question ? 'its deadline is' : 'until'} <When at={stands.due} /></>}
          </p>
          <div className={`stands s-${stands.state}`} data-alone>
            <div>
              <Facts
                of={[
                  stands.phase,
                  stands.policy && `policy ${stands.policy}`,
                  `${stands.type} P${stands.priority}`,
                  stands.run && <Link href={to.run(stands.run)}>{stands.run}</Link>,
                  count(data.usage.runs, 'run'),
                  data.usage.cost > 0 && `cost ${money(data.usage.cost)}`,
                  data.under_way.length > 0 && `under way: ${data.under_way.join(', ')}`,
                ]}
              />
              {stands.question && <blockquote><Words text={stands.question.text} /></blockquote>}
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
            ) : tab === 'landing' ? (
              <Landing of={data} />
            ) : tab === 'usage' ? (
              <Used of={data} />
            ) : tab === 'why' ? (
              <Why of={data} />
            ) : <Review issue={issue} />}
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
          <Link href={to.issue(issue)}>{issue}</Link> {type !== 'blocks' && type}{' '}
          {state ? <Mark as={state} sign={STATES[state].sign}>{STATES[state].word}</Mark> : 'which is not known here'}
        </span>
      ))}
    </p>
  )
}

// --- why --------------------------------------------------------------------------------------------------------

const GAP = 30 * 60_000
const SHOWN = 300
const DEPTHS = [['decisions', 'decisions'], ['', 'all sentences'], ['records', 'records']] as const

type Told = { seq: number; at: string; text: ReactNode; words: string }

function Why({ of }: { of: Story }) {
  const [narrowed, narrow] = useNarrow()
  const depth = narrowed.get('depth') ?? ''
  const sentences = useMemo(
    () =>
      of.story
        .filter(({ decision }) => decision || depth !== 'decisions')
        .map(({ seq, at, type, fact, reason }): Told => ({
          seq,
          at,
          words: `${fact} ${reason} ${type}`,
          text: <><Words text={fact} />{reason && <span className="quiet"> – <Words text={reason} /></span>}</>,
        })),
    [of.story, depth],
  )
  const choice = <Choice label="How deep" value={depth} choose={one => narrow('depth', one)} of={DEPTHS} />
  return (
    <Section name="why" title="Why">
      {depth === 'records' ? <Records issue={of.issue.issue} choice={choice} /> : <Lines lines={sentences} word="line" choice={choice} />}
      {of.kept_since && <p className="quiet">The story is kept from <When at={of.kept_since} /> on.</p>}
    </Section>
  )
}

function Records({ issue, choice }: { issue: string; choice: ReactNode }) {
  const asked = useInfiniteQuery({
    queryKey: ['records', issue],
    initialPageParam: 0,
    queryFn: ({ pageParam }) => asks.records(issue, pageParam),
    getNextPageParam: page => page.next ?? undefined,
  })
  const lines = (asked.data?.pages ?? []).flatMap(page => page.items).map(({ seq, at, kind, type, run }): Told => ({
    seq,
    at,
    words: `${type} ${kind} ${run ?? ''}`,
    text: <>{type} <span className="quiet">{kind}{run && ` ${run}`}</span></>,
  }))
  return (
    <>
      <Trouble of={asked} />
      {asked.isPending ? <Loading /> : <Lines lines={lines} word="record" choice={choice} />}
      {asked.hasNextPage && <button onClick={() => void asked.fetchNextPage()} disabled={asked.isFetchingNextPage}>Show what comes behind</button>}
    </>
  )
}

function Lines({ lines, word, choice }: { lines: Told[]; word: string; choice: ReactNode }) {
  const [text, type] = useState('')
  const [all, showAll] = useState(false)
  const wanted = text.toLowerCase()
  const found = lines.filter(({ words, seq }) => `${words} #${seq}`.toLowerCase().includes(wanted))
  const shown = all ? found : found.slice(-SHOWN)
  return (
    <>
      <form role="search" className="filter" onSubmit={event => event.preventDefault()}>
        <label>
          Only with
          <input type="search" value={text} onChange={event => type(event.target.value)} />
        </label>
        {choice}
        <span role="status">{text ? `${figure(found.length)} of ${count(lines.length, word)}` : count(lines.length, word)}</span>
      </form>
      {shown.length < found.length && (
        <button onClick={() => showAll(true)}>Show the {figure(found.length - shown.length)} before</button>
      )}
      {found.length === 0 && <Empty>{text ? 'No line has these words.' : 'Nothing happened to it yet.'}</Empty>}
      <ol className="story">
        {shown.map((line, place) => {
          const before = shown[place - 1]
          const idle = before && !text ? Date.parse(line.at) - Date.parse(before.at) : 0
          return (
            <li key={line.seq} data-step data-newest={place === shown.length - 1 || undefined} tabIndex={-1}>
              {idle > GAP && <p className="gap">{span(idle)} nothing</p>}
              <When at={line.at} />
              <span>{line.text}</span>
              <Link href={to.record(line.seq)}>#{line.seq}</Link>
            </li>
          )
        })}
      </ol>
    </>
  )
}

// --- evidence ---------------------------------------------------------------------------------------------------

type Check = { check_id: string; status: string; message: string; proves_nothing?: boolean; on_base?: boolean; cause?: string }

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
  return <Table heads={['Check', 'Found', 'What it says']} rows={checks.map(row)} />
}

function Evidence({ of: { verification, verification_log: log } }: { of: Story }) {
  return (
    <>
      <Section name="checks" title="Checks">
        {verification?.checks.length ? <Found of={verification} /> : <Empty>Nothing was verified. `ashep criteria` sets what is checked of an issue.</Empty>}
      </Section>
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

function Landing({ of: { landing, files, issue } }: { of: Story }) {
  return (
    <>
      <Section name="landing" title="Landing">
        {landing ? (
          <Pairs
            of={[
              ['Its work', WAYS[landing.state] ?? landing.state],
              ['Onto', landing.onto],
              ['Commit', landing.commit && <code>{landing.commit}</code>],
              ['Tried again', landing.due && <When at={landing.due} />],
            ]}
          />
        ) : <Empty>Its work is not on its way yet: it lands once its policy has come to close.</Empty>}
      </Section>
      {files && (
        <Section name="files" title="Files">
          <Facts of={issue.changes ? [count(issue.changes.files, 'file'), files.lines && `+${files.lines[0]} −${files.lines[1]} lines`] : []} />
          <Pairs
            of={[
              ['Created', files.created.join('\n')],
              ['Modified', files.modified.join('\n')],
              ['Deleted', files.deleted.join('\n')],
              ['Not named', files.more > 0 && figure(files.more)],
            ]}
          />
        </Section>
      )}
    </>
  )
}

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
