import { useInfiniteQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { Link, useSearch } from 'wouter'
import { api, got, type RunRecord } from './api'
import { ALL, PAGE, Rows } from './Lists'
import { RUNS, short, to } from './look'
import { took } from './moments'
import { Choice, Empty, H1, Loading, Mark, NoMatch, Trouble, useLooks, useNarrow, useWide, When } from './parts'
import { runs as texts, shared } from './strings'
import { figure, money } from './wording'

const Timeline = lazy(() => import('./Timeline'))

export function Runs() {
  const [filter, narrow] = useNarrow()
  const [state, agent, issue] = ['state', 'agent', 'issue'].map(name => filter.get(name) ?? '') as [string, string, string]
  const { run: look, until } = useLooks()
  const wide = useWide()
  const asked = useInfiniteQuery({
    queryKey: ['runs', state, agent, issue],
    initialPageParam: undefined as number | undefined,
    queryFn: ({ pageParam }) =>
      got(
        api.GET('/api/v1/runs', {
          params: { query: { state: state || undefined, agent: agent || undefined, issue: issue || undefined, limit: PAGE, before: pageParam } },
        }),
      ),
    getNextPageParam: page => page.next ?? undefined,
    placeholderData: before => before,
  })
  const items = asked.data?.pages.flatMap(page => page.items) ?? []
  const { total, states = {}, agents = {} } = asked.data?.pages[0] ?? {}
  const names = [...new Set([...Object.keys(agents), ...(agent ? [agent] : [])])].sort()
  return (
    <>
      <H1 title={shared.attempts} />
      <form role="search" className="filter" onSubmit={event => event.preventDefault()}>
        <States states={states} state={state} />
        <Choice label={texts.agent} value={agent} choose={one => narrow('agent', one)} of={[ALL, ...names.map(one => [one, `${one} (${figure(agents[one] ?? 0)})`] as const)]} />
        {issue && (
          <button type="button" onClick={() => narrow('issue', '')}>
            {texts.issue(issue)}<span aria-label={shared.clearFilter}>✕</span>
          </button>
        )}
        <span role="status">{total !== undefined && shared.tries(total)}</span>
      </form>
      <Trouble of={asked} />
      <div className="beside">
        {wide && (asked.isPending || items.length > 0) && (
          <Suspense fallback={<section className="timeline" />}>
            <Timeline state={state} agent={agent} issue={issue} />
          </Suspense>
        )}
        {asked.isPending ? (
          <Loading />
        ) : items.length ? (
          <Rows<RunRecord>
            name={texts.name}
            className="runs"
            heads={[shared.state, shared.run, texts.agent, texts.queued, texts.duration, shared.money, shared.result]}
            items={items}
            total={total}
            more={() => asked.hasNextPage && !asked.isFetchingNextPage && void asked.fetchNextPage()}
            state={one => look(one.state).as}
            row={one => [
              <Mark {...look(one.state)}>{look(one.state).word}</Mark>,
              <>
                <Link href={to.issue(one.issue)}>{one.issue}</Link> / <Link data-step href={to.run(one.run)}>{short(one.run)}</Link>
              </>,
              one.agent,
              <When at={one.planned_at} alone />,
              took(one, until),
              money(one.cost),
              <Result of={one} />,
            ]}
          />
        ) : (
          !asked.error && (filter.size ? <NoMatch of={texts.things} /> : <Empty>{texts.none}</Empty>)
        )}
      </div>
    </>
  )
}

function Result({ of: { outcome, error, why } }: { of: RunRecord }) {
  const text = [outcome?.verdict, outcome?.summary ?? error ?? why].filter(Boolean).join(': ')
  return <span className="quiet" title={text}>{text}</span>
}

/** How many runs there are of each state; it is the legend of the canvas, too. */
function States({ states, state }: { states: Record<string, number>; state: string }) {
  const search = useSearch()
  const { run: look } = useLooks()
  const link = (to: string) => {
    const next = new URLSearchParams(search)
    if (to === state) next.delete('state')
    else next.set('state', to)
    return `/runs${next.size ? `?${next}` : ''}`
  }
  return (
    <ul className="chips" aria-label={texts.states}>
      {(Object.keys(RUNS) as RunRecord['state'][])
        .filter(one => one in states || one === state)
        .map(one => [one, look(one)] as const)
        .map(([one, { as, sign, word }]) => (
          <li key={one} className={`s-${as}`}>
            <Link href={link(one)} replace aria-current={one === state ? 'true' : undefined}>
              <i aria-hidden>{sign}</i> <b>{figure(states[one] ?? 0)}</b> {word} {one === state && <span aria-label={shared.clearFilter}>✕</span>}
            </Link>
          </li>
        ))}
    </ul>
  )
}
