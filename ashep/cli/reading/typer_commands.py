"""The commands that only look, as typer knows them: made of what `readers` declares."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ashep.cli.commands import app, example
from ashep.cli.reading import read_commands
from ashep.cli.reading.options import Declared, declared


def _annotated(one: Declared) -> Any:
    option = one.option
    if not option.names:
        return Annotated[one.kind, typer.Argument(help=option.help, metavar=option.metavar)]
    return Annotated[one.kind, typer.Option(*option.names, help=option.help, metavar=option.metavar, min=option.least)]


def _command(reader: Callable[..., int]) -> Callable[..., None]:
    def command(context: typer.Context, **given: Any) -> None:
        raise typer.Exit(reader(context.obj, **given))

    places = {one.name: (_annotated(one), one.default) for one in declared(reader)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    parameters += [
        inspect.Parameter(name, keyword, annotation=annotation, default=default)
        for name, (annotation, default) in places.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess] # inspect reads it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = reader.__doc__
    return command


for name, lines in read_commands.EXAMPLES.items():
    app.command(name, epilog=example(*lines))(_command(getattr(read_commands, name)))
