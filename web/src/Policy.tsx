import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { Link } from 'wouter'
import { asks } from './api'
import { PhaseList } from './Counts'
import { to } from './look'
import { Facts, H1, Loading, Trouble, useWide } from './parts'
import { policy as texts, shared } from './strings'

const PolicyGraph = lazy(() => import('./PolicyGraph'))

/** A policy with how many issues are where, and how often each edge was taken. */
export default function Policy({ policy }: { policy: string }) {
  const asked = useQuery(asks.policy(policy))
  const now = useQuery(asks.now())
  const others = now.data?.policies.filter(one => one !== policy) ?? []
  const wide = useWide()
  const { data } = asked
  return (
    <>
      <H1 title={shared.policy(policy)} />
      <Trouble of={asked} />
      {asked.isPending && <Loading />}
      {data && (wide ? <Suspense fallback={<Loading />}><PolicyGraph title={texts.where} policies={[data]} linked /></Suspense> : <PhaseList title={texts.where} policy={data} linked />)}
      {others.length > 0 && <Facts of={[texts.others, ...others.map(one => <Link href={to.policy(one)}>{one}</Link>)]} />}
    </>
  )
}
