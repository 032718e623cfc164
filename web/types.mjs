// Makes src/api-types.ts of an OpenAPI document: of what the page asks, and of what it is answered.
import { readFileSync, writeFileSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'

const [from = 'openapi.json', to = 'src/api-types.ts'] = process.argv.slice(2)
const described = JSON.parse(readFileSync(from, 'utf8'))
const paths = Object.entries(described.paths).filter(([path]) => path.startsWith('/api/v1/'))
for (const operation of paths.flatMap(([, operations]) => Object.values(operations))) {
  operation.responses = Object.fromEntries(Object.entries(operation.responses).filter(([status]) => status < '300'))
}

const schemas = {}
const keep = (part, named = false) => {
  if (Array.isArray(part)) return part.map(one => keep(one))
  if (part === null || typeof part !== 'object') return part
  const name = part.$ref?.split('/').at(-1)
  if (name && !(name in schemas)) {
    schemas[name] = {}
    schemas[name] = keep(described.components.schemas[name])
  }
  const said = named ? [] : ['title', 'description', 'summary']
  return Object.fromEntries(Object.entries(part).filter(([key]) => !said.includes(key)).map(([key, one]) => [key, keep(one, key === 'properties')]))
}
const kept = keep(Object.fromEntries(paths))

// An answer is told in full: what has a default is there, too. Of what is asked it may be left out.
const bodies = paths.flatMap(([, operations]) => Object.values(operations).map(one => one.requestBody?.content['application/json'].schema.$ref))
const asked = new Set(bodies.map(ref => ref?.split('/').at(-1)))
for (const [name, schema] of Object.entries(schemas)) {
  if (!schema.properties || asked.has(name)) continue
  schema.required = Object.keys(schema.properties)
  for (const property of Object.values(schema.properties)) delete property.default
}
const made = { openapi: described.openapi, info: described.info, paths: kept, components: { schemas } }
writeFileSync(to, astToString(await openapiTS(made, { alphabetize: true, defaultNonNullable: false })))
