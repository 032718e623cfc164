"""Language of the prompt templates: a part of jinja2 in which a mistake cannot hang or flood the daemon.

A template may branch, loop, set, include, extend and fill blocks; it may not call, multiply or build what is not
there. Each pass of a loop and each piece of text uses up a budget. `Foreign` text comes out of a template only through
the filter `fence`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType

from jinja2 import BaseLoader, BytecodeCache, StrictUndefined, TemplateNotFound, TemplateSyntaxError, Undefined, nodes
from jinja2.bccache import Bucket
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

from ashep.errors import ConfigError
from ashep.prompt.fences import Fenced, Fences, Foreign

ENDING = ".md.j2"
"""How the files of templates end."""

BUDGET = 1_000_000
"""Characters, and a hundred for each pass of a loop, that one prompt may use up."""

LONGEST = 64 * 1024
"""No text that a template puts together is longer, and no template."""

_PASS = 100
_FILTERS = ("capitalize", "default", "first", "last", "length", "lower", "trim", "upper")
_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem,
    nodes.Slice, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.Filter,
    nodes.Test, nodes.Concat, nodes.Keyword, nodes.For, nodes.If, nodes.Assign, nodes.With, nodes.Block,
    nodes.Include, nodes.Extends,
)  # fmt: skip
"""What a template may hold. Constant lists and `super()` are allowed besides."""


class Exhausted(Exception):
    """The template writes or repeats more than a prompt may hold."""


@dataclass
class RenderBudget:
    """What is left for one prompt."""

    left: int = BUDGET
    printed: list[str] = field(default_factory=list[str])

    def use(self, amount: int) -> str:
        """Take from it; the empty string, so that a template can print it."""
        self.left -= amount
        if self.left < 0:
            raise Exhausted("the template writes or repeats more than a prompt may hold")
        return ""

    def show(self, value: object) -> str:
        """Turn what a template prints into text."""
        if isinstance(value, Fenced):
            text = value.text
        elif isinstance(value, str | int | Foreign | Undefined):
            text = str(value)  # the last two say what is wrong with them
        else:
            raise TypeError(f"a {type(value).__name__} cannot be printed")
        self.use(len(text))
        return text

    def join(self, values: Iterable[object], between: str = "") -> str:
        """Join words, up to a bound."""
        words = [str(value) for value in values]
        if sum(map(len, words)) + len(words) * len(between) > LONGEST:
            raise Exhausted(f"a text of more than {LONGEST} characters cannot be put together")
        return between.join(words)


class _Compiled(BytecodeCache):
    """What templates were compiled to, by name and content: doing it again costs more than all else of a prompt.

    Nothing of a prompt is kept: its fences and its budget are looked up in the environment when the code runs.
    """

    def __init__(self) -> None:
        self._code: dict[str, tuple[str, CodeType | None]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        checksum, code = self._code.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = (bucket.checksum, bucket.code)


_COMPILED = _Compiled()


class Language(SandboxedEnvironment):
    """Templates of one prompt: sandboxed, strict, and bounded in all that they do."""

    def __init__(self, loader: BaseLoader, fences: Fences) -> None:
        budget = RenderBudget()
        super().__init__(
            loader=loader,
            bytecode_cache=_COMPILED,
            undefined=StrictUndefined,
            autoescape=False,
            optimized=False,
            finalize=budget.show,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.filters: dict[str, object] = {
            **{name: self.filters[name] for name in _FILTERS},
            "fence": fences.fence,
            "join": budget.join,
        }
        self.globals: dict[str, object] = {"ashep_use": budget.use, "ashep_join": budget.join}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        if len(source) > LONGEST:
            raise TemplateSyntaxError(f"a template of more than {LONGEST} characters is refused", 1, name, filename)
        tree = super()._parse(source, name, filename)
        for node in tree.find_all(nodes.Node):
            if not _allowed(node):
                what = type(node).__name__
                raise TemplateSyntaxError(f"prompt templates know no {what} of this kind", node.lineno, name, filename)
        _Meter().visit(tree)
        return tree

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        """Foreign text is not looked into."""
        return not isinstance(obj, Foreign | Fenced) and super().is_safe_attribute(obj, attr, value)


def explained(error: Exception, file: str) -> ConfigError:
    """Say what a template's error is, and where; `file`: the template, where the error names no other."""
    line = None
    if isinstance(error, TemplateSyntaxError):
        return ConfigError(error.message or "cannot be understood", file=error.filename or file, line=error.lineno)
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name == file or name.endswith(ENDING):
            file, line = name, trace.tb_lineno
        trace = trace.tb_next
    message = f"there is no template {error}" if isinstance(error, TemplateNotFound) else str(error)[:300]
    if isinstance(error, RecursionError):
        message = "includes or extends itself"
    return ConfigError(message or type(error).__name__, file=file, line=line)


def _allowed(node: nodes.Node) -> bool:
    match node:
        case nodes.Call(node=nodes.Name(name="super"), args=[], kwargs=[], dyn_args=None, dyn_kwargs=None):
            return True
        case nodes.List() | nodes.Tuple(ctx="load"):
            return all(isinstance(item, nodes.Const) for item in node.items)
        case nodes.Tuple():  # for a, b in …
            return True
        case nodes.For():
            return not node.recursive
        case nodes.Name():
            return not node.name.startswith("ashep_")
        case _:
            return isinstance(node, _NODES)


class _Meter(NodeTransformer):
    """Lets each body that can run more than once, and each template, take its own length from the budget."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 -- jinja2 calls it by the node's name
        self.generic_visit(node)
        return _call("ashep_join", [nodes.List(node.nodes, lineno=node.lineno)], node.lineno)

    def _body(self, node: nodes.For | nodes.Block | nodes.Template) -> nodes.Node:
        length = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        lineno = node.lineno or 1
        use = _call("ashep_use", [nodes.Const(_PASS + length, lineno=lineno)], lineno)
        node.body.insert(0, nodes.Output([use], lineno=lineno))
        return node

    visit_For = visit_Block = visit_Template = _body  # noqa: N815 -- the same


def _call(name: str, args: list[nodes.Expr], lineno: int) -> nodes.Call:
    return nodes.Call(nodes.Name(name, "load", lineno=lineno), args, [], None, None, lineno=lineno)
