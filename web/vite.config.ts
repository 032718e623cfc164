import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// The page's policy forbids inline scripts, so nothing is inlined, and no polyfill of preloading is made.
export default defineConfig({
  plugins: [react()],
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
          groups: [{ name: 'work', test: /src.(Issue|Course|Run|Record|Report|Budgets)\.tsx/ }],
        },
      },
    },
  },
})
