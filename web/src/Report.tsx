import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import { api, got, type Line } from './api'
import { count, figure, money, to } from './look'
import { Empty, H1, Loading, Section, Trouble, When } from './parts'

const SECTIONS: Record<string, string> = {
  closed: 'Closed',
  waiting: 'Waits for you',
  parked: 'Parked',
  going_on: 'Still running, or waiting for a time',
  cost: 'Cost',
  limits: 'Limits and budgets met',
  servers: 'Servers and daemons',
  findings: 'Findings of the audit',
  notices: 'Messages that did not reach you',
}
const SINCE = [
  ['', 'the last start, or yesterday 18:00'],
  ['12h', '12 hours ago'],
  ['24h', '24 hours ago'],
  ['7d', '7 days ago'],
] as const
const BY = ['provider', 'issue', 'phase', 'agent', 'day'] as const
type By = (typeof BY)[number]

function useQueryString(): [URLSearchParams, (more: Record<string, string>) => void] {
  const search = useSearch()
  const [place, go] = useLocation()
  const set = (more: Record<string, string>) => {
    const next = new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(search)), ...more })
    for (const [name, value] of [...next]) if (!value) next.delete(name)
    go(`${place}${next.size ? `?${next}` : ''}`)
  }
  return [new URLSearchParams(search), set]
}

function Since({ since, first, choose }: { since: string; first: string; choose: (since: string) => void }) {
  const [own, write] = useState('')
  const known = SINCE.some(([value]) => value === since)
  return (
    <form
      className="filter"
      onSubmit={event => {
        event.preventDefault()
        choose(own.trim())
      }}
    >
      <label>
        Since
        <select value={since} onChange={event => choose(event.target.value)}>
          {SINCE.map(([value, word]) => (
            <option key={value} value={value}>
              {value ? word : first}
            </option>
          ))}
          {!known && <option value={since}>{since}</option>}
        </select>
      </label>
      <label>
        or a time, a span, a date
        <input value={own} maxLength={40} placeholder="18:00" onChange={event => write(event.target.value)} />
      </label>
      <button disabled={!own.trim()}>Show</button>
    </form>
  )
}

// --- report -----------------------------------------------------------------------------------------------------

export function Report() {
  const [search, set] = useQueryString()
  const since = search.get('since') ?? ''
  const asked = useQuery({
    queryKey: ['report', since],
    queryFn: () => got(api.GET('/api/v1/report', { params: { query: { since: since || undefined } } })),
    placeholderData: before => before,
  })
  const { data } = asked
  const closes = Object.entries(data?.closes ?? {}).filter(([, many]) => many)
  return (
    <>
      <H1 title="Report" />
      <Since since={since} first={SINCE[0][1]} choose={since => set({ since })} />
      <Trouble of={asked} />
      {data ? (
        <>
          <p className="quiet">
            From <When at={data.since} /> to <When at={data.until} />
            {closes.length > 0 && `; closed: ${closes.map(([kind, many]) => `${many} ${kind}`).join(', ')}`}
          </p>
          {Object.entries(data.sections).map(([name, lines]) => lines.length > 0 && <Lines key={name} name={name} lines={lines} />)}
          {Object.values(data.sections).every(lines => !lines.length) && <Empty>Nothing happened. A daemon that works makes it longer: `ashep work`.</Empty>}
        </>
      ) : (
        asked.isPending && <Loading />
      )}
    </>
  )
}

function Lines({ name, lines }: { name: string; lines: Line[] }) {
  return (
    <Section
      name={name}
      title={
        <>
          {SECTIONS[name] ?? name} <span className="quiet">{lines.length}</span>
        </>
      }
    >
      <ul className="report">
        {lines.map((line, place) => (
          <li key={place} data-step tabIndex={-1}>
            <When at={line.at} />
            <Said line={line} />
            <span className="seqs">
              {line.seqs.slice(0, 6).map(seq => (
                <Link key={seq} href={to.record(seq)}>
                  #{seq}
                </Link>
              ))}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** The line with its issue as the link. */
function Said({ line: { text, issue } }: { line: Line }) {
  if (!issue) return <span>{text}</span>
  const [before, after] = text.startsWith(issue) ? ['', text.slice(issue.length)] : [`${text} `, '']
  return (
    <span>
      {before}
      <Link href={to.issue(issue)}>{issue}</Link>
      {after}
    </span>
  )
}

// --- usage ------------------------------------------------------------------------------------------------------

export function Usage() {
  const [search, set] = useQueryString()
  const since = search.get('since') ?? ''
  const by: By = BY.find(one => one === search.get('by')) ?? 'provider'
  const asked = useQuery({
    queryKey: ['usage', by, since],
    queryFn: () => got(api.GET('/api/v1/usage', { params: { query: { by, since: since || undefined } } })),
    placeholderData: before => before,
  })
  const { data } = asked
  const most = Math.max(...(data?.rows.map(row => row.cost) ?? []), 0)
  return (
    <>
      <H1 title="Usage" />
      <nav className="tabs" aria-label="Usage by">
        {BY.map(one => (
          <Link key={one} href={`/usage?${new URLSearchParams({ by: one, ...(since && { since }) })}`} aria-current={one === by ? 'page' : undefined}>
            by {one}
          </Link>
        ))}
      </nav>
      <Since since={since} first="the beginning" choose={since => set({ since })} />
      <Trouble of={asked} />
      {data?.rows.length ? (
        <div className="scroll">
          <table className="usage">
            <thead>
              <tr>
                <th>{by}</th>
                <th className="number">Runs</th>
                <th className="number">Tokens</th>
                <th className="number">Cost</th>
                <td className="bar" />
              </tr>
            </thead>
            <tbody>
              {data.rows.map(({ name, runs, tokens, cost }) => (
                <tr key={name ?? ''}>
                  <th scope="row">{by === 'issue' && name ? <Link data-step href={to.issue(name)}>{name}</Link> : (name ?? 'not known')}</th>
                  <td className="number">{figure(runs)}</td>
                  <td className="number">{figure(tokens)}</td>
                  <td className="number">{money(cost)}</td>
                  <td className="bar" aria-hidden>
                    <meter min={0} max={most || 1} value={cost} />
                  </td>
                </tr>
              ))}
            </tbody>
            <tfoot>
              <tr>
                <th scope="row">{count(data.rows.length, 'row')}, in all</th>
                <td className="number">{figure(data.total.runs)}</td>
                <td className="number">{figure(data.total.tokens)}</td>
                <td className="number">{money(data.total.cost)}</td>
                <td className="bar" />
              </tr>
            </tfoot>
          </table>
        </div>
      ) : (
        (data && <Empty>{since ? 'No run used anything since then.' : 'No run used anything yet.'}</Empty>) || (asked.isPending && <Loading />)
      )}
    </>
  )
}
