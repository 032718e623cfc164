import { QueryClientProvider } from '@tanstack/react-query'
import { Component, lazy, type ReactNode, StrictMode, Suspense, useEffect, useState, useSyncExternalStore } from 'react'
import { createRoot } from 'react-dom/client'
import { Route, Switch, useLocation } from 'wouter'
import { asksFor, current, enter, onSession, queries } from './api'
import { dialogs, Frame } from './Frame'
import { watch } from './live'
import { Now } from './Now'
import { Coded, H1, Loading } from './parts'
import { SCHEME, shine, times } from './settings'
import { main as texts } from './strings'
import './page.css'

const LATER = 3000
const parts = {
  lists: () => import('./Lists'),
  runs: () => import('./Runs'),
  issue: () => import('./Issue'),
  course: () => import('./Course'),
  run: () => import('./Run'),
  report: () => import('./Report'),
  record: () => import('./Record'),
  deadEnd: () => import('./DeadEnd'),
  projects: () => import('./Projects'),
  policy: () => import('./Policy'),
  panel: () => import('./Panel'),
  dialogs,
}
const Issues = lazy(() => parts.lists().then(({ Issues }) => ({ default: Issues })))
const Runs = lazy(() => parts.runs().then(({ Runs }) => ({ default: Runs })))
const Issue = lazy(parts.issue)
const Run = lazy(parts.run)
const Report = lazy(() => parts.report().then(({ Report }) => ({ default: Report })))
const Usage = lazy(() => parts.report().then(({ Usage }) => ({ default: Usage })))
const Record = lazy(parts.record)
const DeadEnd = lazy(parts.deadEnd)
const Projects = lazy(parts.projects)
const Policy = lazy(parts.policy)
const Panel = lazy(parts.panel)

/** The other pages are fetched while nobody waits, so that they are there when the server is not. */
function ahead() {
  const timer = setTimeout(() => Object.values(parts).forEach(part => void part().catch(() => null)), LATER)
  return () => clearTimeout(timer)
}

/** What is broken on a page is broken there alone. */
class Bounds extends Component<{ children: ReactNode }, { error: unknown }> {
  state = { error: null }
  static getDerivedStateFromError = (error: unknown) => ({ error })
  render() {
    if (this.state.error === null) return this.props.children
    return (
      <>
        <H1 title={texts.broken} />
        <p role="alert" className="line bad">
          {String(this.state.error)} <button onClick={() => location.reload()}>{texts.reload}</button>
        </p>
        <p className="quiet">
          <Coded text={texts.elsewhere} />
        </p>
      </>
    )
  }
}

function Page() {
  const [place] = useLocation()
  useEffect(ahead, [])
  useSyncExternalStore(times.on, times.get) // all of it shows moments
  return (
    <Frame>
      <Bounds key={place.split('/')[1]}>
        <Suspense fallback={<Loading />}>
          <Switch>
            <Route path="/" component={Now} />
            <Route path="/issues" component={Issues} />
            <Route path="/issues/:issue/:tab?">{({ issue, tab }) => <Issue key={issue} issue={issue} tab={tab ?? ''} />}</Route>
            <Route path="/runs" component={Runs} />
            <Route path="/runs/:issue/:run">{({ issue, run }) => <Run key={`${issue}/${run}`} issue={issue} run={run} />}</Route>
            <Route path="/report" component={Report} />
            <Route path="/usage" component={Usage} />
            <Route path="/projects" component={Projects} />
            <Route path="/panel" component={Panel} />
            <Route path="/records/:seq">{({ seq }) => <Record key={seq} seq={seq} />}</Route>
            <Route path="/policies/:policy">{({ policy }) => <Policy key={policy} policy={policy} />}</Route>
            <Route><H1 title={texts.notFound} /><DeadEnd>{texts.noPage}</DeadEnd></Route>
          </Switch>
        </Suspense>
      </Bounds>
    </Frame>
  )
}

function Outside({ why }: { why: string | null }) {
  useEffect(() => void asksFor(location.pathname + location.search), [])
  return (
    <main className="outside">
      <H1 title={texts.signedOut} />
      {why && <p role="alert">{why}</p>}
      <p><Coded text={texts.getLink} /></p>
      <p className="quiet">{texts.kept}</p>
    </main>
  )
}

function Door() {
  const session = useSyncExternalStore(onSession, current)
  const [tried, try_] = useState<{ why: string | null } | null>(null)
  useEffect(() => {
    const come = () => void enter().then(why => try_({ why }))
    const linked = () => location.hash.startsWith('#enter=') && come()
    come()
    addEventListener('hashchange', linked)
    return () => removeEventListener('hashchange', linked)
  }, [])
  if (session) return <Page />
  return tried ? <Outside why={tried.why} /> : <Loading />
}

shine(localStorage.getItem(SCHEME))
watch()
createRoot(document.getElementById('root')!).render(
  <StrictMode><QueryClientProvider client={queries}><Door /></QueryClientProvider></StrictMode>,
)
