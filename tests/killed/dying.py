"""A bd that gets a signal in the middle of each write, at moments that depend on what is written and on a seed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.killed.place import Life, Place

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


def killed(place: Place, folder: Path, seed: int) -> Life:
    """A life whose bd is killed in the middle of every write."""
    with dying(place, folder, signal="KILL", seed=seed, longest=260, timeout=30):
        life = place.live()
        hit = sorted(path.read_text().strip() for path in folder.iterdir())
    print(f"killed after (ms) {hit}, {life.seconds:.1f} s")
    assert len(hit) >= 7, "claims, transitions, the comment and the creation"
    return life
