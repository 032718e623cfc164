import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { api, got, queries, type RunRecord } from './api'
import type { components } from './api-types'
import { type Signs, useSigns } from './signs'
import { Coded, Facts, type Head as Heading, Loading, Mark, Section, Trouble, useDraft, useSeen, When } from './parts'
import { shared, work as texts } from './strings'
import { figure, money, span } from './wording'

type Changed = components['schemas']['ChangedFile']
type Transcript = components['schemas']['Transcript']
type Of = { issue: string; run: string }
type Source = { issue: string; run?: string | undefined }

/** Asks git for what a run changed, or an issue all in all: for its files, or for lines of one. */
const changes = ({ issue, run }: Source, query: { path?: string; after?: number } = {}) =>
  run === undefined
    ? got(api.GET('/api/v1/issues/{issue}/diff', { params: { path: { issue }, query } }))
    : got(api.GET('/api/v1/runs/{issue}/{run}/diff', { params: { path: { issue, run }, query } }))

// --- what it changed --------------------------------------------------------------------------------------------

/** The files that were changed, and of each that is opened what; git is asked for no more than that.
 *  `judged`: a person is to look through them, marks what is seen, and writes words to lines.
 */
export function Diff({ issue, run, title, head, judged = false }: Source & { title: string; head?: Heading; judged?: boolean }) {
  const asked = useQuery({ queryKey: ['diff', issue, run], queryFn: () => changes({ issue, run }) })
  const { data } = asked
  const sum = (of: 'added' | 'removed') => figure(data?.files.reduce((sum, one) => sum + one[of], 0) ?? 0)
  const [marks, mark] = useSeen(issue)
  const commit = data?.head ?? ''
  const all = (data?.files.length ?? 0) + (data?.more ?? 0)
  const seen = marks.head === commit ? marks.paths : []
  const see = (path: string) => mark({ head: commit, paths: seen.includes(path) ? seen.filter(one => one !== path) : [...seen, path] })
  const next = data?.files.findIndex(({ path }) => !seen.includes(path))
  return (
    <Section name={`diff-${issue}`} title={title} head={head}>
      <Trouble of={asked} />
      {asked.isLoading && <Loading />}
      {data?.why && <p className="quiet">{data.why}</p>}
      {data && data.files.length > 0 && (
        <p className="quiet">
          {texts.sum(all, <Lines added={sum('added')} removed={sum('removed')} />, <code>{data.base?.slice(0, 10)}</code>, <code>{commit.slice(0, 10)}</code>)}
          {judged && <>, <span role="status">{texts.seenSum(data.files.filter(({ path }) => seen.includes(path)).length, all)}</span></>}
        </p>
      )}
      <ul className="files">
        {data?.files.map((file, at) => (
          <li key={file.path} className={judged ? 'judged' : undefined}>
            {judged && <label><input type="checkbox" data-key="v" checked={seen.includes(file.path)} onChange={() => see(file.path)} /> {texts.seen} <kbd>v</kbd></label>}
            <File issue={issue} run={run} head={data.head} file={file} first={run === undefined && at === next} judged={judged} />
          </li>
        ))}
      </ul>
      {Boolean(data?.more) && <p className="quiet"><Coded text={texts.moreFiles(data!.more)} /></p>}
    </Section>
  )
}

const Lines = ({ added, removed }: { added: string; removed: string }) => (
  <span className="changed"><b className="add">+{added}</b> <b className="del">−{removed}</b></span>
)

type Commit = string | null | undefined

type Shown = Source & { head: Commit; judged: boolean }

/** `first`: of those that are not seen yet; it is opened, and closed once it is seen. */
function File({ issue, run, head, file, first, judged }: Shown & { file: Changed; first: boolean }) {
  const [open, set] = useState(first)
  useEffect(() => set(first), [first])
  const { path, former, status, unread, link } = file
  const name = <><span className="path">{former && `${former} → `}{path}</span> <span className="quiet">{[texts.kinds[status], link && texts.link].filter(Boolean).join(', ')}</span></>
  if (unread) return <p className="file">{name} <span className="quiet">{texts.unread[unread]}</span></p>
  return (
    <details open={open} onToggle={event => set(event.currentTarget.open)}>
      <summary className="file" data-step>{name} <Lines added={figure(file.added)} removed={figure(file.removed)} /></summary>
      {open && <Patch issue={issue} run={run} head={head} path={path} judged={judged} />}
    </details>
  )
}

const SIGNS: Record<string, string> = { '+': 'add', '-': 'del', '@': 'hunk', '\\': 'hunk' }

/** Numbers lines as the changed file has them; 0: it does not have this one. */
function numbers(lines: string[]): number[] {
  let at = 0
  return lines.map(line => {
    const hunk = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(line)
    if (hunk) at = Number(hunk[1])
    return hunk || !at || '-\\'.includes(line[0] ?? '') ? 0 : at++
  })
}

function Patch({ issue, run, head, path, judged }: Shown & { path: string }) {
  const [line, point] = useState(0)
  const asked = useInfiniteQuery({
    queryKey: ['patch', issue, run, head, path], // an issue's work goes on
    queryFn: ({ pageParam }) => changes({ issue, run }, { path, after: pageParam }),
    initialPageParam: 0,
    getNextPageParam: last => last.next,
    staleTime: Infinity,
  })
  const pages = asked.data?.pages ?? []
  const lines = pages.flatMap(page => page.lines)
  const left = (pages.at(-1)?.total ?? 0) - lines.length
  const numbered = useMemo(() => (judged ? numbers(lines) : []), [lines.length, judged])
  return (
    <>
      <Trouble of={asked} />
      {asked.isLoading && <Loading />}
      {pages[0]?.why && <p className="quiet">{pages[0].why}</p>}
      {asked.data && !pages[0]?.why && lines.length === 0 && <p className="quiet">{texts.same}</p>}
      {lines.length > 0 && (
        <pre
          className={judged ? 'diff numbered' : 'diff'}
          tabIndex={0}
          aria-label={texts.changesIn(path)}
          onClick={({ target }) => judged && getSelection()?.isCollapsed && point(Number((target as HTMLElement).dataset.line ?? line))}
        >
          {lines.map((line, at) => <span key={at} className={SIGNS[line[0] ?? '']} data-line={numbered[at] || undefined}>{line || ' '}{'\n'}</span>)}
        </pre>
      )}
      {judged && lines.length > 0 && <Comment issue={issue} path={path} line={line} point={point} most={Math.max(...numbered)} />}
      {asked.hasNextPage && (
        <p><button disabled={asked.isFetching} onClick={() => void asked.fetchNextPage()}>{texts.moreLines(left)}</button></p>
      )}
    </>
  )
}

/** Words to a line: they go into the request for changes, where the agent reads them. */
function Comment({ issue, path, line, point, most }: { issue: string; path: string; line: number; point: (line: number) => void; most: number }) {
  const [draft, write] = useDraft(issue)
  const [words, say] = useState('')
  const box = useRef<HTMLInputElement>(null)
  const [added, add] = useState(false)
  useEffect(() => {
    if (line) box.current?.focus(), add(false)
  }, [line])
  if (!line) {
    return (
      <p className="comment">
        <button onClick={() => point(1)}>{texts.commentOnLine}</button>
        <span role="status" className="quiet">{added && texts.added}</span>
      </p>
    )
  }
  return (
    <form
      className="comment"
      onSubmit={event => {
        event.preventDefault()
        write(`${draft}${draft && '\n'}${path}:${line}: ${words.trim()}`)
        say('')
        add(true)
        point(0)
      }}
    >
      <label>{texts.line} <input type="number" min={1} max={most} required value={line} onChange={event => point(Number(event.target.value) || 1)} /></label>
      <label>{texts.comment} <input ref={box} required maxLength={2000} value={words} onChange={event => say(event.target.value)} /></label>
      <button>{texts.add}</button>
      <button type="button" onClick={() => point(0)}>{texts.cancel}</button>
    </form>
  )
}

// --- what was said ----------------------------------------------------------------------------------------------

const PAUSE = 2000
const NEAR = 24

/** The end of what was said, asked for when it is opened; it goes on while the run does, and stays where it is read. */
export function Said({ issue, run, signs }: Of & { signs: Signs | null }) {
  const [open, set] = useState(false)
  const [follows, follow] = useState(true)
  const box = useRef<HTMLDivElement>(null)
  const last = useRef(0)
  const queryKey = ['transcript', issue, run]
  const asked = useQuery({
    queryKey,
    enabled: open,
    queryFn: async ({ signal }) => {
      await new Promise(done => setTimeout(done, last.current + PAUSE - Date.now()))
      last.current = Date.now()
      const before = queries.getQueryData<Transcript>(queryKey)
      const query = { after: before?.mark ?? undefined }
      const found = await got(api.GET('/api/v1/runs/{issue}/{run}/transcript', { params: { path: { issue, run }, query }, signal }))
      return before && found.mark && found.mark === before.mark ? before : found
    },
  })
  const { data } = asked
  const [words, search] = useState('')
  const wanted = words.toLowerCase()
  const shown = (data?.steps ?? []).filter(({ text, tool, arguments: given }) => `${text} ${tool} ${given}`.toLowerCase().includes(wanted))
  useEffect(() => {
    if (signs && open) void queries.invalidateQueries({ queryKey: ['transcript', issue, run] }, { cancelRefetch: false })
  }, [signs, open, issue, run])
  useEffect(() => {
    if (follows && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [data, follows])
  return (
    <details onToggle={event => set(event.currentTarget.open)}>
      <summary data-step>{texts.transcript}</summary>
      <Trouble of={asked} />
      {asked.isLoading && <Loading />}
      {data?.why && <p className="quiet">{data.why}</p>}
      {data?.unread && <p className="quiet">{texts.kept(data.unread)}</p>}
      {data?.cut && <p className="quiet">{texts.cut}</p>}
      {data && data.steps.length > 0 && (
        <>
          <label className="filter">{shared.filter} <input type="search" value={words} onChange={event => search(event.target.value)} /></label>
          <div className="tail">
            <div
              ref={box}
              className="steps"
              role="group"
              tabIndex={0}
              aria-label={texts.transcript}
              onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => follow(scrollTop + clientHeight > scrollHeight - NEAR)}
            >
              {shown.length ? shown.map((step, at) => <Step key={at} of={step} />) : <p className="quiet">{shared.empty}</p>}
            </div>
            {!follows && <button onClick={() => follow(true)}>{texts.toEnd}</button>}
          </div>
        </>
      )}
    </details>
  )
}

/** Words stand open; a tool's call is a line with its answer folded, but for one that failed. */
function Step({ of: { role, text, tool, arguments: given, failed, cost, at } }: { of: Transcript['steps'][number] }) {
  const facts = <Facts of={[at && <When at={at} />, cost !== null && cost > 0 && money(cost)]} />
  if (role !== 'tool') return <div className={`step ${role}`}><b>{texts.roles[role]}</b> {facts}<p>{text}</p></div>
  return (
    <details className="step" open={failed}>
      <summary>{failed && <Mark as="parked" sign="✕">{texts.failed}</Mark>} <b>{tool}</b> <code>{given}</code></summary>
      {facts}
      {text ? <pre tabIndex={0}>{text}</pre> : <p className="quiet">{texts.noOutput}</p>}
    </details>
  )
}

/** How alive a run is that goes on. */
export function Alive({ signs }: { signs: Signs }) {
  const { quiet, tool, tool_for: at, retry_in: again, heard, tokens } = signs
  const since = quiet !== undefined ? quiet * 1000 : heard ? Date.now() - Date.parse(heard) : null
  return (
    <p className="quiet facts" data-signs>
      {since !== null && <span>{texts.activity(span(since))}</span>}
      {tool && <span>{texts.tool(tool, span(1000 * (at ?? 0)))}</span>}
      {again != null && <span>{texts.retry(span(1000 * again))}</span>}
      <span>{texts.soFar(tokens)}</span>
    </p>
  )
}

// --- its session ------------------------------------------------------------------------------------------------

/** Where a browser shows the session, how a terminal opens it, and what was said in it. */
export function Session({ issue, run, record, signs }: Of & { record: RunRecord; signs: Signs | null }) {
  const [copied, copy] = useState(false)
  const queryFn = () => got(api.GET('/api/v1/runs/{issue}/{run}/session', { params: { path: { issue, run } } }))
  const asked = useQuery({ queryKey: ['session', issue, run], queryFn, enabled: Boolean(record.session) })
  const { data } = asked
  const link = data?.link && /^https?:\/\//.test(data.link) ? data.link : null
  const why = record.session ? data && (data.why ?? (data.command ? null : texts.noCommand)) : texts.noSession
  return (
    <Section name="session" title={texts.session}>
      <Trouble of={asked} />
      <div className="acts">
        {link ? <a className="button" href={link} target="_blank" rel="noopener">{texts.open}</a> : <button disabled aria-describedby="session-why">{texts.open}</button>}
        <button disabled={!data?.command} aria-describedby="session-why" onClick={() => void navigator.clipboard.writeText(data?.command ?? '').then(() => copy(true))}>
          {copied ? texts.copied : texts.copy}
        </button>
        <span id="session-why" className="quiet" role="status">{asked.isLoading ? texts.asking : why}</span>
      </div>
      {link && <p className="quiet"><Coded text={texts.password} /></p>}
      {data && (
        <details>
          <summary data-step>{texts.how}</summary>
          <pre tabIndex={0}>{data.said}</pre>
        </details>
      )}
      {record.session && <Said issue={issue} run={run} signs={signs} />}
    </Section>
  )
}

export const useLife = (record: RunRecord) => useSigns(record.run, record.ended_at === null)
