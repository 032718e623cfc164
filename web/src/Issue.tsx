import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { api, asks, got, type Story } from './api'
import { Acts, Follows, Review } from './Card'
import { evidence, to } from './look'
import { Choice, Coded, Empty, Facts, Findings, H1, Loading, Pairs, Section, Stands, Trouble, useNarrow, useWide, When, Words } from './parts'
import { issue as texts, shared } from './strings'
import { figure, money, span } from './wording'

const Course = lazy(() => import('./Course').then(({ Course }) => ({ default: Course })))
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
            <b><Stands state={stands.state} /></b>{texts.sinceThen(<When at={stands.since} />, <Words text={stands.reason} />)}
            {stands.due && texts.due(stands.question !== null, <When at={stands.due} />)}
          </p>
          <div className={`stands s-${stands.state}`}>
            <div>
              <Facts
                of={[
                  stands.phase,
                  stands.policy && <Link href={to.policy(stands.policy)}>{texts.policy(stands.policy)}</Link>,
                  `${stands.type} P${stands.priority}`,
                  stands.run && <Link href={to.run(stands.run)}>{stands.run}</Link>,
                  shared.tries(data.usage.runs),
                  data.usage.cost > 0 && shared.cost(money(data.usage.cost)),
                  data.under_way.length > 0 && texts.underWay(data.under_way),
                ]}
              />
              {stands.question && <blockquote><Words text={stands.question.text} /></blockquote>}
              <Dependencies of={data} />
              <Findings found={evidence(stands)} />
              {!wide && <Follows issue={stands} />}
            </div>
          </div>
          <nav className="tabs" aria-label={texts.about(issue)}>
            {texts.tabs.map(([name, word]) => (
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
          <p className="quiet"><Coded text={texts.terminal(issue)} /></p>
          {stands.state !== 'closed' && (
            <section className="answer" aria-label={texts.acts} data-alone>
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
      {texts.dependsOn}
      {of.depends_on.map(({ issue, type, state }) => (
        <span key={issue + type}>
          <Link href={to.issue(issue)}>{issue}</Link> {type !== 'blocks' && type}{' '}
          {state ? <Stands state={state} /> : texts.unknown}
        </span>
      ))}
    </p>
  )
}

// --- history ----------------------------------------------------------------------------------------------------

const GAP = 30 * 60_000
const SHOWN = 300

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
  const choice = <Choice label={texts.detail} value={depth} choose={one => narrow('depth', one)} of={texts.depths} />
  return (
    <Section name="history" title={texts.history}>
      {depth === 'records' ? <Records issue={of.issue.issue} choice={choice} /> : <Lines lines={sentences} word="line" choice={choice} />}
      {of.kept_since && <p className="quiet">{texts.keptSince(<When at={of.kept_since} />)}</p>}
    </Section>
  )
}

function Records({ issue, choice }: { issue: string; choice: ReactNode }) {
  const asked = useInfiniteQuery({
    queryKey: ['records', issue],
    initialPageParam: 0,
    queryFn: ({ pageParam }) => got(api.GET('/api/v1/records', { params: { query: { issue, after: pageParam, limit: 500 } } })),
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
      {asked.hasNextPage && <button onClick={() => void asked.fetchNextPage()} disabled={asked.isFetchingNextPage}>{texts.loadLater}</button>}
    </>
  )
}

function Lines({ lines, word, choice }: { lines: Told[]; word: keyof typeof texts.lines; choice: ReactNode }) {
  const [text, type] = useState('')
  const [all, showAll] = useState(false)
  const wanted = text.toLowerCase()
  const found = lines.filter(({ words, seq }) => `${words} #${seq}`.toLowerCase().includes(wanted)).reverse()
  const shown = all ? found : found.slice(0, SHOWN)
  const sum = texts.lines[word](lines.length)
  return (
    <>
      <form role="search" className="filter" onSubmit={event => event.preventDefault()}>
        <label>
          {shared.filter}
          <input type="search" value={text} onChange={event => type(event.target.value)} />
        </label>
        {choice}
        <span role="status">{text ? texts.matches(found.length, sum) : sum}</span>
      </form>
      {found.length === 0 && <Empty>{text ? shared.empty : texts.nothing}</Empty>}
      <ol className="story">
        {shown.map((line, place) => {
          const after = shown[place - 1]
          const idle = after && !text ? Date.parse(after.at) - Date.parse(line.at) : 0
          return (
            <li key={line.seq} data-step tabIndex={-1}>
              {idle > GAP && <p className="gap">{texts.idle(span(idle))}</p>}
              <When at={line.at} />
              <span>{line.text}</span>
              <Link href={to.record(line.seq)}>#{line.seq}</Link>
            </li>
          )
        })}
      </ol>
      {shown.length < found.length && <button onClick={() => showAll(true)}>{texts.earlier(found.length - shown.length)}</button>}
    </>
  )
}

// --- usage ------------------------------------------------------------------------------------------------------

const Used = ({ of: { usage, issue } }: { of: Story }) => (
  <Section name="usage" title={texts.usage}>
    <Pairs
      of={[
        [shared.attempts, <Link href={`/runs?issue=${encodeURIComponent(issue.issue)}`}>{figure(usage.runs)}</Link>],
        [shared.used, figure(usage.tokens)],
        [shared.money, money(usage.cost)],
        [texts.cycles, issue.cycle],
      ]}
    />
  </Section>
)
