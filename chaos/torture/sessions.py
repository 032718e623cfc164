"""What an OpenCode server keeps: sessions, their messages as its JSON shows them, and the turns that write them.

Turns are played by timers of the loop. What really happened (`begun`, `ended`) is noted for the laws.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Literal

from chaos.torture.agents import Play

Json = dict[str, Any]

ASKED = (("bash", "npm publish"), ("webfetch", "https://example.org"), ("read", "secret.env"))
"""What leave is asked for."""


@dataclass(eq=False)
class Turn:
    """A turn that is played."""

    session: "Session"
    prompt: str
    """The id of the message that it answers."""
    life: int
    play: Play
    status: Literal["young", "busy", "retry", "over"] = "young"
    waits_for: str | None = None
    """The open permission or question."""
    answer: Json | None = None
    """The assistant message that is being written."""
    parent: str = ""
    step: int = 0


@dataclass(eq=False)
class Session:
    """A conversation."""

    id: str
    metadata: Json
    created: float
    directory: str | None = None
    messages: list[Json] = field(default_factory=list[Json])
    turn: Turn | None = None
    queue: list[str] = field(default_factory=list[str])
    """Messages that wait for the turn to end (opencode.md 8)."""

    def message(self, id: str) -> Json | None:
        return next((message for message in self.messages if message["info"]["id"] == id), None)

    def answered(self, id: str) -> bool:
        """Whether a turn that this message began has ended."""
        after = [m["info"] for m in self.messages if m["info"]["role"] == "assistant" and m["info"]["root"] == id]
        return any(ended(info) for info in after)


def ended(info: Json) -> bool:
    """Whether an answer is the end of its turn (opencode.md 24)."""
    final = info.get("finish") not in (None, "tool-calls", "unknown") and not info.get("summary")
    return bool(info.get("error")) or final


class Sessions:
    """All sessions of a data folder, and the server's life that plays their turns."""

    def __init__(self, millis: Callable[[], float], play: Callable[[Session, Json, int], Play]) -> None:
        self.millis, self._play = millis, play
        self.all: dict[str, Session] = {}
        self.asked: dict[str, tuple[str, Turn]] = {}
        """Open permissions and questions by id: their kind and turn."""
        self.life = 0
        self.up = False
        self.begun: Counter[str] = Counter()
        """Turns that each message began."""
        self.died: Counter[str] = Counter()
        """Those of them that died, or whose end the server forgot when it was killed."""
        self.ended: dict[str, list[str]] = {}
        """What each message's turns really said at their end."""
        self.sign: Callable[[str | None, bool], None] = lambda session, urgent: None
        self.tell: Callable[[str], None] = lambda text: None
        self.count = 0
        self.people: set[str] = set()
        """Sessions in which a person wrote, or stopped a turn."""
        self.broken: Callable[[str, str], None] = lambda law, how: None

    def new_id(self, kind: str) -> str:
        """An id that sorts by time, as the server's own do."""
        self.count += 1
        return f"{kind}_{int(self.millis() * 0x1000) & 0xFFFFFFFFFFFF:012x}zz{self.count:06d}"

    # --- life and death ---

    def start(self) -> None:
        self.life, self.up = self.life + 1, True

    def kill(self, *, lose: Callable[[Json, float], Literal["", "parts", "message"]]) -> None:
        """End it: its turns are dead, and what had just come may be lost (opencode.md 11)."""
        self.up = False
        self.asked.clear()
        now, hit = self.millis(), set[str]()
        for session in self.all.values():
            if session.turn is not None and session.turn.status != "young":
                hit.add(session.turn.prompt)
            session.turn, session.queue = None, []
            for message in list(session.messages):
                lost = lose(message, now - message["info"]["time"]["created"])
                if lost:
                    self.tell(f"the server lost the {lost} of {message['info']['id']}")
                    hit.add(message["info"].get("root", message["info"]["id"]))
                    message["parts"] = []
                    if lost == "message":
                        session.messages.remove(message)
        self.died.update(hit)
        self.sign(None, True)

    # --- what clients do ---

    def open(self, metadata: Json, directory: str | None = None) -> Session:
        session = Session(f"ses_{len(self.all):06d}", metadata, self.millis(), directory)
        self.all[session.id] = session
        return session

    def take(self, session: Session, body: Json, *, who: str = "") -> None:
        """Take a prompt, once by its ids; again it begins a turn where the last one has no end (opencode.md 2, 11)."""
        id = body.get("messageID") or self.new_id("msg")
        message = session.message(id)
        if message is None:
            if any(other.message(id) for other in self.all.values()):
                return  # opencode.md 17: taken, and never seen again
            info = {"id": id, "role": "user", "time": {"created": self.millis()}, "who": who}
            message = {"info": info, "parts": list(body["parts"])}
            if self._play(session, message, -1).fate == "silent":
                return  # opencode.md 16: an agent that is not there leaves no trace
            session.messages.append(message)
        elif not message["parts"] or session.answered(id):
            return  # opencode.md 11: without parts nothing begins; opencode.md 2: it is done already
        if session.turn is None:
            self._begin(session, message)
        elif session.turn.prompt != id and id not in session.queue:
            session.queue.append(id)  # opencode.md 8

    def abort(self, session: Session) -> None:
        """Stop the turn; what was queued stays unanswered until the next prompt (opencode.md 8)."""
        turn, session.queue = session.turn, []
        if turn is None or turn.status == "young":
            return  # opencode.md 26: it cannot be aborted before it is busy
        self._end(turn, error={"name": "MessageAbortedError", "data": {"message": "Aborted"}})

    def delete(self, session: Session, id: str) -> bool:
        """Delete a message: a turn that it was about to begin has none to answer (opencode.md 27)."""
        turn, message = session.turn, session.message(id)
        if turn is not None and turn.status != "young":
            return False
        if message is not None:
            session.messages.remove(message)
        if turn is not None and turn.prompt == id:
            session.turn = None
        return True

    def shown(self, kind: str, directory: str | None = None) -> list[Json]:
        """What waits for an answer in a folder."""
        found: list[Json] = []
        for id, (what, turn) in self.asked.items():
            if what != kind or turn.session.directory != directory:
                continue
            tool, pattern = ASKED[int(id[-6:]) % len(ASKED)]
            options = [{"label": label, "description": ""} for label in ("red", "green")]
            more = {
                "permission": {"permission": tool, "patterns": [pattern], "metadata": {"command": pattern}},
                "question": {"questions": [{"question": "which one?", "header": "h", "options": options}]},
            }[kind]
            found.append({"id": id, "sessionID": turn.session.id} | more)
        return found

    def reply(self, id: str, how: str, body: Json) -> None:
        """Answer a permission or a question; without words a no ends the turn (opencode.md 7)."""
        _, turn = self.asked.pop(id)
        turn.waits_for = None
        if turn.session.turn is not turn:
            return  # opencode.md 19: a left-over of a turn that is over waits for nobody
        self.tell(f"{id} is answered: {how} {body}")
        if how == "reject" or (body.get("reply") == "reject" and not body.get("message")):
            self._end(turn, finish="stop", text="")
        else:
            self._later(turn, 0.5)

    # --- turns ---

    def _begin(self, session: Session, message: Json) -> None:
        id = message["info"]["id"]
        play = self._play(session, message, self.begun[id])
        if play.fate == "stored":
            return  # opencode.md 16: an unknown model, a message that is never answered
        turn = Turn(session, id, self.life, play, parent=id)
        session.turn = turn
        self._later(turn, play.young)

    def _later(self, turn: Turn, delay: float) -> None:
        context = Context()  # of the world outside: no daemon's life stops or ends it
        asyncio.get_running_loop().call_later(delay, self._next, turn, context=context)

    def _next(self, turn: Turn) -> None:
        """The next thing that happens in a turn."""
        if turn.session.turn is not turn or turn.life != self.life or not self.up or turn.waits_for:
            return
        steps, play = turn.play.steps, turn.play
        if turn.status == "young":
            turn.status = "busy"
            self._alone(turn)
            self.begun[turn.prompt] += 1
            key = turn.session.metadata.get("ashep", "somebody")
            self.tell(f"turn {self.begun[turn.prompt]} of {key} begins ({turn.prompt}: {play.fate}, {steps})")
            self._answer(turn)
        elif turn.answer is not None and turn.answer["info"].get("finish") == "tool-calls":
            self._answer(turn)  # opencode.md 24: a step has ended, and for a while nothing followed it
            self._later(turn, play.pause / 2)
            return
        if turn.step < len(steps):
            step, turn.step = steps[turn.step], turn.step + 1
            self._step(turn, step)
        elif play.fate == "ends":
            error = None if play.error is None else {"name": play.error, "data": {"message": "no"}}
            self._end(turn, finish="stop", text=play.text, error=error)
        elif play.fate == "dies":
            self.tell(f"the turn of {turn.prompt} is gone")
            self.died[turn.prompt] += 1
            turn.session.turn, turn.status = None, "over"
        # hangs: nothing comes any more

    def _alone(self, turn: Turn) -> None:
        """No other turn of ashep's acts for the same issue."""
        issue = str(turn.session.metadata.get("ashep", "")).partition(":")[2].partition("/")[0]
        for other in self.all.values():
            its = str(other.metadata.get("ashep", "")).partition(":")[2].partition("/")[0]
            at_work = other.turn is not None and other.turn.status in ("busy", "retry")
            if (
                issue
                and other is not turn.session
                and its == issue
                and at_work
                and not {other.id, turn.session.id} & self.people
            ):
                self.broken("never two turns on one tree", f"{turn.session.metadata} and {other.metadata}")

    def _step(self, turn: Turn, step: str) -> None:
        now = self.millis()
        turn.status = "busy"
        match step:
            case "tools" | "breaks":
                assert turn.answer is not None
                turn.answer["info"] |= {"finish": "tool-calls" if step == "tools" else "unknown"}
                turn.answer["info"]["time"]["completed"] = now
                turn.answer["parts"].append({"type": "text", "text": "I look around first."})
                if step == "breaks":
                    self._answer(turn)
            case "compacts" | "replays":
                self._compact(turn, step)
            case "waits":
                turn.status = "retry"
            case "permission" | "question":
                id = self.new_id("per" if step == "permission" else "que")
                turn.waits_for = id
                self.asked[id] = (step, turn)
            case _:
                pass
        self.sign(turn.session.id, step in ("permission", "question"))
        self._later(turn, turn.play.pause)

    def _answer(self, turn: Turn) -> None:
        info = {
            "id": self.new_id("msg"), "role": "assistant", "time": {"created": self.millis()}, "parentID": turn.parent,
            "root": turn.prompt, "providerID": "scripted", "modelID": "default", "tokens": {"input": 10, "output": 5},
            "cost": 0.001,
        }  # fmt: skip
        turn.answer = {"info": info, "parts": [{"type": "step-start"}]}
        turn.session.messages.append(turn.answer)

    def _compact(self, turn: Turn, step: str) -> None:
        """Two user messages that are nobody's, and a summary that is no answer (opencode.md 25)."""
        now, messages = self.millis(), turn.session.messages
        assert turn.answer is not None
        turn.answer["info"] |= {"finish": "tool-calls"}
        turn.answer["info"]["time"]["completed"] = now
        first = {"id": self.new_id("msg"), "role": "user", "time": {"created": now}, "who": "server"}
        messages.append({"info": first, "parts": [{"type": "compaction", "auto": True}]})
        turn.parent = first["id"]
        self._answer(turn)
        turn.answer["info"] |= {"summary": True, "finish": "stop"}
        turn.answer["info"]["time"]["completed"] = now
        turn.answer["parts"].append({"type": "text", "text": 'So far.\n```json\n{"result": "failed"}\n```'})
        prompt = turn.session.message(turn.prompt)
        text = prompt["parts"][0]["text"] if step == "replays" and prompt and prompt["parts"] else "Continue."
        part = {"type": "text", "text": text, "synthetic": step == "compacts"}
        again = {"id": self.new_id("msg"), "role": "user", "time": {"created": now}, "who": "server"}
        messages.append({"info": again, "parts": [part]})
        turn.parent = again["id"]
        self._answer(turn)

    def _end(self, turn: Turn, *, finish: str | None = None, text: str = "", error: Json | None = None) -> None:
        session, now = turn.session, self.millis()
        if turn.answer is None or turn.answer["info"].get("finish"):
            self._answer(turn)
        assert turn.answer is not None
        info = turn.answer["info"]
        info["time"]["completed"] = now
        if error is not None:
            info["error"] = error
        elif finish is not None:
            info["finish"] = finish
            turn.answer["parts"].append({"type": "text", "text": text})
        self.ended.setdefault(turn.prompt, []).append(text if error is None else str(error["name"]))
        turn.status, session.turn = "over", None
        if turn.waits_for:
            turn.waits_for = None  # opencode.md 19: the entry may stay
        self.sign(session.id, True)
        while session.queue and session.turn is None:
            message = session.message(session.queue.pop(0))
            if message is not None:
                self._begin(session, message)
