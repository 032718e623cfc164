"""A scripted agent that speaks ACP, as a program; the folder `$STORE` keeps sessions and what was asked.

What it does with a prompt stands in the prompt, as words; `flags` there change what it can do.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

STORE = Path(os.environ["STORE"])
FLAGS = (STORE / "flags").read_text().split() if (STORE / "flags").exists() else []
BEGAN = time.monotonic()
for flag in FLAGS:  # how it starts: `works:3` uses three seconds of processor time, `sleeps:3` none, `dies` ends
    what, _, seconds = flag.partition(":")
    while what == "works" and time.monotonic() < BEGAN + float(seconds):
        pass
    if what == "sleeps":
        time.sleep(float(seconds))
    if what == "dies":
        sys.exit("npm error network: no such host")
MODES = {"currentModeId": "auto", "availableModes": [{"id": one, "name": one} for one in ("auto", "default", "plan")]}
MODELS = ("scripted/default", "scripted/other")
lock = threading.Lock()
answers: dict[str, dict[str, Any]] = {}
events: dict[str, threading.Event] = {}
cancelled = threading.Event()
mode, model, number = {"now": "auto"}, {"now": MODELS[0]}, iter(range(10**6))


def say(message: dict[str, Any]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def update(session: str, what: str, /, **more: Any) -> None:
    say({"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": what, **more}}})


def chunk(session: str, text: str, ident: str, who: str = "agent") -> None:
    content = {"type": "text", "text": text}
    update(session, f"{who}_message_chunk", messageId=ident, content=content)


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    ident = f"a{next(number)}"
    events[ident] = threading.Event()
    say({"id": ident, "method": method, "params": params})
    events[ident].wait()
    return answers[ident]


def keep(session: str, who: str, text: str) -> None:
    with (STORE / f"{session}.jsonl").open("a") as file:
        file.write(json.dumps({"who": who, "text": text, "id": f"m{next(number)}"}) + "\n")


def leave(session: str, kind: str, title: str, given: dict[str, Any], path: str | None = None) -> bool:
    """Ask leave for a tool, and give whether it was given; what the tool does is done by who calls."""
    call = {"toolCallId": f"c{next(number)}", "title": title, "kind": kind, "status": "pending", "rawInput": given}
    call["locations"] = [{"path": path}] if path else []
    update(session, "tool_call", **call)
    options = [{"optionId": one, "name": one, "kind": one} for one in ("allow_once", "allow_always", "reject_once")]
    said = ask("session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
    chosen = said.get("result", {}).get("outcome", {}).get("optionId", "")
    done = chosen.startswith("allow")
    update(session, "tool_call_update", toolCallId=call["toolCallId"], status="completed" if done else "failed")
    return done


def play(session: str, text: str) -> str:
    here = Path(json.loads((STORE / f"{session}.json").read_text())["cwd"])
    words = text.split()
    if "FLOODS" in words:
        for _ in range(200):
            chunk(session, "x" * 100_000 + "\n", "flood")
        sys.stdout.write("y" * (20 * 1024 * 1024) + "\n")
    if "ODD" in words:
        update(session, "nobody_knows_this", what=[1, 2])
        sys.stdout.write('no JSON at all\n{"half": \n[1]\n')
        say({"method": "session/update", "params": {"sessionId": session, "update": None}})
        say({"method": "odd/notification", "params": 5})
        update(session, "usage_update", cost={"amount": 10**400})
    if "HANGS" in words:
        keep(session, "user", text)
        cancelled.clear()
        while not cancelled.wait(0.05) or "STUBBORN" in words:
            pass
        return "cancelled"
    if "DIES" in words:
        keep(session, "user", text)
        chunk(session, "I begin", "d1")
        os._exit(3)
    keep(session, "user", text)
    if "SLOW" in words:
        time.sleep(2)
    if "QUOTA" in words:
        windows = {"five_hour": {"utilization": 0.93, "resetsAt": 1_900_000_000, "status": "allowed_warning"}}
        info = {
            "status": "rejected",
            "rateLimitType": "seven_day",
            "resetsAt": 1_900_086_400,
            "unifiedWindows": windows,
        }
        update(session, "usage_update", used=10, size=100, _meta={"_claude/rateLimit": info})
        update(session, "usage_update", used=10, size=100, _meta={"_claude/rateLimit": {"x": "y" * 20_000}})
        raise RuntimeError("You've hit your weekly limit · resets 3am (Europe/Berlin)")
    for currency in (word.removeprefix("COSTS:") for word in words if word.startswith("COSTS:")):
        update(session, "usage_update", used=10, size=100, cost={"amount": 3.0, "currency": currency})
    if "CUT" in words:
        return "max_tokens"
    if "ASKS" in words:
        path = str(here / "secret.env")
        leave(session, "read", "read", {"filePath": path}, path)
    if "EDITS" in words:
        done = leave(session, "edit", "edit a.txt", {"path": str(here / "a.txt")}, str(here / "a.txt"))
        if done:
            (here / "a.txt").write_text("edited")
    if "RUNS" in words:
        done = leave(session, "execute", "touch ran", {"command": "touch ran"})
        if done:
            (here / "ran").write_text("")
    if "CLOSES" in words:
        done = leave(session, "execute", "bd close t-1", {"command": "cd . && bd close t-1"})
        if done:
            (here / "closed").write_text("")
    if "STRAYS" in words:
        done = leave(session, "edit", "edit", {"path": str(here / ".." / "strayed")}, str(here / ".." / "strayed"))
        if done:
            (here / "strayed").write_text("")
    if "UNASKED" in words:
        update(session, "tool_call", toolCallId="u1", title="edit", kind="edit", status="completed", locations=[])
        time.sleep(1)
    for word in words:
        if word.startswith("FS:"):
            said = ask("fs/write_text_file", {"sessionId": session, "path": word[3:], "content": "by fs"})
            chunk(session, json.dumps(said), "fs")
            update(session, "tool_call", toolCallId=f"f{next(number)}", title="x", kind="other", status="completed")
    end = f"END of {mode['now']}"
    keep(session, "agent", end)
    chunk(session, end, f"e{next(number)}")
    return "end_turn"


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    session = str(params.get("sessionId"))
    if method == "initialize":
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "scripted", "version": "1.2.3"},
            "agentCapabilities": {"loadSession": "noload" not in FLAGS},
        }
    if method == "session/new":
        session = f"s{os.getpid()}-{next(number)}"
        (STORE / f"{session}.json").write_text(json.dumps(params))
        models = {"currentModelId": MODELS[0], "availableModels": [{"modelId": one, "name": one} for one in MODELS]}
        return {"sessionId": session, "modes": MODES, "models": models}
    if method == "session/load":
        for line in (STORE / f"{session}.jsonl").read_text().splitlines():
            said = json.loads(line)
            who, own, _ = said["who"].partition("'s own")  # a user's message that the agent wrote itself
            content = {
                "type": "text",
                "text": said["text"],
                **({"annotations": {"audience": ["assistant"]}} if own else {}),
            }
            update(session, f"{who}_message_chunk", messageId=said["id"], content=content)
        return {"modes": MODES}
    if method == "session/set_mode":
        mode["now"] = params["modeId"]
        return {}
    if method == "session/set_model":
        model["now"] = params["modelId"]
        return {}
    if method == "session/prompt":
        text = params["prompt"][0]["text"]
        with (STORE / "asked").open("a") as file:
            file.write(json.dumps([mode["now"], text]) + "\n")
        return {"stopReason": play(session, text)}
    raise KeyError(method)


def serve(message: dict[str, Any]) -> None:
    try:
        said = {"result": answer(message["method"], message.get("params") or {})}
    except Exception as error:
        said = {"error": {"code": -32603, "message": f"Internal error: {error!r}"}}
    say({"id": message["id"], **said})


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "session/cancel":
        cancelled.set()
    elif "method" in message and "id" in message:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
    elif "id" in message and message["id"] in events:
        answers[message["id"]] = message
        events[message["id"]].set()
os._exit(0)
