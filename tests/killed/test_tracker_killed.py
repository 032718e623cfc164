"""bd dies in the middle of a write, or stops there: what became of it is found out, and nothing is done twice."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.killed.place import Place

pytestmark = pytest.mark.real

WRAPPER = """#!/bin/sh
# the first try of each write gets the signal at a moment that depends on what is written
exec 3<&0
for word; do
  case "$word" in
    update|comment|create) key=$(printf '%s ' "$@" | cksum | cut -d' ' -f1)
      [ -e {folder}/$key ] && break
      milliseconds=$(( (key / {seed}) % {longest} ))
      {bd} "$@" <&3 &
      sleep "$(printf '0.%03d' $milliseconds)"
      kill -{signal} $! && echo "$milliseconds $word" > {folder}/$key
      wait $!
      exit $?;;
    -*) ;;
    *) break;;
  esac
done
exec {bd} "$@" <&3
"""


@contextmanager
def dying(place: Place, folder: Path, *, signal: str, seed: int, longest: int, timeout: int) -> Iterator[None]:
    """A bd whose writes get a signal in the middle."""
    folder.mkdir()
    wrapper = folder.with_suffix(".sh")
    told = {"folder": folder, "bd": place.bd_program, "signal": signal, "seed": seed, "longest": longest}
    wrapper.write_text(WRAPPER.format(**told))
    wrapper.chmod(0o755)
    place.use_bd(wrapper, timeout)
    try:
        yield
    finally:
        place.use_bd(place.bd_program)
        shutil.rmtree(folder)


@pytest.mark.promise("G2")
@pytest.mark.parametrize("seed", [1, 7])
def test_bd_is_killed_in_the_middle_of_every_write(place: Place, tmp_path: Path, seed: int) -> None:
    with dying(place, tmp_path / "hit", signal="KILL", seed=seed, longest=260, timeout=30):
        life = place.live()
        hit = sorted(path.read_text().strip() for path in (tmp_path / "hit").iterdir())
    print(f"killed after (ms) {hit}, {life.seconds:.1f} s")
    assert len(hit) >= 7, "claims, transitions, the comment and the creation"


def test_bd_is_stopped_in_the_middle_of_every_write_for_longer_than_its_time(place: Place, tmp_path: Path) -> None:
    with dying(place, tmp_path / "hit", signal="STOP", seed=3, longest=200, timeout=3):
        life = place.live()
        hit = sorted(path.read_text().strip() for path in (tmp_path / "hit").iterdir())
    print(f"stopped after (ms) {hit}, {life.seconds:.1f} s")
    assert len(hit) >= 7
