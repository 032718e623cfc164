import { Link, useLocation } from 'wouter'
import { dialog } from './settings'
import { deadEnd as texts } from './strings'

/** What is not there leads on: to the list that it would be in, and to the search. */
export default function DeadEnd({ children }: { children: string }) {
  const [, kind, issue] = useLocation()[0].split('/')
  const lists = Object.entries(texts.lists).sort(([a], [b]) => Number(b === kind) - Number(a === kind))
  return (
    <>
      <p role="alert" className="line bad">{children}.</p>
      <div className="acts">
        <button className="search" onClick={() => dialog.set('find')}>{texts.search} <kbd>Ctrl K</kbd></button>
        {kind === 'runs' && issue && <Link className="button" href={`/issues/${issue}`}>{texts.issue(decodeURIComponent(issue))}</Link>}
        {lists.map(([name, word]) => <Link key={name} className="button" href={`/${name}`}>{word}</Link>)}
      </div>
    </>
  )
}
