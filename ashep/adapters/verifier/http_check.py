"""The check that starts a service and asks it: what it is sent, and whether its answer is as expected."""

import json
from base64 import b64decode
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import JsonValue

from ashep.adapters.verifier.program_run import Ran
from ashep.adapters.verifier.static_checks import fail_check, pass_check, report_error
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.checks import HttpRequest
from ashep.ports.verifier import CheckFinding

_SHOWN = 4000  # characters of an answer


def order_of(wanted: HttpRequest, address: str = "") -> str:
    """What `children/ask.py` is told. `address`: of a service that runs by itself; empty: the check starts one."""
    headers = dict(wanted.headers)
    body, kind = wanted.body, "application/json"
    if isinstance(body, str):
        kind = "text/plain; charset=utf-8"
    elif body is not None:
        body = json.dumps(body)
    if body is not None and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = kind
    order: dict[str, Any] = {
        "within": wanted.timeout.total_seconds(), "method": wanted.method, "path": wanted.path, "headers": headers,
        "body": body,
    }  # fmt: skip
    if (service := wanted.service) is not None:
        order |= {
            "start": service.start, "port": service.port, "ready": service.ready,
            "ready_within": service.timeout.total_seconds(),
        }  # fmt: skip
    else:
        parts = urlsplit(address)
        order |= {"host": parts.hostname, "port": parts.port or (443 if parts.scheme == "https" else 80)}
        order |= {"tls": parts.scheme == "https", "path": parts.path.rstrip("/") + wanted.path}
    return json.dumps(order)


def judged(wanted: HttpRequest, ran: Ran, address: str = "") -> CheckFinding:
    """Say what came of it; of a service that runs by itself it is said that it is none of the checkout's."""
    found = _judged(wanted, ran)
    return replace(found, message=f"{found.message} (at {address}, which is not of this commit)") if address else found


def _judged(wanted: HttpRequest, ran: Ran) -> CheckFinding:
    try:
        found: dict[str, Any] = json.loads(ran.report)
    except ValueError:
        return fail_check(f"the service was killed with what asks it: {ran.reason}", ran.output)
    if "problem" in found:
        return _problem(wanted, found, ran.output)
    body = b64decode(found["body"])
    text = body.decode(errors="replace")
    asked, status = f"{wanted.method} {wanted.path}", found["status"]
    printed = f"\n\nThe service printed:\n{ran.output}" if wanted.service is not None else ""
    output = f"{asked}: {status}\n{text[:_SHOWN]}{printed}"
    if status != wanted.expect_status:
        return fail_check(f"{asked}: status {status}; expected {wanted.expect_status}", output)
    if found["large"] and wanted.expect_body is not None:
        return report_error(f"{asked}: the answer is larger than 1 MiB: it is not looked at", output)
    if wrong := _differs(wanted.expect_body, text):
        return fail_check(f"{asked}: status {status}, but {wrong}", output)
    return pass_check(f"{asked}: status {status}", output)


def _problem(wanted: HttpRequest, found: dict[str, Any], output: str) -> CheckFinding:
    said, service = found.get("said", ""), wanted.service
    match found["problem"]:
        case "late":
            return fail_check(f"{wanted.method} {wanted.path}: no answer in {format_duration(wanted.timeout)}", output)
        case "away" if service is None:  # nothing is known of the work then
            return report_error(f"{wanted.method} {wanted.path}: {said}", output)
        case "taken":
            return report_error(
                f"something listens on port {found['port']} already; the service was not started", output
            )
        case "foreign":
            return report_error(f"another program listens on port {found['port']}; it was not asked", output)
        case "missing" if service is not None:
            return fail_check(f"{service.start[0]} cannot be started: {said}", output)
        case "ended":
            return fail_check("the service ended before it answered", output)
        case "not_ready" if service is not None:
            return fail_check(f"the service was not ready after {format_duration(service.timeout)}: {said}", output)
        case _:
            return fail_check(f"{wanted.method} {wanted.path}: {said}", output)


def _differs(expected: JsonValue, text: str) -> str:
    """Say how an answer differs from what is expected of it; empty: it does not."""
    if expected is None:
        return ""
    if isinstance(expected, str):
        return "" if expected in text else f"the answer does not hold {_short(expected)}"
    try:
        answer: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return "the answer is no JSON"
    return _unlike(expected, answer, "")


def _unlike(expected: JsonValue, found: JsonValue, path: str) -> str:
    """Compare: an object holds at least what is expected of it, all else is the same."""
    name = path or "the answer"
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return f"{name} is {_short(found)}; expected an object"
        for key, value in expected.items():
            below = f"{path}.{key}" if path else key
            if key not in found:
                return f"{below} is missing"
            if wrong := _unlike(value, found[key], below):
                return wrong
        return ""
    return "" if _same(expected, found) else f"{name} is {_short(found)}; expected {_short(expected)}"


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same JSON: for Python, True would be 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return one == other


def _short(value: JsonValue) -> str:
    text = json.dumps(cast(object, value), ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"
