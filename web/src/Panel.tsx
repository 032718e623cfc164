import { useQuery } from '@tanstack/react-query'
import { asks } from './api'
import DeadEnd from './DeadEnd'
import { H1, Loading } from './parts'

const HERE = /^(localhost|127\..*|\[::1\])$/

/** A page of the user's own, in a frame that is let near to nothing of this one. */
export default function Panel() {
  const { data } = useQuery(asks.now())
  if (!data) return <Loading />
  const { panel, title } = data.project.page
  if (!panel) return <><H1 title="Page not found" /><DeadEnd>No panel is configured</DeadEnd></>
  return (
    <>
      <H1 title={title} />
      {HERE.test(location.hostname) ? (
        <iframe className="panel" title={title} src={panel} sandbox="allow-scripts allow-forms" referrerPolicy="no-referrer" />
      ) : (
        <p className="empty">The panel is shown on the machine itself, at a loopback address.</p>
      )}
      <p className="quiet">
        <code>{panel}</code> is a page of your own, not of Agent Shepherd. If it stays empty, start its program, then reload this page.
      </p>
    </>
  )
}
