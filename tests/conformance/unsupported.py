"""What each kind of agent has not that the suite of runners knows (`ashep.extras.testing.worlds.RunnerWorld.can`)."""

from collections.abc import Mapping

_OVER_ACP: Mapping[str, str] = {
    "people": "nobody but its client writes in a session; who opens it elsewhere is seen when it is loaded again",
    "questions": "the protocol has no question; its agents have no such tool",
    "waits": "while it waits for a provider it tells nothing",
    "serves": "each session has an agent and a keeper of its own; there is no server",
    "words": "while it waits for a provider it tells nothing",
    "unlists": "whatever a turn asks is a file of its own: none keeps another from being listed",
}
"""What no agent has that was tried over ACP."""

OPENCODE_OVER_ACP: Mapping[str, str] = {
    **_OVER_ACP,
    "cut": "an answer that is cut off ends as any other does: `end_turn`",
    "fails": "an error has the provider's words and not its status, so that nothing says what kind of refusal it is",
}
"""What `opencode acp` has not."""

CLAUDE_OVER_ACP: Mapping[str, str] = {
    **_OVER_ACP,
    "asks": "the user's rules judge what an agent asks leave for, and Claude Code asks for none to read in its folder",
    "fetches": "it offers its tool for pages only to a model that has looked for it",
    "fails": "it tries again for minutes, and says so to nobody (facts/claude-code.md 32)",
}
"""What Claude Code has not, behind the adapter by which it speaks ACP."""

CLAUDE: Mapping[str, str] = {
    "serves": "each turn is a process of its own; there is no server whose life is theirs",
    "unlists": "whatever a turn asks is a file of its own: none keeps another from being listed",
    "words": "while it waits for a provider it tells the status, and not the provider's words",
}
"""What Claude Code has not."""
