"""Effects on people: a notice is sent to a target."""

from collections.abc import Callable

from ashep.core.facts.commands import SendNotice
from ashep.core.facts.resources import NoticeFailed, NoticeSent
from ashep.core.facts.vocabulary import Fact
from ashep.core.resources.notices import targets
from ashep.core.state.world import World
from ashep.errors import AshepError, NotSent
from ashep.ports.notifier import Notifier, message_of


async def tell(
    notifier: Notifier | None, command: SendNotice, world: Callable[[], World], *, again: bool
) -> list[Fact]:
    """Send what a command says, and give the answer."""
    known = world()
    target = targets(known.settings.notify).get(command.target)
    try:
        if target is None:
            raise NotSent("it is in the configuration no more")
        if notifier is None:
            raise NotSent("nobody is here who could tell people")
        await notifier.send(target, message_of(command.notices, known.instance, command.key, again=again))
    except AshepError as error:
        return [NoticeFailed(command.key, command.target, " ".join(str(error).split())[:300])]
    return [NoticeSent(command.key, command.target)]
