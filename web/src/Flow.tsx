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
const MARGIN = 16
const NONE: never[] = []
const HIGHEST = 560
const CLOSE = 0.86 // letters of 14 px are 12 px high then, and never less

type Extent = { left: number; top: number; width: number; height: number }

/** Shows all of it where it can be read, else its end, or its beginning; the box around it scrolls to the rest. */
function Sight({ of: { left, top, width, height }, toEnd }: { of: Extent; toEnd: boolean }) {
  const { setViewport } = useReactFlow()
  const [wide, high, root] = [useStore(({ width }) => width), useStore(({ height }) => height), useStore(({ domNode }) => domNode)]
  useEffect(() => {
    if (!wide || !high) return
    const zoom = Math.min(1, Math.max(CLOSE, Math.min(wide / width, high / height)))
    const room = wide - width * zoom
    void setViewport({ x: (room < 0 && toEnd ? room : Math.max(0, room / 2)) - left * zoom, y: (high - height * zoom) / 2 - top * zoom, zoom })
    if (toEnd) root?.closest('.graph')?.scrollTo({ left: wide })
  }, [left, top, width, height, toEnd, wide, high, root])
  return null
}

export type Lane = { title: string; y: number; height: number }

/** A frame around boxes, with a name. */
export type Bracket = { name: string; kind: 'round' | 'tries'; x: number; y: number; width: number; height: number }

/** Lanes and brackets go with the graph; their names stay in sight, at its side. */
function Lanes({ lanes, brackets }: { lanes: Lane[]; brackets: Bracket[] }) {
  const [left, top, zoom] = useStore(({ transform }) => transform)
  return (
    <>
      {lanes.map(({ title, y, height }) => (
        <div key={title} className="lane" style={{ top: top + y * zoom, height: height * zoom }}><span>{title}</span></div>
      ))}
      {brackets.map(({ name, kind, x, y, width, height }) => (
        <div key={`${kind} ${x}`} className={`bracket ${kind}`} style={{ left: left + x * zoom, top: top + y * zoom, width: width * zoom, height: height * zoom }} aria-hidden>
          <span>{name}</span>
        </div>
      ))}
    </>
  )
}

type Graph = {
  lanes?: Lane[]
  brackets?: Bracket[]
  name: string
  boxes: Box[]
  arrows: Arrow[]
  size: Size
  toEnd?: boolean
  /** Room above the first box, and all in all. */
  above: number
  height: number
  chosen?: string
  choose?: (id: string) => void
}

/** A graph that is read, not edited. Sizes and handles are given, so that nothing is measured. A click opens what a box
 *  is of; with `choose` the first one chooses it. What does not fit at a size that can be read scrolls in its own box;
 *  of very many boxes only those in sight are drawn, and a drag moves them.
 */
export default function Flow({ name, boxes, arrows, size, lanes = NONE, brackets = NONE, toEnd = false, above, height, chosen, choose }: Graph) {
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
  const extent = useMemo(() => {
    const [columns, top] = [boxes.map(({ x }) => x), Math.min(...boxes.map(({ y }) => y))]
    const left = Math.min(...columns) - MARGIN
    return { left, top: top - above, width: Math.max(...columns) + size.width + MARGIN - left, height }
  }, [boxes, size, above, height])
  const many = boxes.length > MANY
  return (
    <div
      className="graph"
      role="group"
      aria-label={name}
      tabIndex={0}
      style={{ height: Math.min(height, HIGHEST) }}
      onKeyDown={event => event.key === 'Enter' && open((event.target as HTMLElement).dataset.id)}
    >
      <div style={{ height: '100%', minHeight: height * CLOSE, minWidth: many ? 0 : extent.width * CLOSE }}>
        <ReactFlow
          aria-label={name}
          nodes={nodes}
          edges={edges}
          nodeTypes={BOXES}
          edgeTypes={LINES}
          minZoom={CLOSE}
          maxZoom={1}
          onlyRenderVisibleElements={many}
          nodesDraggable={false}
          nodesConnectable={false}
          elementsSelectable={false}
          panOnDrag={many}
          zoomOnScroll={false}
          zoomOnPinch={false}
          zoomOnDoubleClick={false}
          preventScrolling={false}
          onNodeClick={(_, node) => (choose && node.id !== chosen ? choose(node.id) : open(node.id))}
        >
          <Lanes lanes={lanes} brackets={brackets} />
          <Sight of={extent} toEnd={toEnd} />
        </ReactFlow>
      </div>
    </div>
  )
}
