import { useQuery } from '@tanstack/react-query'
import { type SyntheticEvent, useState } from 'react'
import { Link } from 'wouter'
import { api, asks, got, type Line, type State } from './api'
import type { components } from './api-types'
import { Budgets, Csv, Days } from './Budgets'
import { to } from './look'
import { Choice, Empty, Findings, H1, Loading, Section, Table, Trouble, useNarrow, When } from './parts'
import { report as texts, shared } from './strings'
import { figure, money } from './wording'

const BY = ['provider', 'issue', 'phase', 'agent', 'day'] as const
type By = (typeof BY)[number]

function Since({ since, first, choose }: { since: string; first: string; choose: (since: string) => void }) {
  const [own, write] = useState('')
  const known = since === '' || texts.periods.some(([value]) => value === since)
  const show = (event: SyntheticEvent) => {
    event.preventDefault()
    choose(own.trim())
  }
  return (
    <form className="filter" onSubmit={show}>
      <Choice
        label={texts.since}
        value={since}
        choose={choose}
        of={[['', first], ...texts.periods, ...(known ? [] : [[since, since] as const])]}
      />
      <label>
        {texts.other}
        <input value={own} maxLength={40} placeholder={texts.example} onChange={event => write(event.target.value)} />
      </label>
      <button disabled={!own.trim()}>{texts.show}</button>
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
      <H1 title={texts.title} />
      <Since since={since} first={texts.sinceStart} choose={since => set('since', since)} />
      <Trouble of={asked} />
      {data ? (
        <>
          <p className="quiet">
            {texts.range(<When at={data.since} />, <When at={data.until} />)}
          </p>
          {Object.entries(data.sections).map(([name, lines]) => lines.length > 0 && <Lines key={name} name={name} lines={lines} closes={data.closes} since={since} />)}
          {Object.values(data.sections).every(lines => !lines.length) && <Empty>{texts.nothing}</Empty>}
        </>
      ) : asked.isPending && <Loading />}
    </>
  )
}

const PROOFS: [keyof typeof texts.proofs, State][] = [['verified', 'closed'], ['waived', 'person'], ['unverified', 'not_eligible']]

type Lines = { name: string; lines: Line[]; closes: Record<string, number>; since: string }

function Lines({ name, lines, closes, since }: Lines) {
  const proofs = PROOFS.filter(([kind]) => closes[kind])
  return (
    <Section name={name} title={ <>{texts.sections[name] ?? name} <span className="quiet">{lines.length}</span></> }>
      {name === 'closed' && proofs.length > 0 && <Findings label={texts.byProof} found={proofs.map(([kind, as]) => ({ as, text: texts.proof(texts.proofs[kind], closes[kind]) }))} />}
      <ul className="report">
        {lines.map((line, place) => (
          <li key={place} data-step tabIndex={-1}>
            {line.at && <When at={line.at} alone />}
            {isCost(line) ? <Used line={line} since={since} /> : <Said line={line} />}
            <Records line={line} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

type Used = components['schemas']['CostLine']
const isCost = (line: Line): line is Used => 'tokens' in line

/** What a provider's runs used, in the page's own figures. */
function Used({ line: { provider, runs, tokens, cost }, since }: { line: Used; since: string }) {
  return (
    <span>
      <Link href={`/usage?${new URLSearchParams(since && { since })}`}>{provider ?? shared.unknown}</Link>
      : {[shared.tries(runs), shared.tokens(tokens), money(cost)].filter(Boolean).join(', ')}
    </span>
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
      {more > 0 && (shown === FEW ? <button className="plain" onClick={() => show(MANY)}>{shared.andMore(more)}</button> : shared.andMore(more))}
      {at && <Link href={to.then(at, issue)} title={texts.historyTitle} aria-label={texts.historyTitle}>{texts.history}</Link>}
    </span>
  )
}

const SINCE_WHEN = / \((?:asked|since) [^()]*\)$/ // by the server's clock; the line has its own time

/** The line with its issue, where it is named, as the link; and what its agent says was done. */
function Said({ line: { text: whole, issue, summary } }: { line: Line }) {
  const { data } = useQuery(asks.now())
  if (!issue) return <span>{whole}</span>
  const text = whole.replace(SINCE_WHEN, '')
  const due = text !== whole && data?.waiting.find(one => one.issue === issue)?.due
  const at = text.indexOf(issue)
  const [before, after] = at < 0 ? [`${text} `, ''] : [text.slice(0, at), text.slice(at + issue.length)]
  return (
    <span>
      {before}
      <Link href={to.issue(issue)}>{issue}</Link>
      {after}
      {due && texts.due(<When at={due} />)}
      {summary && <q className="summary" title={texts.summary}>{summary}</q>}
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
      <H1 title={texts.usage} />
      <nav className="tabs" aria-label={texts.usageBy}>
        {BY.map(one => (
          <Link key={one} href={`/usage?${new URLSearchParams({ by: one, ...(since && { since }) })}`} aria-current={one === by ? 'page' : undefined}>
            {texts.by[one]}
          </Link>
        ))}
      </nav>
      <Since since={since} first={texts.beginning} choose={since => set('since', since)} />
      <Trouble of={asked} />
      <Days since={since} />
      {data?.rows.length ? (
        <>
        <Table
          className="usage"
          heads={[texts.heads[by], texts.share, shared.attempts, shared.used, shared.money]}
          numbers={3}
          rows={data.rows.map(({ name, runs, tokens, cost }) => [
            name ?? '',
            by === 'issue' && name ? <Link data-step href={to.issue(name)}>{name}</Link> : (name ?? shared.unknown),
            <meter aria-label={texts.shareOf(name ?? shared.unknown)} min={0} max={most || 1} value={cost} />,
            figure(runs),
            figure(tokens),
            money(cost),
          ])}
          foot={[texts.total, '', figure(data.total.runs), figure(data.total.tokens), money(data.total.cost)]}
        />
        <Csv
          name={`usage-by-${by}`}
          rows={[[by, 'runs', 'tokens', 'cost'], ...data.rows.map(row => [row.name ?? '', row.runs, row.tokens, row.cost])]}
        />
        </>
      ) : (
        (data && <Empty>{texts.unused(since !== '')}</Empty>) || (asked.isPending && <Loading />)
      )}
      <Budgets />
    </>
  )
}
