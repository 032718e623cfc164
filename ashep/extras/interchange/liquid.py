"""A Liquid template, as Symphony renders it for an issue, -> a template of ours.

Only what both languages have is carried over: texts, the issue's fields that we know, `if` and its branches. Whatever
else stands in the template is named with its line. What people wrote comes out fenced here.
"""

import re
from collections.abc import Callable

from ashep.extras.interchange.import_report import Kind
from ashep.extras.interchange.prompts import literal

_PART = re.compile(r"\{\{-?(?P<print>.*?)-?\}\}|\{%-?(?P<tag>.*?)-?%\}", re.S)
_FIELDS = {
    "issue.identifier": "issue",
    "issue.id": "issue",
    "issue.title": 'title | fence("title")',
    "issue.description": 'description | fence("description")',
    "issue.blocked_by": 'dependencies | fence("dependencies")',
    "attempt": "attempt",
}
"""What is printed, by its name there."""

_TRUTHS = {
    "issue.title": "title",
    "issue.description": "description",
    "issue.blocked_by": "dependencies",
    "issue.identifier": "issue",
    "issue.id": "issue",
    "attempt": "attempt > 1",
}
"""What may be asked for; there `attempt` is nothing in the first one."""

Tell = Callable[[Kind, str, int, str], None]
"""Takes a note: `lost` or `changed`, what, its line, why."""


def converted(template: str, first: int, tell: Tell) -> str:
    """Give the template in our language; `first` is its first line in the file."""
    made: list[str] = []
    done, skipping = 0, ""
    for part in _PART.finditer(template):
        line = first + template.count("\n", 0, part.start())
        before = template[done : part.start()]
        done = part.end()
        if skipping:
            skipping = "" if (part["tag"] or "").strip() == skipping else skipping
            continue
        made.append(literal(before, ends=False))
        if part["print"] is not None:
            made.append(_printed(part["print"].strip(), line, tell))
            continue
        tag = part["tag"].strip()
        if tag in ("comment", "raw"):
            tell("lost", f"{{% {tag} %}}", line, "what is in it is left out")
            skipping = f"end{tag}"
            continue
        made.append(_tag(tag, line, tell))
    return "".join([*made, "" if skipping else literal(template[done:], ends=False)])


def _printed(expression: str, line: int, tell: Tell) -> str:
    name, _, filters = (word.strip() for word in expression.partition("|"))
    known = _FIELDS.get(name)
    if known is None:
        tell("lost", f"{{{{ {expression} }}}}", line, "no such thing is known of an issue here, or not to its agent")
        return ""
    if filters:
        tell("changed", f"{{{{ {expression} }}}}", line, "it is printed as it is, without the filter")
    elif name == "attempt":
        tell("changed", "{{ attempt }}", line, "the first attempt is 1 here, and nothing there")
    return f"{{{{ {known} }}}}"


def _tag(tag: str, line: int, tell: Tell) -> str:
    word, _, rest = tag.partition(" ")
    if word in ("else", "endif", "endunless"):
        return f"{{% {'else' if word == 'else' else 'endif'} %}}"
    if word not in ("if", "elsif", "unless"):
        tell("lost", f"{{% {tag} %}}", line, "the tag is left out, and what it is about stands there once")
        return ""
    known = _TRUTHS.get(rest.strip())
    if known is None:
        tell("lost", f"{{% {tag} %}}", line, "this cannot be asked here; what follows it, up to its end, is left out")
    condition = known if known is None or word != "unless" else f"not ({known})"
    return f"{{% {'elif' if word == 'elsif' else 'if'} {condition or 'false'} %}}"
