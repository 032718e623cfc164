import { QueryClientProvider } from '@tanstack/react-query'
import { lazy, StrictMode, Suspense, useEffect, useState, useSyncExternalStore } from 'react'
import { createRoot } from 'react-dom/client'
import { Route, Switch } from 'wouter'
import { current, enter, onSession, queries } from './api'
import { Frame, SCHEME, shine } from './Frame'
import { watch } from './live'
import { Now } from './Now'
import { H1, Loading } from './parts'
import './page.css'

const Issues = lazy(() => import('./Lists').then(({ Issues }) => ({ default: Issues })))
const Runs = lazy(() => import('./Lists').then(({ Runs }) => ({ default: Runs })))
const Issue = lazy(() => import('./Issue'))
const Run = lazy(() => import('./Run'))
const Report = lazy(() => import('./Report').then(({ Report }) => ({ default: Report })))
const Usage = lazy(() => import('./Report').then(({ Usage }) => ({ default: Usage })))
const Record = lazy(() => import('./Record'))

function Page() {
  return (
    <Frame>
      <Suspense fallback={<Loading />}>
        <Switch>
          <Route path="/" component={Now} />
          <Route path="/issues" component={Issues} />
          <Route path="/issues/:issue/:tab?">{({ issue, tab }) => <Issue key={issue} issue={issue} tab={tab ?? ''} />}</Route>
          <Route path="/runs" component={Runs} />
          <Route path="/runs/:issue/:run">{({ issue, run }) => <Run key={`${issue}/${run}`} issue={issue} run={run} />}</Route>
          <Route path="/report" component={Report} />
          <Route path="/usage" component={Usage} />
          <Route path="/records/:seq">{({ seq }) => <Record key={seq} seq={seq} />}</Route>
          <Route>
            <H1 title="There is no such page" />
          </Route>
        </Switch>
      </Suspense>
    </Frame>
  )
}

function Outside({ why }: { why: string | null }) {
  return (
    <main className="outside">
      <H1 title="This page wants a fresh link" />
      {why && <p role="alert">{why}</p>}
      <p>
        Run <code>ashep ui</code> in a terminal, and open the link that it prints. A link is good once, for two minutes.
      </p>
      <p className="quiet">Words that you had begun to write are kept in this tab.</p>
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
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Door />
    </QueryClientProvider>
  </StrictMode>,
)
