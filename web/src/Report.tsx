import { useQuery } from '@tanstack/react-query'
import { type SyntheticEvent, useState } from 'react'
import { Link } from 'wouter'
import { api, got, type Line } from './api'
import { Budgets, Csv, Days } from './Budgets'
import { count, figure, money, to } from './look'
import { Choice, Empty, H1, Loading, Section, Table, Trouble, useNarrow, When } from './parts'

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

function Since({ since, first, choose }: { since: string; first: string; choose: (since: string) => void }) {
  const [own, write] = useState('')
  const known = SINCE.some(([value]) => value === since)
  const show = (event: SyntheticEvent) => {
    event.preventDefault()
    choose(own.trim())
  }
  return (
    <form className="filter" onSubmit={show}>
      <Choice
        label="Since"
        value={since}
        choose={choose}
        of={[...SINCE.map(([value, word]) => [value, value ? word : first] as const), ...(known ? [] : [[since, since] as const])]}
      />
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
  const [search, set] = useNarrow()
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
      <Since since={since} first={SINCE[0][1]} choose={since => set('since', since)} />
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
      ) : asked.isPending && <Loading />}
    </>
  )
}

function Lines({ name, lines }: { name: string; lines: Line[] }) {
  return (
    <Section name={name} title={ <>{SECTIONS[name] ?? name} <span className="quiet">{lines.length}</span></> }>
      <ul className="report">
        {lines.map((line, place) => (
          <li key={place} data-step tabIndex={-1}>
            <When at={line.at} />
            <Said line={line} />
            <span className="seqs">
              {line.seqs.slice(0, 6).map(seq => (
                <Link key={seq} href={to.record(seq)}>#{seq}</Link>
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
  const [search, set] = useNarrow()
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
      <Since since={since} first="the beginning" choose={since => set('since', since)} />
      <Trouble of={asked} />
      <Days since={since} />
      {data?.rows.length ? (
        <>
        <Table
          className="usage"
          heads={[by, 'Share', 'Runs', 'Tokens', 'Cost']}
          numbers={3}
          rows={data.rows.map(({ name, runs, tokens, cost }) => [
            name ?? '',
            by === 'issue' && name ? <Link data-step href={to.issue(name)}>{name}</Link> : (name ?? 'not known'),
            <meter aria-label={`share of ${name}`} min={0} max={most || 1} value={cost} />,
            figure(runs),
            figure(tokens),
            money(cost),
          ])}
          foot={[`${count(data.rows.length, 'row')}, in all`, '', figure(data.total.runs), figure(data.total.tokens), money(data.total.cost)]}
        />
        <Csv
          name={`usage-by-${by}`}
          rows={[[by, 'runs', 'tokens', 'cost'], ...data.rows.map(row => [row.name ?? '', row.runs, row.tokens, row.cost])]}
        />
        </>
      ) : (
        (data && <Empty>{since ? 'No run used anything since then.' : 'No run used anything yet.'}</Empty>) || (asked.isPending && <Loading />)
      )}
      <Budgets />
    </>
  )
}
