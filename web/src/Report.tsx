import { useQuery } from '@tanstack/react-query'
import { type SyntheticEvent, useState } from 'react'
import { Link } from 'wouter'
import { api, got, type Line, type State } from './api'
import { Budgets, Csv, Days } from './Budgets'
import { count, figure, money, to } from './look'
import { Choice, Empty, Findings, H1, Loading, Section, Table, Trouble, useNarrow, When } from './parts'

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
  return (
    <>
      <H1 title="Report" />
      <Since since={since} first={SINCE[0][1]} choose={since => set('since', since)} />
      <Trouble of={asked} />
      {data ? (
        <>
          <p className="quiet">
            From <When at={data.since} /> to <When at={data.until} />
          </p>
          {Object.entries(data.sections).map(([name, lines]) => lines.length > 0 && <Lines key={name} name={name} lines={lines} closes={data.closes} since={since} />)}
          {Object.values(data.sections).every(lines => !lines.length) && <Empty>Nothing happened. A daemon that works makes it longer: `ashep work`.</Empty>}
        </>
      ) : asked.isPending && <Loading />}
    </>
  )
}

const PROOFS: [string, State, string][] = [
  ['verified', 'closed', '✓ verified'],
  ['waived', 'person', '! with checks that a person let pass'],
  ['unverified', 'not_eligible', '– unverified'],
]

type Lines = { name: string; lines: Line[]; closes: Record<string, number>; since: string }

function Lines({ name, lines, closes, since }: Lines) {
  const proofs = PROOFS.filter(([kind]) => closes[kind])
  return (
    <Section name={name} title={ <>{SECTIONS[name] ?? name} <span className="quiet">{lines.length}</span></> }>
      {name === 'closed' && proofs.length > 0 && <Findings label="Closed by ashep, by proof" found={proofs.map(([kind, as, word]) => ({ as, text: `${word}: ${closes[kind]}` }))} />}
      <ul className="report">
        {lines.map((line, place) => (
          <li key={place} data-step tabIndex={-1}>
            <When at={line.at} />
            {name === 'cost' ? <Link href={`/usage?${new URLSearchParams(since && { since })}`}>{line.text}</Link> : <Said line={line} />}
            <Records line={line} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

const [FEW, MANY] = [6, 300]

/** The records that a line rests on; of a night's cost they are thousands. */
function Records({ line: { seqs, at, issue } }: { line: Line }) {
  const [shown, show] = useState(FEW)
  const more = seqs.length - shown
  return (
    <span className="seqs">
      {seqs.slice(0, shown).map(seq => <Link key={seq} href={to.record(seq)}>#{seq}</Link>)}
      {more > 0 && (shown === FEW ? <button className="plain" onClick={() => show(MANY)}>and {figure(more)} more</button> : `and ${figure(more)} more`)}
      {at && <Link href={to.then(at, issue)} title="How it stood then" aria-label="how it stood then">then</Link>}
    </span>
  )
}

/** The line with its issue, where it is named, as the link. */
function Said({ line: { text, issue } }: { line: Line }) {
  if (!issue) return <span>{text}</span>
  const at = text.indexOf(issue)
  const [before, after] = at < 0 ? [`${text} `, ''] : [text.slice(0, at), text.slice(at + issue.length)]
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
