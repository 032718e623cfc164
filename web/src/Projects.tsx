import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, got } from './api'
import { Coded, H1, Loading, Trouble } from './parts'
import { projects as texts } from './strings'

const AGAIN = 60_000
const asked = { queryKey: ['projects'], queryFn: () => got(api.GET('/api/v1/projects')), staleTime: AGAIN }

/** Leads to the other projects of this machine, where there are any, and says how much waits there. */
export function Others() {
  const others = useQuery(asked).data?.projects.filter(one => !one.current) ?? []
  const waiting = others.reduce((sum, one) => sum + (one.waiting ?? 0), 0)
  if (!others.length) return null
  return <Link className="others" href="/projects" aria-label={texts.link(waiting)}>{texts.title}{waiting > 0 && <b> {waiting}</b>}</Link>
}

/** As a shell takes it. */
const quoted = (path: string) => (/[^\w/.@+-]/.test(path) ? `'${path.replaceAll("'", "'\\''")}'` : path)

export default function Projects() {
  const { data, ...of } = useQuery({ ...asked, refetchInterval: AGAIN })
  return (
    <>
      <H1 title={texts.title} />
      <Trouble of={{ data, ...of }} />
      {of.isLoading && <Loading />}
      <ul className="projects">
        {data?.projects.map(one => (
          <li key={one.folder ?? one.name}>
            <h2>{one.current ? <Link href="/">{one.name}</Link> : one.url ? <a href={one.url}>{one.name}</a> : one.name}</h2>
            <p>
              {one.waiting === null ? texts.otherVersion : (
                <>{one.waiting ? <b>{texts.waiting(one.waiting)}</b> : texts.idle} · {one.works ? texts.running(one.running ?? 0) : texts.noDaemon}</>
              )}
            </p>
            <p className="quiet">
              <Coded text={one.current ? texts.current : one.url ? texts.pageAt(new URL(one.url).host) : one.folder ? texts.openIn(quoted(one.folder)) : texts.closed} />
              {one.folder && (one.current || one.url) && <> · <code>{one.folder}</code></>}
            </p>
          </li>
        ))}
      </ul>
      {data && (
        <p className="quiet">
          <Coded text={texts.sum(data.projects.length)} />
        </p>
      )}
    </>
  )
}
