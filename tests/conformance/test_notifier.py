"""The contract of `Notifier`, over every adapter: in memory, a program, and apprise with a service on loopback."""

import asyncio
import importlib.util
import json
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

from ashep.adapters.notifier import Messenger
from ashep.core.facts.resources import Notice
from ashep.core.policy.settings import NotifyTarget
from ashep.errors import NotSent
from ashep.ports.notifier import SHOWN, Message, Notifier, message_of
from ashep.redaction import Redaction
from tests.memory import MemoryNotifier

T0 = datetime(2026, 1, 1, 22, 0, tzinfo=UTC)
SECRET = "hunter2-hunter2"


class Place(Protocol):
    """Somebody who can be told, and whoever looks at what they were told."""

    @property
    def notifier(self) -> Notifier: ...
    @property
    def target(self) -> NotifyTarget: ...

    def texts(self) -> list[str]: ...
    def breaks(self) -> None: ...


class InMemory:
    def __init__(self) -> None:
        self.memory = MemoryNotifier()
        self.notifier, self.target = self.memory, NotifyTarget(name="pager", command=("pager",))

    def texts(self) -> list[str]:
        return [message.text for _, message in self.memory.told]

    def breaks(self) -> None:
        self.memory.down["pager"] = "no route to host"


class Program:
    def __init__(self, folder: Path) -> None:
        self.out = folder / "told.jsonl"
        self.script = folder / "tell.py"
        self.script.write_text(
            "import json, os, sys\ntold = json.load(sys.stdin)\n"
            "told |= {'title': os.environ['ASHEP_TITLE'], 'env': os.environ['ASHEP_TEXT']}\n"
            f"open({str(self.out)!r}, 'a').write(json.dumps(told) + '\\n')\n"
        )
        self.notifier = Messenger(folder, timeout=20.0)
        self.target = NotifyTarget(command=(sys.executable, str(self.script)))

    def told(self) -> list[Any]:
        return [json.loads(line) for line in self.out.read_text().splitlines()] if self.out.exists() else []

    def texts(self) -> list[str]:
        return [one["env"] for one in self.told()]

    def breaks(self) -> None:
        self.script.write_text("import sys\nsys.exit('no route to host')\n")


class Service:
    """A service of apprise's: `json://`, which is a POST of JSON."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.status = folder, 200
        self.told: list[Any] = []
        self.target = NotifyTarget(apprise_file="urls")
        self.redaction = Redaction()
        self.notifier = Messenger(folder, timeout=20.0, redaction=self.redaction)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("content-length"))
        body = json.loads(await reader.readexactly(length))
        if self.status == 200:
            self.told.append(body)
        writer.write(f"HTTP/1.1 {self.status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    def texts(self) -> list[str]:
        return [one["message"] for one in self.told]

    def breaks(self) -> None:
        self.status = 500


OF_APPRISE = pytest.mark.filterwarnings("ignore:.*imghdr.* is deprecated:DeprecationWarning")  # apprise's own import


@pytest.fixture(params=["memory", "program", pytest.param("apprise", marks=(pytest.mark.slow, OF_APPRISE))])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "memory":
        yield InMemory()
    elif request.param == "program":
        yield Program(tmp_path)
    else:
        if importlib.util.find_spec("apprise") is None:
            pytest.skip("apprise is not installed: run `make venv`")
        service = Service(tmp_path)
        server = await asyncio.start_server(service.answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        (tmp_path / "urls").write_text(f"# where\njson://ann:{SECRET}@127.0.0.1:{port}/night/\n\n")
        yield service
        server.close()
        await server.wait_closed()


def message(*texts: str, **more: Any) -> Message:
    notices = [
        Notice(number, T0, "waiting", text, f"t-{number}", cause=number - 1) for number, text in enumerate(texts, 7)
    ]
    return message_of(notices, "0f" * 8, "notice/pager/9", **more)


@pytest.mark.promise("N5")
async def test_a_message_arrives_whole(place: Place) -> None:
    told = message("t-7 waits for you: Fine? $(reboot) `reboot` 'x' \"y\" äöü", "t-8 waits for you: And this?")
    await place.notifier.send(place.target, told)
    assert place.texts() == [told.text]
    assert told.text == "- t-7 waits for you: Fine? $(reboot) `reboot` 'x' \"y\" äöü\n- t-8 waits for you: And this?"


CALLS = (
    "@everyone", "@here", "@channel", "@all", "@ann", "mail@ann", "<!channel>", "<!here|here>", "!channel&gt;",
    "&lt;@U123&gt;", "<@U123>", "<@&123>", "<@!123>", "<users/all>", "<at>ann</at>", "@**all**", "@room", "&#64;all",
    "&commat;all",
)  # fmt: skip
"""How Slack, Discord, Teams, Google Chat, Mattermost, Matrix and Zulip call somebody, and what apprise makes so."""


@pytest.mark.promise("N6")
async def test_nobody_is_called_by_what_an_issue_says(place: Place) -> None:
    told = message(*(f"t-7 ({call}) waits for you" for call in CALLS))
    await place.notifier.send(place.target, told)
    (text,) = place.texts()
    if isinstance(place, InMemory):
        return
    assert [line for line in text.splitlines() if re.search(r"@\S|[<>]|&#?\w+;", line)] == []
    assert "mail@ ann" in text
    if isinstance(place, Program):
        assert place.told()[0]["notices"][0]["text"] == "t-7 (@everyone) waits for you", "JSON is data"


@pytest.mark.slow
@OF_APPRISE
async def test_apprise_makes_no_call_of_it(tmp_path: Path) -> None:
    """Its plugins look for what might be a call, and write one for the service that they are for."""
    discord = pytest.importorskip("apprise.plugins.discord", reason="apprise is not installed: run `make venv`")
    slack = importlib.import_module("apprise.plugins.slack").NotifySlack
    patterns = (discord.USER_ROLE_DETECTION_RE, slack._re_channel_support, slack._re_user_id_support)
    place = Program(tmp_path)
    await place.notifier.send(place.target, message(*CALLS))
    (text,) = place.texts()
    assert [bool(pattern.search("\n".join(CALLS))) for pattern in patterns] == [True] * 3
    assert [found for pattern in patterns if (found := pattern.search(text))] == []


async def test_each_message_arrives_once_and_in_order(place: Place) -> None:
    for text in ("one", "two", "three"):
        await place.notifier.send(place.target, message(text))
    assert place.texts() == ["- one", "- two", "- three"]


async def test_what_is_not_taken_is_an_error_that_says_why(place: Place) -> None:
    place.breaks()
    with pytest.raises(NotSent) as caught:
        await place.notifier.send(place.target, message("lost"))
    assert str(caught.value)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert place.texts() == []


# --- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N5")
async def test_a_program_gets_json(tmp_path: Path) -> None:
    place = Program(tmp_path)
    await place.notifier.send(place.target, message("Fine?", again=True))
    (told,) = place.told()
    assert told["title"] == f"ashep, {tmp_path.name}: 1 waits for you"
    assert (told["v"], told["id"], told["again"], told["test"]) == (1, "0f" * 8 + ":notice/pager/9", True, False)
    assert told["notices"] == [
        {
            "id": "0f" * 8 + ":7", "seq": 6, "event": "waiting", "issue": "t-7", "about": "",
            "at": "2026-01-01T22:00:00.000000Z", "text": "Fine?",
        }
    ]  # fmt: skip


@pytest.mark.promise("N1")
async def test_a_link_arrives_whole(tmp_path: Path) -> None:
    place = Program(tmp_path)
    await place.notifier.send(place.target, message("Fine?", address="http://[::1]:8090"))
    (told,) = place.told()
    assert told["env"] == "- Fine? http://[::1]:8090/issues/t-7"
    odd = Notice(7, T0, "waiting", "Fine?", "t/../@all?<b>#enter=x")
    assert message_of([odd], "", "", address="https://b.example").text == (
        "- Fine? https://b.example/issues/t%2F..%2F%40all%3F%3Cb%3E%23enter%3Dx"
    )


@pytest.mark.parametrize(("argv", "why"), [
    (("no-such-program-anywhere",), "no-such-program-anywhere cannot be started"),
    (("false",), "false ended with 1"),
    (("sh", "-c", "echo my-secret-word >&2; exit 3"), "sh ended with 3: [redacted]"),
    (("sleep", "60"), "had not ended after 0.5 s"),
])  # fmt: skip
async def test_a_program_that_fails_says_why(tmp_path: Path, argv: tuple[str, ...], why: str) -> None:
    notifier = Messenger(tmp_path, redaction=Redaction(("my-secret-word",)), timeout=0.5)
    with pytest.raises(NotSent) as caught:
        await notifier.send(NotifyTarget(command=argv), message("x"))
    assert why in str(caught.value)


async def test_a_program_need_not_read_what_it_is_given_and_may_be_given_much(tmp_path: Path) -> None:
    told = message(*("x" * 600 for _ in range(500)))
    assert told.text.endswith(f"and {500 - SHOWN} more: see `ashep status`")
    await Messenger(tmp_path).send(NotifyTarget(command=("true",)), told)


# --- apprise ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "why"), [
    (NotifyTarget(apprise_env="NOBODY_SET_THIS"), "the environment variable NOBODY_SET_THIS holds no URL"),
    (NotifyTarget(apprise_file="nowhere"), "nowhere cannot be read: FileNotFoundError"),
    (NotifyTarget(apprise_file="empty"), "empty holds no URL"),
])  # fmt: skip
async def test_urls_that_are_not_there_are_an_error(tmp_path: Path, target: NotifyTarget, why: str) -> None:
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(NotSent) as caught:
        await Messenger(tmp_path, {}).send(target, message("x"))
    assert why in str(caught.value)


@pytest.mark.promise("N5")
@OF_APPRISE
async def test_urls_are_never_written_down(tmp_path: Path) -> None:
    url = f"nonsense://ann:{SECRET}@host/{SECRET[::-1]}?token=0123456789abcdef"
    redaction = Redaction()
    with pytest.raises(NotSent) as caught:
        await Messenger(tmp_path, {"URLS": url}, redaction).send(NotifyTarget(apprise_env="URLS"), message("x"))
    assert str(caught.value).startswith("URL 1 of 1: ")
    for secret in (url, SECRET, SECRET[::-1], "token=0123456789abcdef"):
        assert secret not in redaction.text(f"so {secret} said"), secret


@pytest.mark.slow
async def test_apprise_is_imported_by_a_target_of_its_only(tmp_path: Path) -> None:
    program = (
        "import sys, asyncio\nfrom pathlib import Path\nimport ashep.app\n"
        "from ashep.core.policy.settings import NotifyTarget\nfrom ashep.ports.notifier import Message\n"
        f"messenger = ashep.app.Messenger(Path({str(tmp_path)!r}))\n"
        "asyncio.run(messenger.send(NotifyTarget(command=('true',)), Message('1', 'a', 'b')))\n"
        "assert 'apprise' not in sys.modules\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, env=os.environ)
    assert await process.wait() == 0, shlex.quote(program)
