import { useInfiniteQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useDeferredValue, useEffect, useRef } from 'react'
import { Link } from 'wouter'
import { api, got, type Issue, type State } from './api'
import { STATES, to } from './look'
import { Ago, Choice, Empty, H1, Loading, NoMatch, Stands, Trouble, useLooks, useNarrow } from './parts'
import { lists as texts, shared } from './strings'

const ROW = 48
export const PAGE = 100
export const ALL = ['', shared.all] as const

type Rows<T> = {
  name: string
  className: string
  heads: string[]
  items: T[]
  total?: number
  more: () => void
  state: (one: T) => State
  row: (one: T) => ReactNode[]
}

/** Only the rows in sight are made; the next page is asked for before they are. */
export function Rows<T>({ name, className, heads, items, total, more, state, row }: Rows<T>) {
  const box = useRef<HTMLDivElement>(null)
  const view = useVirtualizer({ count: items.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 12 })
  const shown = view.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  useEffect(() => {
    if (last > items.length - 30) more()
  }, [last, items.length, more])
  return (
    <div ref={box} className={`rows ${className}`} role="table" aria-label={name} aria-rowcount={total ?? -1}>
      <div role="row" className="row heads">
        {heads.map(head => (
          <span key={head} role="columnheader">{head}</span>
        ))}
      </div>
      <div role="rowgroup" className="inner" style={{ height: view.getTotalSize() }}>
        {shown.map(({ index, start }) => {
          const one = items[index]!
          return (
            <div key={index} role="row" aria-rowindex={index + 2} className={`row s-${state(one)}`} style={{ transform: `translateY(${start}px)` }}>
              {row(one).map((cell, place) => <span key={place} role="cell">{cell}</span>)}
            </div>
          )
        })}
      </div>
    </div>
  )
}

// --- issues -----------------------------------------------------------------------------------------------------

export function Issues() {
  const [filter, narrow] = useNarrow()
  const [state, phase, policy, text] = ['state', 'phase', 'policy', 'q'].map(name => filter.get(name) ?? '') as [State | '', string, string, string]
  const q = useDeferredValue(text)
  const { issue: look } = useLooks()
  const asked = useInfiniteQuery({
    queryKey: ['issues', state, phase, policy, q],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      got(
        api.GET('/api/v1/issues', {
          params: {
            query: { state: state || undefined, phase: phase || undefined, policy: policy || undefined, q: q || undefined, limit: PAGE, after: pageParam },
          },
        }),
      ),
    getNextPageParam: page => page.next ?? undefined,
    placeholderData: before => before,
  })
  const items = asked.data?.pages.flatMap(page => page.items) ?? []
  const total = asked.data?.pages[0]?.total
  return (
    <>
      <H1 title={texts.issues} />
      <form role="search" className="filter" onSubmit={event => event.preventDefault()}>
        <label>
          {texts.idOrTitle}
          <input type="search" maxLength={200} value={text} onChange={event => narrow('q', event.target.value)} />
        </label>
        <Choice label={shared.state} value={state} choose={one => narrow('state', one)} of={[ALL, ...(Object.keys(STATES) as State[]).map(one => [one, look(one).word] as const)]} />
        {['phase', 'policy'].map(
          name =>
            filter.has(name) && (
              <button key={name} type="button" onClick={() => narrow(name, '')}>
                {texts.filters[name]} {filter.get(name)} <span aria-label={shared.clearFilter}>✕</span>
              </button>
            ),
        )}
        <span role="status">{total !== undefined && texts.count(total)}</span>
      </form>
      <Trouble of={asked} />
      {asked.isPending ? (
        <Loading />
      ) : items.length ? (
        <Rows<Issue>
          name={texts.issues}
          className="issues"
          heads={texts.heads}
          items={items}
          total={total}
          more={() => asked.hasNextPage && !asked.isFetchingNextPage && void asked.fetchNextPage()}
          state={one => one.state}
          row={one => [
            <Stands state={one.state} />,
            <Link data-step href={to.issue(one.issue)}>{one.issue}</Link>,
            one.title,
            one.phase,
            <Ago at={one.since} />,
            <span className="quiet" title={one.reason}>{one.reason}</span>,
          ]}
        />
      ) : (
        !asked.error &&
        (filter.size ? (
          <NoMatch of={texts.things} />
        ) : (
          <Empty>{texts.none}</Empty>
        ))
      )}
    </>
  )
}
