"""What tells agents how to work, by kind of agent: one list, by which a change is flagged and a judge's ground is made.

A name counts in any folder, with all below it, in capitals and small letters; one that begins with `/` at the top
alone. Files that such a file names (`@docs/style.md`) are ordinary documents: `impact.agent_instructions` adds them.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, get_args

from ashep.core.policy.globs import Globs

Kind = Literal[
    "aider", "amazonq", "augment", "claude", "cline", "codex", "continue", "copilot", "crush", "cursor", "factory",
    "gemini", "goose", "junie", "kiro", "opencode", "pi", "qwen", "roo", "trae", "warp", "windsurf", "zed",
]  # fmt: skip
"""The kinds of agents whose files are known."""

EVERY = "AGENTS.md AGENTS.*.md AGENT.md SKILL.md .agents .mcp.json mcp.json"
"""What agents of several kinds read."""
READ_AS_DATA = "_bmad"
"""What they read because a prompt says so: nothing in it starts a program, whatever its ending is."""
FILES: Mapping[Kind, str] = {
    "aider": "/CONVENTIONS.md .aider*",
    "amazonq": ".amazonq",
    "augment": ".augment .augment-guidelines",
    "claude": "CLAUDE.md CLAUDE.*.md .claude",
    "cline": ".clinerules .clineignore",
    "codex": "AGENTS.override.md .codex",
    "continue": ".continue .continuerules",
    "copilot": ".copilot .github/copilot-instructions.md .github/instructions .github/prompts .github/chatmodes "
    ".github/agents .github/skills .github/hooks",
    "crush": "CRUSH.md .crush .crush.json crush.json .crushignore",
    "cursor": ".cursorrules .cursor .cursorignore .cursorindexingignore",
    "factory": ".factory",
    "gemini": "GEMINI.md .gemini .geminiignore",
    "goose": ".goosehints .goosehints.local .goose .gooseignore",
    "junie": ".junie",
    "kiro": ".kiro",
    "opencode": "CLAUDE.md CONTEXT.md opencode.json opencode.jsonc tui.json tui.jsonc .opencode",
    "pi": "CLAUDE.md .pi",
    "qwen": "QWEN.md .qwen .qwenignore",
    "roo": ".roo .roomodes .roorules*",
    "trae": ".trae",
    "warp": "WARP.md",
    "windsurf": ".windsurfrules .windsurf",
    "zed": ".rules",
}
"""What each kind reads besides; who looks for another's files, too, finds them there."""

PROGRAMS: Mapping[str, Kind] = {
    "claude-agent-acp": "claude", "claude-code-acp": "claude", "codex-acp": "codex", "cursor-agent": "cursor",
    "droid": "factory", "gemini-cli": "gemini", "kiro-cli": "kiro", "opencode-ai": "opencode", "pi-acp": "pi",
    "q": "amazonq", "qwen-code": "qwen", "auggie": "augment", **{kind: kind for kind in get_args(Kind)},
}  # fmt: skip
"""The kinds of programs, and of packages that have them, by their names."""

_LAUNCHERS = ("bun", "bunx", "env", "npx", "pipx", "pnpm", "uv", "uvx", "yarn")
_DOCUMENTS = (".md", ".mdc", ".txt", ".local")


def kind_of(command: Sequence[str]) -> Kind | None:
    """Say of which kind the agent is that a command starts, `npx @of/claude-agent-acp@1` too; None: of none known."""
    names = [word.rpartition("/")[2].partition("@")[0].removesuffix(".exe") for word in command]
    looked = names if names and names[0] in _LAUNCHERS else names[:1]
    return next((PROGRAMS[name] for name in looked if name in PROGRAMS), None)


class Instructions:
    """The list, with what a project adds to it."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        """`more`: globs, as `impact.agent_instructions` has them."""
        words = " ".join((EVERY, *FILES.values())).split()
        acting = [word[1:] if word[0] == "/" else f"**/{word}" for word in dict.fromkeys(words)]
        globs = [*acting, f"**/{READ_AS_DATA}", *(glob.removesuffix("/**") for glob in more)]
        above = (glob.split("/")[:length] for glob in globs for length in range(1, glob.count("/") + 1))
        folders = {"/".join(parts) for parts in above if not {"*", "**"} & {parts[-1]}}
        self._links, self._acting, self._covered = Globs(folders), Globs(_with_below(acting)), Globs(_with_below(globs))
        self.has = lru_cache(4096)(Globs(globs).has)
        """Whether a path is itself one of the list."""

    def covers(self, path: str) -> bool:
        """Whether a path is one of the list or below one, or can be a link in the place of a folder that leads to one.

        A path of a mebibyte takes time in proportion to its length: a diff may hold one.
        """
        return self._covered.has(path) or self._links.has(path)

    def acts(self, path: str) -> bool:
        """Whether a file can start a program before anybody asks: of the list all but documents."""
        name = path.rpartition("/")[2].lower()
        return "." in name[1:] and not name.endswith(_DOCUMENTS) and self._acting.has(path)


def _with_below(globs: Sequence[str]) -> list[str]:
    return [*globs, *(f"{glob}/**" for glob in globs)]
