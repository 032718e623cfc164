import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// The page's policy forbids inline scripts, so nothing is inlined, and no polyfill of preloading is made.
export default defineConfig({
  plugins: [react()],
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
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: 'work', test: /src.(Issue|Course|Run|Record|Report|Budgets)\.tsx/ },
            { name: 'first', test: /node_modules.(react|react-dom|scheduler|regexparam|wouter|openapi-fetch|use-sync-external-store|@tanstack.query-core|@tanstack.react-query(?!.*Infinite))\/|preload-helper|src.(api|look|parts|settings|tab|live|Frame|Now|Card|Counts|Answered)\.tsx?$/ },
          ],
        },
      },
    },
  },
})
