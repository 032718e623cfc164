import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { asks, type Story } from './api'
import { Acts, Follows, Review } from './Card'
import { count, evidence, figure, money, span, to } from './look'
import { Choice, Empty, Facts, Findings, H1, Loading, Pairs, Section, Stands, Trouble, useNarrow, useWide, When, Words } from './parts'

const Course = lazy(() => import('./Course').then(({ Course }) => ({ default: Course })))
const TABS = [
  ['', 'Overview'],
  ['runs', 'Runs'],
  ['history', 'History'],
  ['usage', 'Usage'],
] as const
const FORMER: Record<string, string> = { why: 'history', evidence: '', landing: '' }

export default function Issue({ issue, tab: named }: { issue: string; tab: string }) {
  const tab = FORMER[named] ?? named
  const asked = useQuery(asks.issue(issue))
  const { data } = asked
  const wide = useWide()
  const stands = data?.issue
  return (
    <>
      <H1 title={`${issue} ${stands?.title ?? ''}`}>{issue} <span className="title">{stands?.title}</span></H1>
      <Trouble of={asked} />
      {data && stands ? (
        <>
          <p className={`pinned s-${stands.state}`}>
            <b><Stands state={stands.state} /></b> since <When at={stands.since} />:{' '}
            <Words text={stands.reason} />
            {stands.due && <>; {stands.question ? 'its deadline is' : 'until'} <When at={stands.due} /></>}
          </p>
          <div className={`stands s-${stands.state}`}>
            <div>
              <Facts
                of={[
                  stands.phase,
                  stands.policy && <Link href={to.policy(stands.policy)}>policy {stands.policy}</Link>,
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
              {!wide && <Follows issue={stands} />}
            </div>
          </div>
          <nav className="tabs" aria-label={`About ${issue}`}>
            {TABS.map(([name, word]) => (
              <Link key={name} href={to.issue(issue, name)} aria-current={tab === name ? 'page' : undefined}>{word}</Link>
            ))}
          </nav>
          <div className="tab"><Suspense fallback={<Loading />}>
            {tab === 'runs' ? (
              <Course issue={issue} policy={stands.policy} />
            ) : tab === 'usage' ? (
              <Used of={data} />
            ) : tab === 'history' ? (
              <History of={data} />
            ) : <Review issue={issue} />}
          </Suspense></div>
          <p className="quiet">The same in the terminal: <code>ashep why {issue}</code></p>
          {stands.state !== 'closed' && (
            <section className="answer" aria-label="What you can do" data-alone>
              <Acts issue={stands} />
              {wide && <Follows issue={stands} />}
            </section>
          )}
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
          {state ? <Stands state={state} /> : 'which is not known here'}
        </span>
      ))}
    </p>
  )
}

// --- history ----------------------------------------------------------------------------------------------------

const GAP = 30 * 60_000
const SHOWN = 300
const DEPTHS = [['', 'decisions'], ['everything', 'everything'], ['records', 'raw records']] as const

/** Agents that were never near to a run. */
const FAR = /; not [^;:]+: lacks the capability [^;]+/g

type Told = { seq: number; at: string; text: ReactNode; words: string }

function History({ of }: { of: Story }) {
  const [narrowed, narrow] = useNarrow()
  const depth = narrowed.get('depth') ?? ''
  const sentences = useMemo(
    () =>
      of.story
        .filter(({ decision }) => decision || depth)
        .map(({ seq, at, type, fact, reason }): Told => ({
          seq,
          at,
          words: `${fact} ${reason} ${type}`,
          text: <><Words text={fact} />{reason && <span className="quiet"> – <Words text={depth ? reason : reason.replace(FAR, '')} /></span>}</>,
        })),
    [of.story, depth],
  )
  const choice = <Choice label="Detail" value={depth} choose={one => narrow('depth', one)} of={DEPTHS} />
  return (
    <Section name="history" title="History, the newest first">
      {depth === 'records' ? <Records issue={of.issue.issue} choice={choice} /> : <Lines lines={sentences} word="line" choice={choice} />}
      {of.kept_since && <p className="quiet">The history begins on <When at={of.kept_since} />; what was before is archived.</p>}
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
      {asked.hasNextPage && <button onClick={() => void asked.fetchNextPage()} disabled={asked.isFetchingNextPage}>Load later records</button>}
    </>
  )
}

function Lines({ lines, word, choice }: { lines: Told[]; word: string; choice: ReactNode }) {
  const [text, type] = useState('')
  const [all, showAll] = useState(false)
  const wanted = text.toLowerCase()
  const found = lines.filter(({ words, seq }) => `${words} #${seq}`.toLowerCase().includes(wanted)).reverse()
  const shown = all ? found : found.slice(0, SHOWN)
  return (
    <>
      <form role="search" className="filter" onSubmit={event => event.preventDefault()}>
        <label>
          Filter
          <input type="search" value={text} onChange={event => type(event.target.value)} />
        </label>
        {choice}
        <span role="status">{text ? `${figure(found.length)} of ${count(lines.length, word)}` : count(lines.length, word)}</span>
      </form>
      {found.length === 0 && <Empty>{text ? 'No matches.' : 'Nothing has happened to it yet.'}</Empty>}
      <ol className="story">
        {shown.map((line, place) => {
          const after = shown[place - 1]
          const idle = after && !text ? Date.parse(after.at) - Date.parse(line.at) : 0
          return (
            <li key={line.seq} data-step tabIndex={-1}>
              {idle > GAP && <p className="gap">{span(idle)} without an event</p>}
              <When at={line.at} />
              <span>{line.text}</span>
              <Link href={to.record(line.seq)}>#{line.seq}</Link>
            </li>
          )
        })}
      </ol>
      {shown.length < found.length && <button onClick={() => showAll(true)}>Show {figure(found.length - shown.length)} earlier</button>}
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
