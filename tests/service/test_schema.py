"""The service does what its OpenAPI document says, and only that, whatever it is sent."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import run_state_machine_as_test
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from ashep.adapters.system import control_socket
from ashep.api.openapi import ApiRoute, document
from ashep.api.routes import OPERATIONS, PAGE
from ashep.api.sessions import MACHINE, PERSON
from ashep.config import write_starter
from tests.full import amount
from tests.recorded import life
from tests.service.worlds import TOKEN, World, repository


def wrong_data_is_refused(
    context: schemathesis.CheckContext, answer: schemathesis.Response, case: schemathesis.Case
) -> bool | None:
    """The library does not count 413 among refusals."""
    return None if answer.status_code == 413 else negative_data_rejection(context, answer, case)


KEPT = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
    wrong_data_is_refused, unsupported_method,
]  # fmt: skip
"""Not `positive_data_acceptance`: which branch there is, and what is a good check, no schema says. Whom the service
answers is tried in test_http.py.
"""

ENDLESS = ("events", "leave")
"""A stream, and what takes the token away that the others are asked with."""

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
"""What a busy machine, and data that is wrong on purpose, do to the making of examples."""


HERE = {"Host": "localhost"}


@pytest.fixture(scope="module")
def alone() -> Iterator[None]:
    """No other project: those of other tests come and go, and what is made of an answer must be the same each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_socket, "running", lambda *_: {})
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, alone: None) -> World:
    world = World(repository(tmp_path_factory.mktemp("service") / "project"))
    write_starter(world.folder)
    life(world.folder / "state", issues=3, until="person")
    for issue in ("t-1", "t-2", "t-3"):
        world.issue(id=issue)
    world.acts.ask = lambda *_: {"runs": [], "ended": [], "issue": "t-1"}
    return world


@pytest.fixture(scope="module")
def described(world: World) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_asgi("/openapi.json", world.app, headers=HERE)


@pytest.fixture(scope="module")
def tokens(world: World) -> dict[str | None, str]:
    """Who may do what: the machine what it may, a person the rest."""
    person, _ = world.sessions.enter(world.sessions.code("Pat"))
    return {one.scope: TOKEN if one.scope in MACHINE else person for one in OPERATIONS}


@pytest.mark.promise("L21")
@pytest.mark.slow
@pytest.mark.parametrize("mode", schemathesis.GenerationMode)
@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.name not in ENDLESS], ids=lambda one: one.name)
def test_whatever_is_sent_is_answered_as_described(
    described: schemathesis.BaseSchema,
    tokens: dict[str | None, str],
    operation: ApiRoute,
    mode: schemathesis.GenerationMode,
) -> None:
    place = described[operation.path][operation.method]
    if mode is schemathesis.GenerationMode.NEGATIVE and operation.body is None:
        return  # a path without a body takes any text, and what is no issue is not found

    @settings(max_examples=amount(8, 100), derandomize=True, deadline=None, database=None, suppress_health_check=SLOW)
    @given(place.as_strategy(generation_mode=mode))
    def holds(case: schemathesis.Case) -> None:
        case.call_and_validate(headers=HERE | {"Authorization": f"Bearer {tokens[operation.scope]}"}, checks=KEPT)

    holds()


WHO = ("person", "machine", "nobody", "somebody")


@pytest.mark.slow
@pytest.mark.parametrize("who", WHO)
def test_whoever_goes_on_from_what_was_answered_is_answered_as_described(
    world: World, described: schemathesis.BaseSchema, tokens: dict[str | None, str], who: str
) -> None:
    """Lists lead to issues, these to their runs and to acts, and so on; nobody gets further than may be."""
    given = {"person": tokens["answer"], "machine": TOKEN, "somebody": "x" * 43}.get(who)
    scopes = {"person": PERSON, "machine": MACHINE}.get(who, frozenset[str]())
    of = {(one.method, one.path): one for one in OPERATIONS}
    reached = Counter[tuple[str, int]]()

    class Walk(described.exclude(operation_id=[*ENDLESS]).as_state_machine()):
        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
            return {"headers": HERE | ({} if given is None else {"Authorization": f"Bearer {given}"})}

        def validate_response(
            self, response: schemathesis.Response, case: schemathesis.Case, *_: Any, **__: Any
        ) -> None:
            case.validate_response(response, checks=KEPT)
            operation = of[case.method.upper(), case.path]
            reached[operation.name, response.status_code] += 1
            if operation.scope is not None and operation.scope not in scopes:
                assert response.status_code == (403 if scopes else 401), operation.name

    told = settings(
        max_examples=amount(4, 100), stateful_step_count=8, derandomize=True, deadline=None, database=None,
        suppress_health_check=SLOW,
    )  # fmt: skip
    run_state_machine_as_test(Walk, settings=told)
    for source in (one for one in OPERATIONS if one.names and one.scope in scopes):  # four walks may all go elsewhere
        found = (
            described[source.path][source.method]
            .Case(headers=HERE | {"Authorization": f"Bearer {given}"})
            .call()
            .json()
        )
        issue = found["items"][0]["issue"]
        for to in (one for one in OPERATIONS if one.method == "GET" and one.parameters == ["issue"]):
            if to.scope in scopes:
                case = described[to.path]["GET"].Case(headers=HERE | {"Authorization": f"Bearer {given}"})
                case.path_parameters = {"issue": issue}
                assert case.call().status_code == 200, to.name
                reached[to.name, 200] += 1
    led = {of.name for of in OPERATIONS if "{issue}" in of.path}
    assert not scopes or any(status == 200 and name in led for name, status in reached), "it gets from lists to issues"


def test_the_document_is_made_of_the_endpoints() -> None:
    described = document(OPERATIONS)
    assert {(path, method.upper()) for path, one in described["paths"].items() for method in one} == {
        ("/verify", "POST"),
        ("/status/{ticket_id}", "GET"),
        ("/health", "GET"),
        ("/tickets", "GET"),
        ("/tickets", "POST"),
        ("/tickets/{id}", "GET"),
        ("/tickets/{id}", "PUT"),
        ("/tickets/{id}/verification", "GET"),
        *((one.path, one.method) for one in PAGE),
    }
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(described)):
        assert name in described["components"]["schemas"]
    for one in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(one)
