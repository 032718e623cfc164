"""Every type of check that the language has is executed by somebody, and by the right half of the verifier."""

from typing import get_args

from ashep.adapters.verifier.check_runners import LOOKS, RUNS
from ashep.core.policy.checks import CHECK_TYPES, Check, OwnCheck


def test_each_type_of_check_has_a_model_and_exactly_one_runner() -> None:
    static = {name for name, check in CHECK_TYPES.items() if check.static}
    assert set(LOOKS) == static, "a check that only looks has no runner, or runs before it is isolated"
    assert set(RUNS) == set(CHECK_TYPES) - static, "a check that runs a program has no runner"


def test_each_model_of_the_language_is_a_type_by_its_tag() -> None:
    union = get_args(get_args(Check)[0])
    tags = {tag.tag: model for model, tag in map(get_args, union)}
    assert tags.pop("own") is OwnCheck
    assert tags == {name: check.model for name, check in CHECK_TYPES.items()}
    for name, check in CHECK_TYPES.items():
        assert get_args(check.model.model_fields["type"].annotation) == (name,)
