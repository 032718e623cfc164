import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { Link } from 'wouter'
import { asks } from './api'
import { PhaseList } from './Counts'
import { to } from './look'
import { Facts, H1, Loading, Trouble, useWide } from './parts'

const PolicyGraph = lazy(() => import('./PolicyGraph'))

const TITLE = 'Where issues are'

/** A policy with how many issues are where, and how often each edge was taken. */
export default function Policy({ policy }: { policy: string }) {
  const asked = useQuery(asks.policy(policy))
  const now = useQuery(asks.now())
  const others = now.data?.policies.filter(one => one !== policy) ?? []
  const wide = useWide()
  const { data } = asked
  return (
    <>
      <H1 title={`Policy ${policy}`} />
      <Trouble of={asked} />
      {asked.isPending && <Loading />}
      {data && (wide ? <Suspense fallback={<Loading />}><PolicyGraph title={TITLE} policies={[data]} linked /></Suspense> : <PhaseList title={TITLE} policy={data} linked />)}
      {others.length > 0 && <Facts of={['Other policies', ...others.map(one => <Link href={to.policy(one)}>{one}</Link>)]} />}
    </>
  )
}
