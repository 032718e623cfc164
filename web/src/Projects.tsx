import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, got } from './api'
import { count, figure } from './look'
import { H1, Loading, Trouble } from './parts'

const AGAIN = 60_000
const asked = { queryKey: ['projects'], queryFn: () => got(api.GET('/api/v1/projects')), staleTime: AGAIN }

/** Leads to the other projects of this machine, where there are any, and says how much waits there. */
export function Others() {
  const others = useQuery(asked).data?.projects.filter(one => !one.current) ?? []
  const waiting = others.reduce((sum, one) => sum + (one.waiting ?? 0), 0)
  if (!others.length) return null
  return <Link className="others" href="/projects" aria-label={`Projects, ${waiting} waiting in others`}>Projects{waiting > 0 && <b> {waiting}</b>}</Link>
}

/** As a shell takes it. */
const quoted = (path: string) => (/[^\w/.@+-]/.test(path) ? `'${path.replaceAll("'", "'\\''")}'` : path)

export default function Projects() {
  const { data, ...of } = useQuery({ ...asked, refetchInterval: AGAIN })
  return (
    <>
      <H1 title="Projects" />
      <Trouble of={{ data, ...of }} />
      {of.isLoading && <Loading />}
      <ul className="projects">
        {data?.projects.map(one => (
          <li key={one.folder ?? one.name}>
            <h2>{one.current ? <Link href="/">{one.name}</Link> : one.url ? <a href={one.url}>{one.name}</a> : one.name}</h2>
            <p>
              {one.waiting === null ? 'Another version of Agent Shepherd works here.' : (
                <>{one.waiting ? <b>{figure(one.waiting)} waiting for you</b> : 'Nothing is waiting for you'} · {one.works ? `${figure(one.running ?? 0)} running` : 'the daemon is not running'}</>
              )}
            </p>
            <p className="quiet">
              {one.current ? 'This project' : one.url ? <>Its page is at {new URL(one.url).host}</> : <>Its page is not open{one.folder && <>: <code>ashep -C {quoted(one.folder)} ui</code></>}</>}
              {one.folder && (one.current || one.url) && <> · <code>{one.folder}</code></>}
            </p>
          </li>
        ))}
      </ul>
      {data && (
        <p className="quiet">
          {count(data.projects.length, 'project')} of yours on this machine. You come in to each by a link of its own, from <code>ashep ui</code> in its folder.
        </p>
      )}
    </>
  )
}
