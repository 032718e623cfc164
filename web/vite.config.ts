import react from '@vitejs/plugin-react'
import { readFileSync } from 'node:fs'
import { defineConfig, type Plugin } from 'vite'

/** Makes a module of each object of strings.ts, and of each of its keys an export: a script carries what it says, no more. */
const strings: Plugin = {
  name: 'strings',
  enforce: 'pre',
  transform(code, id) {
    if (!/src.\w+\.tsx?$/.test(id)) return
    return code.replace(/^import \{ (.+) \} from '\.\/strings'$/gm, (_, names: string) =>
      names.split(', ').map(one => one.split(' as ')).map(([name, as = name]) => `import * as ${as} from './strings.ts?${name}'`).join('; '))
  },
  load(id) {
    const [file, name] = id.split('?')
    if (!name || !file!.endsWith('strings.ts')) return
    const [head, body] = readFileSync(file!, 'utf8').split(new RegExp(`^(?=export const ${name} = )`, 'm'))
    const keys = body!.slice(0, body!.search(/^\}/m)).split(/^ {2}(?=\w+:)/m).slice(1)
    return head!.split(/^export/m)[0] + keys.map(key => key.replace(/^(\w+):([^]*?),?\s*$/, 'export const $1 =$2')).join('\n')
  },
}

// The page's policy forbids inline scripts, so nothing is inlined, and no polyfill of preloading is made.
export default defineConfig({
  plugins: [strings, react()],
  resolve: { alias: { 'use-sync-external-store/shim/index.js': 'react' } }, // React has it since 18
  build: {
    outDir: '../ashep/page/static',
    emptyOutDir: true,
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    // What one place leads to is one chunk: packed together it is two kilobytes less.
    rolldownOptions: {
      optimization: { inlineConst: { mode: 'all' } },
      treeshake: { propertyReadSideEffects: false, unknownGlobalSideEffects: false },
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: 'work', test: /src.(strings\.ts\?)?(Issue|Course|Run|Record|Report|Budgets)\b/i },
            { name: 'first', test: /node_modules.(react|react-dom|scheduler|regexparam|wouter|@tanstack.(query-core|react-query)(?!.*infiniteQuery(Observer)?\.))\/|preload-helper|src.(strings\.ts\?)?(wording|moments|shared|api|look|parts|settings|tab|live|Frame|Now|Card|Counts|Answered)(\.tsx?)?$/i },
          ],
        },
      },
    },
  },
})
