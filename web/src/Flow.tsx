import {
  BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps, Handle, MarkerType, type Node, type NodeProps, Position, ReactFlow, useReactFlow,
  useStore,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import { memo, useEffect, useMemo } from 'react'
import { useLocation } from 'wouter'
import type { State } from './api'

type Place = { id: string; x: number; y: number; href?: string }
export type Box = Place & { title: string; lines: string[]; said?: string; sign: string; as: State; shape?: 'human' | 'end'; bad?: boolean }
type Way = 'on' | 'over' | 'under'
export type Arrow = { id: string; source: string; target: string; label: string; way: Way; rise?: number; dashed?: boolean; bad?: boolean }
export type Size = { width: number; height: number }

const Drawn = memo(({ data }: NodeProps<Node<Box>>) => (
  <div className={`box s-${data.as} ${data.shape ?? ''} ${data.bad ? 'bad' : ''}`}>
    <Handle type="target" position={Position.Left} isConnectable={false} />
    <strong>{data.title}</strong>
    {data.lines.map((line, place) => (
      <div key={place}>
        {place === 0 && data.sign && <i aria-hidden>{data.sign} </i>}
        {line}
      </div>
    ))}
    <Handle type="source" position={Position.Right} isConnectable={false} />
  </div>
))

type Bent = Edge<{ way: Way; rise: number; size: Size; dashed: boolean; bad: boolean }>

/** On: a curve from side to side. Over: an arc above both boxes. Under: from below the one to the side of the other. */
const Line = memo(({ id, sourceX: x1, sourceY: y1, targetX: x2, targetY: y2, label, markerEnd, data }: EdgeProps<Bent>) => {
  const { way, rise, size, dashed, bad } = data!
  const level = way === 'on' && y1 === y2
  let path: string
  let [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2]
  if (way === 'over') {
    const [from, into, top] = [x1 - size.width * 0.4, x2 + size.width * 0.4, Math.min(y1, y2) - size.height / 2]
    path = `M${from},${y1 - size.height / 2} C${from},${top - rise} ${into},${top - rise} ${into},${y2 - size.height / 2}`
    ;[x, y] = [(from + into) / 2, top - rise * 0.75]
  } else if (way === 'under') {
    const from = x1 - size.width / 2
    const low = y1 + size.height / 2
    path = `M${from},${low} C${from},${y2} ${from + 30},${y2} ${Math.min(from + 60, x2 - 20)},${y2} L${x2},${y2}`
    ;[x, y] = [from, low + (y2 - low) * 0.4]
  } else {
    const bend = Math.max(24, (x2 - x1) / 2)
    path = `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`
  }
  return (
    <>
      <BaseEdge id={id} path={path} markerEnd={markerEnd} className={`${dashed ? 'dashed' : ''} ${bad ? 'bad' : ''}`} />
      {label && (
        <EdgeLabelRenderer>
          <div className={`label ${way} ${level ? 'level' : ''}`} style={{ transform: `translate(-50%, ${level ? -100 : -50}%) translate(${x}px, ${y}px)` }}>
            {label}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  )
})

const BOXES = { drawn: Drawn }
const LINES = { line: Line }
const MANY = 150
const PADDING = 0.04
const CLOSE = 0.86 // letters of 14 px are 12 px high then

/** Keeps in sight what is to be seen: all of it where it can be read, else its end, or its beginning. */
function Sight({ boxes, size, toEnd }: { boxes: Box[]; size: Size; toEnd: boolean }) {
  const { fitView, setCenter, getViewport } = useReactFlow()
  const width = useStore(({ width }) => width)
  const last = boxes.at(-1)
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      void fitView({ maxZoom: 1, padding: PADDING }).then(() => {
        if (!last || getViewport().zoom >= CLOSE) return
        const [columns, heights] = [boxes.map(box => box.x), boxes.map(box => box.y)]
        const middle = (Math.min(...heights) + Math.max(...heights) + size.height) / 2
        const half = width / 2 / CLOSE
        void setCenter(toEnd ? last.x + size.width + 20 - half : Math.min(...columns) - 20 + half, middle, { zoom: CLOSE })
      })
    })
    return () => cancelAnimationFrame(frame)
  }, [last?.id, boxes.length, width > 0]) // not with every number in a box: who has moved the graph is left alone
  return null
}

export type Lane = { title: string; y: number; height: number }

/** Lanes go with the graph up and down; their titles stay at its side. */
function Lanes({ of }: { of: Lane[] }) {
  const [, y, zoom] = useStore(({ transform }) => transform)
  return of.map(lane => (
    <div key={lane.title} className="lane" style={{ top: y + lane.y * zoom, height: lane.height * zoom }}><span>{lane.title}</span></div>
  ))
}

type Graph = {
  lanes?: Lane[]
  name: string
  boxes: Box[]
  arrows: Arrow[]
  size: Size
  toEnd?: boolean
  height: number
  chosen?: string
  choose?: (id: string) => void
}

/** A graph that is read, not edited. Sizes and handles are given, so that nothing is measured. A click opens what a box
 *  is of; with `choose` the first one chooses it.
 */
export default function Flow({ name, boxes, arrows, size, lanes, toEnd = false, height, chosen, choose }: Graph) {
  const [, go] = useLocation()
  const nodes = useMemo(
    () =>
      boxes.map(
        (box): Node<Box> => ({
          id: box.id,
          type: 'drawn',
          data: box,
          position: { x: box.x, y: box.y },
          ...size,
          handles: [
            { type: 'target', position: Position.Left, x: 0, y: size.height / 2, width: 1, height: 1 },
            { type: 'source', position: Position.Right, x: size.width, y: size.height / 2, width: 1, height: 1 },
          ],
          ariaLabel: [box.title, box.said ?? box.lines.join(', ')].join(', '),
          focusable: box.href !== undefined,
          className: box.id === chosen ? 'chosen' : '',
        }),
      ),
    [boxes, size, chosen],
  )
  const edges = useMemo(
    () =>
      arrows.map(
        ({ id, source, target, label, way, rise = 0, dashed = false, bad = false }): Bent => ({
          id,
          source,
          target,
          label,
          type: 'line',
          focusable: false,
          markerEnd: { type: MarkerType.ArrowClosed, color: 'var(--quiet)' },
          data: { way, rise, size, dashed, bad },
        }),
      ),
    [arrows, size],
  )
  const open = (id: string | undefined) => {
    const href = boxes.find(box => box.id === id)?.href
    if (href) go(href)
  }
  return (
    <div
      className="graph"
      style={{ height }}
      onKeyDown={event => event.key === 'Enter' && open((event.target as HTMLElement).dataset.id)}
    >
      <ReactFlow
        aria-label={name}
        nodes={nodes}
        edges={edges}
        nodeTypes={BOXES}
        edgeTypes={LINES}
        minZoom={0.2}
        maxZoom={2}
        onlyRenderVisibleElements={boxes.length > MANY}
        nodesDraggable={false}
        nodesConnectable={false}
        elementsSelectable={false}
        zoomOnScroll={false}
        preventScrolling={false}
        onNodeClick={(_, node) => (choose && node.id !== chosen ? choose(node.id) : open(node.id))}
      >
        {lanes && <Lanes of={lanes} />}
        <Sight boxes={boxes} size={size} toEnd={toEnd} />
      </ReactFlow>
    </div>
  )
}
