// Finds English outside src/strings.ts: text between tags, attributes that are read out, and strings of several words.
import { readdirSync, readFileSync } from 'node:fs'
import ts from 'typescript'

const SAID = new Set(['aria-label', 'aria-valuetext', 'title', 'placeholder', 'label', 'alt'])
/** What takes selectors, styles and names of programs: attributes, calls, keys, variables and tags. */
const CODE = /^(className|rel|style|font|transform|query|querySelector(All)?|set|setProperty|supports|matches|closest|matchMedia|mark|split|code|kbd)$/i

const nameOf = node => (node.openingElement?.tagName ?? node.expression?.name ?? node.expression ?? node.name)?.getText() ?? ''
const isCode = node => {
  if (ts.isImportDeclaration(node.parent) || ts.isLiteralTypeNode(node.parent)) return true
  for (let parent = node.parent; parent && !ts.isBlock(parent); parent = parent.parent) {
    const holds = ts.isJsxElement(parent) || ts.isJsxAttribute(parent) || ts.isCallExpression(parent) || ts.isNewExpression(parent) || ts.isPropertyAssignment(parent) || ts.isVariableDeclaration(parent)
    if (holds) return CODE.test(nameOf(parent))
  }
  return false
}

/** A text is English where it has two words, or is part of a sentence; one word alone, where it has a capital and is shown. */
function isEnglish(node, words) {
  if (ts.isJsxText(node)) return /\p{L}{2}/u.test(words)
  if (ts.isJsxAttribute(node.parent)) return SAID.has(node.parent.name.getText()) && /\p{L}{2}/u.test(words)
  if (ts.isBinaryExpression(node.parent) && /^(===|!==|in)$/.test(node.parent.operatorToken.getText())) return false
  return /^[^<]*\p{L}{2}.* .*\p{L}|^ \p{L}{2}|\p{L}{2} $/u.test(words) || (!ts.isCallExpression(node.parent) && /^\p{Lu}\p{Ll}+$/u.test(words))
}

function findTexts(file) {
  const text = readFileSync(file, 'utf8')
  if (file.endsWith('.css')) return (text.match(/content: '.*\p{L}{2}.*'/gu) ?? []).map(match => `${file}: ${match}`)
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const texts = []
  const look = node => {
    const words = ts.isTemplateExpression(node) ? [node.head, ...node.templateSpans.map(span => span.literal)].map(part => part.text).join('…') : node.text
    const isText = ts.isJsxText(node) || ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)
    if (isText && isEnglish(node, words) && !isCode(node)) texts.push(`${file}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${words.trim()}`)
    ts.forEachChild(node, look)
  }
  look(source)
  return texts
}

const [folder = 'src'] = process.argv.slice(2)
const texts = readdirSync(folder).filter(file => /\.(tsx?|css)$/.test(file) && !['strings.ts', 'api-types.ts'].includes(file)).flatMap(file => findTexts(`${folder}/${file}`))
texts.forEach(text => console.error(text))
process.exitCode = texts.length ? 1 : 0
