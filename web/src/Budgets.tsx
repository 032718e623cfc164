import { useQuery } from '@tanstack/react-query'
import { Component, lazy, type ReactNode, Suspense } from 'react'
import { Link } from 'wouter'
import { api, asks, got } from './api'
import type { components } from './api-types'
import { to } from './look'
import { Coded, Loading, Section, Trouble, When } from './parts'
import { budgets as texts, shared } from './strings'
import { figure, money } from './wording'

type Limit = components['schemas']['Limit']

const Drawn = lazy(() => import('./Bars'))

/** The table below has all that is drawn: where the drawing cannot be loaded, nothing is lacking. */
class Bound extends Component<{ children: ReactNode }, { broken: boolean }> {
  state = { broken: false }
  static getDerivedStateFromError = () => ({ broken: true })
  render() {
    return this.state.broken ? <p className="quiet">{texts.noChart}</p> : this.props.children
  }
}

export function Days({ since }: { since: string }) {
  const queryFn = () => got(api.GET('/api/v1/usage/days', { params: { query: { since: since || undefined } } }))
  const asked = useQuery({ queryKey: ['days', since], queryFn, placeholderData: before => before })
  const rows = asked.data?.rows
  if (!rows?.length) return <Trouble of={asked} />
  return (
    <Bound>
      <Suspense fallback={<div className="bars" />}><Drawn rows={rows} /></Suspense>
    </Bound>
  )
}

// --- budgets ----------------------------------------------------------------------------------------------------

const said = (of: Limit, value: number) => (of.unit === 'cost' ? money(value) || '$0' : figure(value))

export function Budgets() {
  const asked = useQuery({ queryKey: ['budgets'], queryFn: () => got(api.GET('/api/v1/budgets')) })
  const { data } = asked
  return (
    <Section name="budgets" title={texts.title}>
      <Trouble of={asked} />
      {asked.isPending && <Loading />}
      {data && !data.limits.length && <p className="empty"><Coded text={texts.none} /></p>}
      <ul className="budgets">
        {data?.limits.map(limit => <Bar key={[limit.scope, limit.name, limit.unit].join()} of={limit} />)}
        <Quotas />
      </ul>
    </Section>
  )
}

/** What logins have used of their quotas, as their providers said last; a window that has begun again says nothing. */
function Quotas() {
  const { data } = useQuery(asks.now())
  const windows = data?.daemon.quotas.flatMap(quota => quota.windows.map(window => ({ ...quota, ...window }))) ?? []
  return windows.filter(({ resets }) => new Date(resets) > new Date()).map(({ runner, provider, login, name, used, resets, status }) => (
    <li key={[runner, provider, login, name].join()} className={status === 'rejected' ? 's-parked' : status === 'allowed_warning' ? 's-person' : 's-time'}>
      <span>{texts.quota(provider, runner, name)}</span>
      <span className="meter"><meter aria-label={texts.quota(provider, runner, name)} min={0} max={1} value={Math.min(used, 1)} /></span>
      <span>
        {Math.round(used * 100)}% {status === 'rejected' ? <b>{texts.usedUp}</b> : status === 'allowed_warning' && <b>{texts.nearly}</b>}{' '}
        <span className="quiet">{shared.until(<When at={resets} />)}</span>
      </span>
    </li>
  ))
}

function Bar({ of }: { of: Limit }) {
  const { scope, name, unit, used, limit, warn_at: warns, until, reached, holds, held } = of
  const warned = used !== null && used >= warns && !reached
  const named = `${texts.units[unit] ?? texts.units.tokens} ${texts.scopes[scope]}${scope === 'provider' ? ` ${name.split(' on ')[0]}` : ''}`
  const [as, word] = reached ? ['parked', texts.usedUp] : warned ? ['person', texts.nearly] : ['time', '']
  return (
    <li className={`s-${as}`}>
      <span>{named}</span>
      {used === null ? (
        <span className="quiet">{texts.atMost(said(of, limit))}</span>
      ) : (
        <span className="meter">
          <meter aria-label={named} min={0} max={limit} value={Math.min(used, limit)} />
          <i style={{ left: `${Math.min(100, (100 * warns) / limit)}%` }} title={texts.warning(said(of, warns))} />
        </span>
      )}
      <span>
        {used !== null && texts.amount(said(of, used), said(of, limit))} {word && <b>{word}</b>}{' '}
        <span className="quiet">{until && shared.until(<When at={until} />)}</span>
        {held > 0 && (
          <>{texts.holds}{holds.slice(0, 8).map((issue, at) => <span key={issue}>{at > 0 && ', '}<Link href={to.issue(issue)}>{issue}</Link></span>)}{held > 8 && ` ${shared.andMore(held - 8)}`}</>
        )}
      </span>
    </li>
  )
}

// --- a table as a file ------------------------------------------------------------------------------------------

/** What a spreadsheet would take for a formula is text in it. */
const cell = (value: string | number) => `"${String(value).replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`

export function Csv({ name, rows }: { name: string; rows: (string | number)[][] }) {
  const save = () => {
    const href = URL.createObjectURL(new Blob([rows.map(row => `${row.map(cell).join(',')}\r\n`).join('')], { type: 'text/csv' }))
    Object.assign(document.createElement('a'), { href, download: `${name}.csv` }).click()
    setTimeout(() => URL.revokeObjectURL(href))
  }
  return <p><button onClick={save}>{texts.save}</button></p>
}
