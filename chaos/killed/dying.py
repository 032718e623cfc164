"""A bd that gets a signal in the middle of each write, at moments that depend on what is written and on a seed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.killed.place import Place

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
      if kill -{signal} $!; then echo "$milliseconds $word"; else echo late; fi > {folder}/$key
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


def killed(place: Place, folder: Path, seed: int) -> None:
    """A life whose bd is killed in the middle of every write."""
    with dying(place, folder, signal="KILL", seed=seed, longest=180, timeout=30):
        place.live()
        signalled(folder)


def signalled(folder: Path) -> None:
    """Each write got the signal, but for some of a quick bd that were done before theirs."""
    tried = sorted(path.read_text().strip() for path in folder.iterdir())
    print(f"the signal came after (ms) {tried}")
    assert len(tried) - tried.count("late") >= 7, "claims, transitions, the comment and the creation"
