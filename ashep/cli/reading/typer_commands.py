"""The commands that only look, as typer knows them: made of what `readers` declares."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ashep.cli.commands import app, complete_name, example
from ashep.cli.reading import read_commands
from ashep.cli.reading.options import declared


def _command(reader: Callable[..., int]) -> Callable[..., None]:
    def command(context: typer.Context, **given: Any) -> None:
        if context.args:  # of `status` alone
            words, issue = " ".join(context.args), context.args[0]
            context.fail(f"Got unexpected extra argument(s) ({words}): `ashep why {issue}` says where one issue stands")
        if "issue" in given:
            given["issue"] = complete_name(context, given["issue"])
        raise typer.Exit(reader(context.obj, **given))

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    for one in declared(reader):
        option = one.option
        place: Any = typer.Argument(help=option.help, metavar=option.metavar)
        if option.names:
            place = typer.Option(*option.names, help=option.help, metavar=option.metavar, min=option.least)
        annotation = Annotated[one.kind, place]
        parameters.append(inspect.Parameter(one.name, keyword, annotation=annotation, default=one.default))
    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess] # inspect reads it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = reader.__doc__
    return command


for name, lines in read_commands.EXAMPLES.items():
    takes_more = {"allow_extra_args": name == "status"}
    app.command(name, epilog=example(*lines), context_settings=takes_more)(_command(getattr(read_commands, name)))
