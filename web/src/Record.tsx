import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, got } from './api'
import { to } from './look'
import { exactly } from './moments'
import { Facts, H1, Loading, Trouble } from './parts'
import { record as texts } from './strings'

export default function Record({ seq }: { seq: string }) {
  const number = Number(seq)
  const asked = useQuery({
    queryKey: ['record', seq],
    queryFn: () => got(api.GET('/api/v1/records/{seq}', { params: { path: { seq } } })),
    staleTime: Infinity,
  })
  const record = asked.data?.record
  return (
    <>
      <H1 title={texts.title(seq)} />
      <Trouble of={asked} />
      {record ? (
        <>
          <Facts
            className=""
            of={[
              <b>{record.type}</b>,
              record.kind,
              <time dateTime={record.at}>{exactly(record.at)}</time>,
              record.issue && <Link href={to.issue(record.issue)}>{record.issue}</Link>,
              record.run && <Link href={to.run(record.run)}>{record.run}</Link>,
            ]}
          />
          <pre tabIndex={0}>{JSON.stringify(record.body, null, 2)}</pre>
        </>
      ) : asked.isPending && <Loading />}
      <nav className="acts" aria-label={texts.records}>
        {number > 1 && <Link href={to.record(number - 1)}>{texts.previous(number - 1)}</Link>}
        <Link href={to.record(number + 1)}>{texts.next(number + 1)}</Link>
      </nav>
    </>
  )
}
