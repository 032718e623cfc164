import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { asks, type RunReport } from './api'
import { short, to } from './look'
import { Facts, type Head, Loading, Section, Trouble, When, Words } from './parts'
import { Diff } from './Work'

const TEXTS = [['description', ''], ['acceptance', 'Accepted when'], ['design', 'Design'], ['notes', 'Notes']] as const
const OLDER = 3

/** What a person reads before they answer: what was asked, what agents say they did, and the sum of the change. */
export function Review({ issue, head }: { issue: string; head?: Head }) {
  const asked = useQuery(asks.work(issue))
  const { data } = asked
  const texts = TEXTS.filter(([name]) => data?.words[name])
  return (
    <div className="review">
      <Trouble of={asked} />
      {asked.isLoading && <Loading />}
      {data && (
        <>
          <Section name={`asked-${issue}`} title="Asked" head={head}>
            {data.words.error && <p className="quiet">{data.words.error}</p>}
            {!data.words.error && texts.length === 0 && <p className="quiet">Its title is all that it says.</p>}
            {texts.map(([name, word]) => (
              <div key={name} className="text">{word && <b>{word}</b>}<p><Words text={data.words[name]!} /></p></div>
            ))}
          </Section>
          <Section name={`done-${issue}`} title="Done" head={head}>
            {data.summaries.length === 0 && <p className="quiet">No agent has reported yet.</p>}
            {data.summaries.slice(0, OLDER).map(one => <Report key={one.run} of={one} />)}
            {data.summaries.length > OLDER && (
              <details><summary data-step>Earlier reports</summary>{data.summaries.slice(OLDER).map(one => <Report key={one.run} of={one} />)}</details>
            )}
          </Section>
        </>
      )}
      {!asked.isLoading && <Diff issue={issue} title="Changes" head={head} />}
    </div>
  )
}

const Report = ({ of: { run, phase, agent, ended_at, result, summary } }: { of: RunReport }) => (
  <div className="text">
    <Facts of={[<Link href={to.run(run)}>{short(run)}</Link>, phase, agent, <b>{result}</b>, <When at={ended_at} />]} />
    <p><Words text={summary} /></p>
  </div>
)
