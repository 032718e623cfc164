import { useQuery } from '@tanstack/react-query'
import { asks } from './api'
import DeadEnd from './DeadEnd'
import { Coded, H1, Loading } from './parts'
import { panel as texts } from './strings'

const HERE = /^(localhost|127\..*|\[::1\])$/

/** A page of the user's own, in a frame that is let near to nothing of this one. */
export default function Panel() {
  const { data } = useQuery(asks.now())
  if (!data) return <Loading />
  const { panel, title } = data.project.page
  if (!panel) return <><H1 title={texts.notFound} /><DeadEnd>{texts.none}</DeadEnd></>
  return (
    <>
      <H1 title={title} />
      {HERE.test(location.hostname) ? (
        <iframe className="panel" title={title} src={panel} sandbox="allow-scripts allow-forms" referrerPolicy="no-referrer" />
      ) : (
        <p className="empty">{texts.elsewhere}</p>
      )}
      <p className="quiet"><Coded text={texts.yours(panel)} /></p>
    </>
  )
}
