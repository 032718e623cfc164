import type { ReactNode } from 'react'
import { figure, noun, plural, sentence } from './wording'

/** All that the page says in its own words, an object for each of its files; `shared` has what several say. What a
 *  server or an agent says is not here. `…` in backticks is shown as code. vite.config.ts makes a module of each object, so
 *  that a script carries its own words alone: no object uses another, and no key is a word that JavaScript reserves.
 */

// --- what several say -------------------------------------------------------------------------------------------

export const shared = {
  all: 'all',
  andMore: (many: number) => `and ${figure(many)} more`,
  attempts: 'Runs',
  clearFilter: 'Clear this filter',
  cost: (dollars: string) => `cost ${dollars}`,
  dismiss: 'Dismiss',
  empty: 'No matches.',
  evidence: 'Evidence',
  filter: 'Filter',
  issue: 'Issue',
  loading: 'Loading …',
  money: 'Cost',
  now: 'now',
  policy: (name: string) => `Policy ${name}`,
  result: 'Result',
  run: 'Run',
  search: 'Search',
  settings: 'Keys and settings',
  since: (at: ReactNode) => sentence`since ${at}`,
  state: 'State',
  tokens: (many: number) => plural(many, 'token'),
  tries: (many: number) => plural(many, 'run'),
  unknown: 'unknown',
  until: (at: ReactNode) => sentence`until ${at}`,
  used: 'Tokens',
  waiting: 'Waiting for you',
}

export const look = {
  states: {
    person: 'waiting for you', running: 'running', time: 'scheduled', parked: 'parked', not_eligible: 'not picked up', closed: 'closed',
  },
  interrupted: 'interrupted',
  runs: {
    planned: 'queued', running: 'running', succeeded: 'succeeded', failed: 'failed', timed_out: 'timed out', stalled: 'stalled', aborted: 'aborted',
    lost: 'lost', withdrawn: 'withdrawn',
  },
  pages: { now: 'Now', issues: 'Issues', runs: 'Runs', report: 'Report', usage: 'Usage' },
  changes: (lines: string, files: number) => `± ${lines && `${lines} in `}${plural(files, 'file')}`,
  touches: (flag: string) => `! touches ${flag}`,
  unverified: '– not verified',
  failed: (failed: number, all: number) => `✕ ${failed} of ${plural(all, 'check')} failed`,
  note: (words: string) => `! ${words}`,
  noChange: '! the work changes nothing',
  green: (checks: number) => `! ${plural(checks, 'check')} passed before the work, too, and ${noun(checks, 'proves', 'prove')} nothing`,
  waived: (checks: string[]) => `! waived by a person: ${checks.join(', ')}`,
  passed: (passed: number, all: number) => `✓ ${passed < all ? `${figure(passed)} of ` : ''}${plural(all, 'check')} passed`,
  skipped: (checks: number) => `– ${figure(checks)} skipped`,
  noChecks: (status: string) => `– ${status}: there are no checks`,
}

export const api = {
  ended: 'this session has ended',
  status: (status: number) => `the server answered with status ${status}`,
  silent: 'the server does not answer',
}

export const parts = {
  ahead: (span: string) => `in ${span}`,
  past: (span: string) => `${span} ago`,
  noMatch: (things: string) => `No ${things} match these filters.`,
  clearFilters: 'Clear filters',
  seenAt: (at: string) => `. What you see is from ${at}`,
  again: 'Try again',
  reading: 'Reading the journal',
  once: 'This happens once, and after each upgrade. The page opens by itself when it is done.',
}

// --- the frame: what is around every page -----------------------------------------------------------------------

export const main = {
  broken: 'This page cannot be shown',
  reload: 'Reload',
  elsewhere: 'The server may be down, or it was upgraded. `ashep status`, `ashep why` and `ashep report` show the same in a terminal.',
  notFound: 'Page not found',
  noPage: 'There is no such page',
  signedOut: 'This link has expired, or you are signed out',
  getLink: 'Run `ashep ui` in a terminal and open the link that it prints. A link works once, within two minutes, and opens this page.',
  kept: 'This tab keeps what you have started to write.',
}

export const frame = {
  skip: 'Skip to content',
  product: 'Agent Shepherd',
  base: (branch: string) => `Work is merged into ${branch}`,
  pages: 'Pages',
  forYou: ' waiting for you',
  settingsShort: 'Settings',
  settingsPhone: 'More',
  person: (name: string | undefined) => `as ${name}`,
  live: 'live',
  loading: 'loading',
  away: (at: string) => `as of ${at}, not connected`,
  notices: 'Notices',
  more: (many: number) => `${many} more`,
  resume: 'Resume',
  resumed: (provider: string | null) => `Resumed: new runs start again${provider ? ` on ${provider}` : ''}.`,
  stopped: (at: string, why: string | null) => `The daemon stopped at ${at}${why ? ` (${why})` : ''}. Nothing new will start until you run \`ashep work\`.`,
  noDaemon: 'The daemon is not running. Nothing new will start until you run `ashep work`.',
  until: (at: string) => ` until ${at}`,
  untilResumed: ' until someone resumes it',
  paused: (provider: string | null, drains: boolean, by: string, until: string, why: string) =>
    `${provider ?? 'Everything'} is ${drains ? 'being drained' : 'paused'} by ${by}${until}${why && ` (${why})`}. No new run will start.`,
  disk: 'The disk is nearly full. Nothing new will start until you free some space.',
  behind: 'Catching up …',
  colours: (why: string) => `The page keeps its own colours: ${why}`,
  outages: { limited: 'is over its limit', down: 'is down', unauthorized: 'rejects the credentials' } as Record<string, string>,
  outage: (provider: string, state: string, until: string, why: string, waiting: number) =>
    `${provider || 'The provider'} ${state}${until}: ${why}. ${plural(waiting, 'issue is', 'issues are')} waiting for it.`,
  source: (source: string, why: string) => `${source} does not answer: ${why}. New issues come from it once it answers.`,
  usedUp: (whole: boolean) => (whole ? 'used up' : 'nearly used up'),
  quota: (provider: string, runner: string, used: string, until: string, window: string) =>
    `The quota of ${provider} on ${runner} is ${used}${until}${window && ` (${window})`}.`,
  budgets: { total: 'all runs', runs_per_hour: 'the last hour' } as Record<string, string>,
  budget: (of: string, used: string, amount: string, until: string) => `The budget for ${of} is ${used}: ${amount}${until}.`,
  amount: (used: string, limit: string, unit: string) => `${used} of ${limit}${unit && ` ${unit}`}`,
  edit: (at: string, problem: string) => `The configuration has an error: ${problem}. ashep keeps the settings from before ${at} until you fix it.`,
  runner: (name: string, state: string, detail: string) => `${name} is ${state}: ${detail}`,
  unreached: (target: string, error: string) => `Notifications do not reach ${target}: ${error}`,
  audit: (findings: number) => `The last audit found ${plural(findings, 'problem')}. Run \`ashep audit\` to see ${noun(findings, 'it', 'them')}.`,
}

export const notices = {
  unsupported: 'This browser has no notifications here. Set `notify` in config.yaml to reach a phone instead.',
  blocked: 'The browser blocks notifications from this page. Allow them in its settings for this site.',
  heading: (project: string, issues: number) => `${project}: ${plural(issues, 'issue')} waiting for you`,
  more: (issues: number) => `… and ${issues} more`,
}

export const panel = {
  notFound: 'Page not found',
  none: 'No panel is configured',
  elsewhere: 'The panel is shown only on the machine itself, at a loopback address.',
  yours: (address: string) => `\`${address}\` is a page of your own, not of Agent Shepherd. If it stays empty, start its program and reload this page.`,
}

export const deadEnd = {
  lists: { issues: 'All issues', runs: 'All runs', report: 'Report' },
  search: 'Search issues, runs and pages',
  issue: (issue: string) => `Issue ${issue}`,
}

export const dialogs = {
  schemes: { system: 'system', light: 'light', dark: 'dark' },
  resume: { key: 'Resume', name: 'Resume all runs', words: 'runs continue' },
  pause: { key: 'Pause', name: 'Pause for an hour: no new run will start', words: 'runs stop hour' },
  theme: (scheme: string) => `Theme: ${scheme}`,
  themeWords: 'colours mode',
  signOut: 'Sign out',
  signOutWords: 'leave end session log',
  pageWords: 'page go to',
  settingsWords: 'page shortcuts theme time notifications help',
  groups: { pages: 'Pages', issues: 'Issues', runs: 'Runs', actions: 'Actions' },
  searchAll: 'Search issues, runs, pages and actions',
  placeholder: 'Id, title, run, page or action',
  found: 'Found',
  failed: (error: string) => `This did not work: ${error}`,
  keys: [
    ['g n · g i · g r', 'Now, Issues, Runs'], ['g p · g u', 'Report, Usage'],
    ['j · k', 'next, previous'], ['Enter', 'open'],
    ['a', 'approve; you have 5 seconds to undo it'], ['x', 'write a comment'],
    ['Ctrl Enter', 'send it: request changes, or answer'], ['t', 'take over, or hand back'],
    ['v', 'mark a file as seen'], ['[ · ]', 'previous, next tab'],
    ['.', 'newest'], ['/', 'filter'],
    ['Ctrl K', 'search issues, runs, pages and actions'], ['Esc', 'leave a field'],
    ['?', 'keys and settings'],
  ],
  time: 'Time',
  times: [['local', 'local time'], ['relative', 'relative, in lists'], ['utc', 'UTC']],
  themeLabel: 'Theme',
  shortcuts: 'Single-key shortcuts',
  notifications: 'Browser notifications',
  toggle: [['on', 'on'], ['off', 'off']],
  person: (name: string | undefined) => `You are signed in as ${name}. Your answers carry this name.`,
  licences: 'Open-source licences',
  close: 'Close',
} as const

// --- Now, and what a person answers -----------------------------------------------------------------------------

export const now = {
  title: 'Now',
  history: 'History',
  noPolicy: 'ashep cannot read any policy. Run `ashep policy check` to see why.',
  allClear: 'All clear. Questions from policies and agents will appear here.',
  idle: ' Nothing is running.',
  failed: (checks: number) => ` ${noun(checks, 'check')} failed`,
  passed: (checks: number) => ` ${noun(checks, 'check')} passed`,
  steps: { verify: 'Verifying the work', landing_verify: 'Verifying the merged work', finishing: 'Closing', giving_back: 'Returning to the tracker' } as Record<string, string>,
  landing: (branch: string | null | undefined) => `Landing on ${branch ?? 'its branch'}`,
  running: 'Running',
  interrupted: 'Interrupted',
  cut: 'The daemon stopped in the middle of these. They continue when it runs again.',
  step: 'Step',
  duration: 'Duration',
  lastSign: 'Last activity',
  cancel: 'Cancel',
  begun: 'Since',
  sign: 'last activity ',
  ago: ' ago',
  tokens: ' tokens',
  nothing: 'Nothing is running.',
  limit: (used: string, all: string) => `${used} of ${all}`,
  time: (used: string) => `Time used: ${used}`,
  cancelOne: (issue: string) => `Cancel ${issue}`,
  sure: 'Stop the run and park the issue?',
  yes: 'Stop and park',
  no: 'Keep running',
  cancelled: 'Cancelled and parked',
  pause: 'Pause for an hour',
  paused: 'Paused for an hour. No new run will start; runs that have started will finish.',
}

export const counts = {
  states: 'Issues by state',
  landing: 'landing',
  verifying: 'verifying',
  running: 'running',
  underWay: 'in progress',
}

export const answered = {
  did: { approve: 'approved', reject: 'changes requested', answer: 'answered', release: 'handed back', take: 'taken over', retry: 'retried' },
  said: { approved: 'approved', changes_requested: 'changes requested', answered: 'answered' },
  you: 'you',
  byYou: (did: string) => `${did} by you`,
  by: (did: ReactNode, person: string, at: ReactNode) => sentence`${did} by ${person} at ${at}`,
  moved: 'no longer waits for you',
  merged: (branch: string | null, commit: string | undefined) => `merged into ${branch} as ${commit}`,
  onBranch: 'closed; the work stays on its branch',
  closed: 'closed',
  pullRequest: 'its pull request is waiting to be merged',
  blocked: (reason: string) => `waiting to land: ${reason}`,
  landing: (branch: string) => `landing on ${branch}`,
  closing: 'closing',
  goesOn: ' …',
  later: ' once the daemon runs',
  back: (phase: string) => `back to ${phase}`,
  on: (phase: string) => `on to ${phase}`,
  left: (seconds: number) => `(${seconds} s)`,
  undo: 'Undo',
  soon: 'the daemon will pick it up in a moment',
  whenRuns: 'counts when the daemon runs',
  edit: 'Edit answer',
  other: 'Do something else',
  unsent: (text: ReactNode) => sentence`. Your text was not sent: “${text}” `,
  list: 'Just answered',
  approved: (issue: string) => `${issue} approved. `,
  failed: (issue: ReactNode, error: string) => sentence`Could not approve ${issue}: ${error} `,
}

export const card = {
  replace: {
    approved: (at: ReactNode) => sentence`Replace the approval of ${at}`,
    changes_requested: (at: ReactNode) => sentence`Replace the request for changes of ${at}`,
    answered: (at: ReactNode) => sentence`Replace the answer of ${at}`,
  },
  commentForAgent: 'Comment (the agent will read it)',
  yourAnswer: 'Your answer',
  comment: 'Comment on the issue',
  touches: (flags: ReactNode) => sentence`This work touches ${flags}. Look at it first, then confirm.`,
  given: (answer: ReactNode, counts: string) => sentence`✓ ${answer}, ${counts}`,
  reviewed: 'I have looked at it: approve',
  approve: 'Approve',
  approveInstead: (replace: ReactNode) => sentence`${replace}: approve`,
  notYet: 'Not yet',
  changes: 'Request changes',
  changesInstead: (replace: ReactNode) => sentence`${replace}: request changes`,
  needsComment: 'Needs a comment',
  answer: 'Answer',
  handBack: 'Hand back',
  takeOver: 'Take over',
  failed: (error: string) => `Couldn’t save. Your text is still here: ${error}`,
  saving: 'Saving …',
  retry: 'Retry',
  retryFrom: 'from',
  whereStopped: 'the phase where it stopped',
  follows: 'What follows',
  replies: { approved: 'If you approve', changes_requested: 'If you request changes', answered: 'If you answer' },
  noAnswer: (due: ReactNode) => (due ? sentence`No answer by ${due}` : 'No answer in time'),
  request: 'a pull request',
  merged: 'merged',
  closed: 'closed',
  parked: 'parked',
  into: (branch: string, request: boolean) => ` into ${branch}${request ? '' : ' and closed'}`,
  why: (reason: string) => `: ${reason}`,
  goesOn: ' continues',
  withoutLeave: ' continues without permission',
  agentDecides: ' continues, and the agent decides',
  asksPerson: ', which asks a person',
  back: (phase: string) => `back to ${phase}`,
  round: (round: number, most: number | null, afresh: boolean) => ` (round ${round} of ${most}${afresh ? ', in a new cycle' : ''})`,
  work: 'What was asked, what was done, what it changes',
  waits: (span: ReactNode) => sentence`for ${span}`,
  cycle: (cycle: number) => `cycle ${cycle}`,
}

export const review = {
  texts: { description: '', acceptance: 'Accepted when', design: 'Design', notes: 'Notes' },
  asked: 'Asked',
  titleOnly: 'The issue has a title and no description.',
  done: 'Done',
  noReport: 'No agent has reported yet.',
  earlierReports: 'Earlier reports',
  changes: 'Changes',
  check: 'Check',
  details: 'Details',
  provesNothing: 'it passed before the work, too, and proves nothing; ',
  onBase: (cause: string | undefined) => `it fails on the base, too${cause ? ` (likely cause: ${cause})` : ''}, so this work is not to blame; `,
  waived: 'a person waived it; ',
  checks: 'Checks',
  unchecked: (runs: number) =>
    `${runs ? 'No test ran: nobody but an agent says that this works' : 'Nothing is checked yet'}. Run \`ashep criteria\` to set what is checked.`,
  earlierChecks: 'Earlier verifications',
  heads: ['Time', 'Result', 'Commit', 'Passed', 'Failed', 'Skipped'],
  tree: (tree: ReactNode) => sentence`, git tree ${tree}`,
  commit: (commit: ReactNode) => sentence`, commit ${commit}`,
  sandbox: (isolated: boolean) => (isolated ? ', in a sandbox' : ', without a sandbox'),
  landing: 'Landing',
  ways: {
    queued: 'waiting for its turn to land', integrating: 'being updated to the newest base', verifying: 'being verified on the newest base',
    moving: 'verified; the base branch moves next', opening: 'opening its pull request', pull_request: 'waiting for people to merge its pull request',
    waits: 'waiting for the base', landed: 'merged', branch: 'stays on its branch', unchanged: 'nothing to merge: no file was changed',
  } as Record<string, string>,
  pairs: { work: 'Work', onto: 'Into', commit: 'Commit', retry: 'Next try' },
}

// --- an issue ---------------------------------------------------------------------------------------------------

export const issue = {
  tabs: [['', 'Overview'], ['runs', 'Runs'], ['history', 'History'], ['usage', 'Usage']],
  sinceThen: (at: ReactNode, reason: ReactNode) => sentence` since ${at}: ${reason}`,
  due: (question: boolean, at: ReactNode) => (question ? sentence` · answer by ${at}` : sentence` · until ${at}`),
  policy: (name: string) => `policy ${name}`,
  underWay: (steps: string[]) => `now: ${steps.join(', ')}`,
  about: (issue: string) => `About ${issue}`,
  acts: 'What you can do',
  dependsOn: 'Depends on ',
  unknown: '(not known to ashep)',
  depths: [['', 'decisions'], ['everything', 'everything'], ['records', 'raw records']],
  detail: 'Detail',
  history: 'History, newest first',
  keptSince: (at: ReactNode) => sentence`The history begins at ${at}. Earlier records are archived.`,
  loadLater: 'Load later records',
  lines: { line: (many: number) => plural(many, 'line'), record: (many: number) => plural(many, 'record') },
  matches: (some: number, all: string) => `${figure(some)} of ${all}`,
  nothing: 'Nothing has happened yet.',
  idle: (span: string) => `${span} without an event`,
  earlier: (many: number) => `Show ${figure(many)} earlier`,
  terminal: (issue: string) => `The same in a terminal: \`ashep why ${issue}\``,
  usage: 'Usage',
  cycles: 'Cycles',
} as const

export const course = {
  asksPerson: 'asks a person',
  noAnswer: 'no answer yet',
  none: 'No agent has worked on this issue yet.',
  again: (why: string) => `${why}, retried`,
  round: (round: number, again: boolean) => `Round ${round}${again ? ', retried' : ''}`,
  attempts: (phase: string, attempts: number) => `${phase}, ${plural(attempts, 'attempt')}`,
  name: (issue: string, phases: string[]) => `Runs of ${issue}, a lane for each phase: ${phases.join(', ')}`,
  open: 'Open',
}

export const work = {
  kinds: { created: 'new', modified: '', deleted: 'deleted', renamed: 'renamed' },
  unread: { binary: 'binary', large: 'too large to show', submodule: 'a submodule' },
  sum: (files: number, lines: ReactNode, base: ReactNode, head: ReactNode) => sentence`${plural(files, 'file')}, ${lines}, from ${base} to ${head}`,
  seenSum: (seen: number, files: number) => `${figure(seen)} of ${figure(files)} seen`,
  seen: 'seen',
  moreFiles: (files: number) => `${plural(files, 'more file')} changed. Run \`git diff\` to see ${noun(files, 'it', 'them')}.`,
  link: 'a link',
  same: 'No line differs.',
  changesIn: (path: string) => `Changes in ${path}`,
  moreLines: (lines: number) => `Show more: ${plural(lines, 'line')} left`,
  commentOnLine: 'Comment on a line',
  added: 'Added to your comment. The agent reads it when you request changes.',
  line: 'Line',
  comment: 'Comment',
  add: 'Add',
  cancel: 'Cancel',
  transcript: 'Transcript',
  kept: (why: string) => `This was kept when the run’s turns ended. Its session cannot be read now: ${why}`,
  cut: 'This is the end of the transcript; the beginning is not shown.',
  toEnd: 'Go to the end',
  roles: { user: 'Prompt', assistant: 'Agent', tool: '' },
  failed: 'failed',
  noOutput: 'The output of this call is not known.',
  activity: (span: string) => `last activity ${span} ago`,
  tool: (tool: string, span: string) => `${tool} for ${span}`,
  retry: (span: string) => `asks its provider again in ${span}`,
  soFar: (tokens: number) => `${plural(tokens, 'token')} so far`,
  session: 'Session',
  noCommand: 'There is no command for this session.',
  noSession: 'This run has no session.',
  open: 'Open in OpenCode',
  copied: 'Copied',
  copy: 'Copy the command',
  asking: 'Asking the agent server …',
  password: 'OpenCode asks for a password. The user is `opencode`; `ashep take` shows where the password is. The link works on the machine that runs ashep.',
  how: 'How to open it',
}

// --- runs -------------------------------------------------------------------------------------------------------

export const run = {
  changed: 'Changes',
  texts: 'Prompts and answers',
  noPrompt: 'No prompt was written.',
  prompt: (number: number, at: ReactNode) => (at ? sentence`Prompt ${number}, ${at}` : `Prompt ${number}, not sent`),
  answer: (number: number, at: ReactNode) => sentence`Answer ${number}, ${at}`,
  lost: (number: number) => `Answer ${number} was not kept.`,
  rejected: 'Rejected outcomes',
  reject: (number: number, why: ReactNode, then: string) => sentence` answer ${number}: ${why} (then: ${then})`,
  tree: (tree: ReactNode) => sentence` git tree ${tree}`,
  noChange: ': no changes',
  commit: (commit: ReactNode) => sentence`commit ${commit}`,
  facts: 'Details',
  phase: 'Phase',
  visit: (phase: string, round: number, attempt: number) => `${phase}, round ${round}, attempt ${attempt}`,
  runner: 'Runner',
  agent: (slug: string) => `agent ${slug}`,
  access: 'Access',
  queued: 'Queued at',
  agentWrote: 'Agent wrote at',
  personWrote: 'Person wrote at',
  timeLimit: 'Time limit',
  restarts: 'Restarts',
  session: 'Session',
  decision: 'Decision',
  why: 'Why this agent',
  chosen: (agent: ReactNode, why: string | undefined) => sentence`${agent}: ${why}`,
  others: (agent: ReactNode, why: string) => sentence`not ${agent}: ${why}`,
  terminal: (run: string) => `The same in a terminal: \`ashep show ${run}\``,
  gone: 'This text is no longer kept.',
  cut: 'The text is longer than what is shown.',
}

export const record = {
  title: (number: string) => `Record #${number}`,
  records: 'Records',
  previous: (number: number) => `Previous: #${number}`,
  next: (number: number) => `Next: #${number}`,
}

export const runs = {
  agent: 'Agent',
  issue: (issue: string) => `issue ${issue} `,
  name: 'Runs, newest first',
  queued: 'Queued',
  duration: 'Duration',
  states: 'Runs by state',
  things: 'runs',
  none: 'There are no runs yet. Run `ashep work` to start the first.',
}

export const timeline = {
  waited: (span: string) => `waited ${span}`,
  started: (span: string) => `started in ${span}`,
  goesOn: (span: string) => `for ${span}`,
  worked: (span: string) => `worked ${span}`,
  verified: (span: string) => `verified for ${span}`,
  idle: (span: string) => `${span} idle`,
  range: (from: string, to: string) => `${from} to ${to}`,
  name: 'Runs in time',
  rows: 'One row per',
  rowsOf: [['slot', 'slot'], ['issue', 'issue']],
  lastDay: 'Last day',
  everything: 'All',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  fold: ' fold idle time',
  keys: 'Runs in time: arrow keys go from run to run, Enter opens, plus and minus zoom, 0 shows the last day',
  sum: (shown: number, all: number) => `${figure(shown)} of ${plural(all, 'run')}. Scroll to zoom, drag to move; arrow keys go from run to run`,
  legend: { held: ' waiting', starting: ' starting', working: ' working, coloured by its result', verified: ' being verified', now: ' now' },
} as const

// --- lists, policies, projects ----------------------------------------------------------------------------------

export const lists = {
  issues: 'Issues',
  things: 'issues',
  idOrTitle: 'Id or title',
  filters: { phase: 'phase', policy: 'policy' } as Record<string, string>,
  count: (many: number) => plural(many, 'issue'),
  heads: ['State', 'Issue', 'Title', 'Phase', 'For', 'Reason'],
  none: 'There are no issues yet. Create one with `bd create`; `ashep work` picks it up once it is ready.',
}

export const policy = {
  where: 'Where issues are',
  others: 'Other policies',
}

export const policyGraph = {
  anyFailure: 'any failure',
  none: 'no issues',
  issues: (many: number) => plural(many, 'issue'),
  choose: 'Policy',
  option: (policy: string, issues: number) => `${policy} (${plural(issues, 'issue')})`,
  asTable: 'View as table',
  heads: ['Phase', 'Issues', 'Leads to'],
  taken: (many: number) => ` (taken ${figure(many)} ${noun(many, 'time')})`,
}

export const projects = {
  title: 'Projects',
  link: (waiting: number) => `Projects, ${waiting} waiting in others`,
  otherVersion: 'Another version of Agent Shepherd runs here.',
  waiting: (issues: number) => `${figure(issues)} waiting for you`,
  idle: 'Nothing is waiting for you',
  running: (issues: number) => `${figure(issues)} running`,
  noDaemon: 'the daemon is not running',
  current: 'This project',
  pageAt: (host: string) => `Its page is at ${host}`,
  closed: 'Its page is not open',
  openIn: (folder: string) => `Its page is not open. To open it, run \`ashep -C ${folder} ui\``,
  sum: (projects: number) => `You have ${plural(projects, 'project')} on this machine. To open the page of another one, run \`ashep ui\` in its folder.`,
}

// --- report, usage, the past ------------------------------------------------------------------------------------

export const report = {
  title: 'Report',
  sections: {
    closed: 'Closed', waiting: 'Waiting for you', parked: 'Parked', going_on: 'Running or scheduled', cost: 'Cost',
    limits: 'Limits and budgets reached', servers: 'Servers and daemons', findings: 'Audit findings', notices: 'Notifications that did not reach you',
  } as Record<string, string>,
  sinceStart: 'the last start, or yesterday at 18:00',
  beginning: 'the beginning',
  periods: [['12h', '12 hours ago'], ['24h', '24 hours ago'], ['7d', '7 days ago']],
  since: 'Since',
  other: 'or a time, span or date',
  example: '18:00',
  show: 'Show',
  range: (since: ReactNode, until: ReactNode) => sentence`From ${since} to ${until}`,
  nothing: 'Nothing happened in this period.',
  proofs: { verified: '✓ verified', waived: '! with checks waived by a person', unverified: '– unverified' },
  proof: (proof: string, many: number | undefined) => `${proof}: ${many}`,
  byProof: 'Proof of closed issues',
  history: 'history',
  historyTitle: 'Show this moment in the history',
  summary: 'The agent’s summary',
  due: (at: ReactNode) => sentence` (until ${at})`,
  usage: 'Usage',
  usageBy: 'Usage by',
  by: { provider: 'by provider', issue: 'by issue', phase: 'by phase', agent: 'by agent', day: 'by day' },
  heads: { provider: 'Provider', issue: 'Issue', phase: 'Phase', agent: 'Agent', day: 'Day' },
  share: 'Share',
  shareOf: (name: string) => `Share of ${name}`,
  total: 'Total',
  unused: (since: boolean) => `No run has used anything ${since ? 'in this period' : 'yet'}.`,
} as const

export const budgets = {
  noChart: 'The chart cannot be drawn. The table has the same figures.',
  scopes: { run: 'per run', issue: 'per issue and cycle', day: 'today', provider: 'today,', total: 'in total', runs_per_hour: 'in the last hour' },
  title: 'Budgets',
  none: 'There are no limits. Set them under `budgets` in config.yaml; `ashep work` applies them.',
  quota: (provider: string, runner: string, window: string) => `Quota of ${provider} on ${runner}, ${window}`,
  usedUp: '■ used up',
  nearly: '! nearly used up',
  units: { cost: 'Cost', runs: 'Runs', tokens: 'Tokens' } as Record<string, string>,
  atMost: (limit: string) => `at most ${limit} each`,
  warning: (amount: string) => `Warning at ${amount}`,
  amount: (used: string, limit: string) => `${used} of ${limit}`,
  holds: ' · holds up ',
  save: 'Save as CSV',
}

export const bars = {
  others: 'others',
  byDay: (of: 'cost' | 'tokens', day: ReactNode) => sentence`${of === 'cost' ? 'Cost' : 'Tokens'} by day (UTC) and provider. ${day}:`,
  name: 'Bars by day and provider; the table by day has the same figures',
}

export const then = {
  reach: ['12 hours', '3 days', '30 days', 'a year'],
  goTo: 'Go back to',
  asOf: (at: string) => `as of ${at}`,
  over: 'over the last',
  seen: (at: ReactNode) => sentence`History: ${at}`,
  loading: 'Loading that moment …',
  back: 'back to now',
  preparing: (progress: number) => `ashep is preparing the history from the journal: ${Math.floor(100 * progress)} % done. It opens by itself.`,
  before: (from: string) => `The history begins at ${from}. Earlier records are archived.`,
  noJournal: 'There is no journal yet.',
  unknown: (issue: string) => `${issue} did not exist then.`,
  nothingWaited: 'Nothing was waiting for you.',
  policy: 'Policy',
  ran: 'Was running',
  since: 'Since',
  nothingRan: 'Nothing was running.',
}
