// Writes the licences of what is bundled beside the page: each package that the lock has for more than building.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const TEXTS = /^(licen[cs]e|copying|unlicense)(\.|$)/i
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const bundled = Object.entries(lock.packages).filter(([path, one]) => path && !one.dev && !one.optional && !one.devOptional)
const parts = bundled.map(([path, one]) => {
  const { name, author } = JSON.parse(readFileSync(`${path}/package.json`, 'utf8'))
  const file = readdirSync(path).find(found => TEXTS.test(found))
  const by = typeof author === 'string' ? author : author?.name
  const text = file ? readFileSync(`${path}/${file}`, 'utf8').trim() : `${one.license}${by ? `, by ${by}` : ''}; the package has no text of it.`
  return `${name} ${one.version} (${one.license})\n\n${text}\n`
})
writeFileSync('../ashep/page/static/THIRD_PARTY.txt', parts.join(`\n${'-'.repeat(72)}\n\n`))
