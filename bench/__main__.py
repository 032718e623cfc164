"""The command: `python -m bench [NAME…] [--quick] [--strict] [--markdown]`."""

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import (
    commands,
    first_hour,
    foreman,
    idle,
    issues,
    kinds,
    labels,
    landing,
    page,
    parallel,
    playback,
    policies,
    sandboxes,
    scale,
    suite,
    tabs,
    trees,
    verifier,
)
from bench.figures import Figure, markdown, table
from bench.place import say, tools

NAMES = (
    "commands", "policies", "scale", "issues", "idle", "labels", "landing", "verifier", "trees", "parallel",
    "sandboxes", "kinds", "page", "tabs", "playback", "foreman", "first_hour",
    "suite",
)  # fmt: skip


def benchmarks(options: argparse.Namespace) -> dict[str, Callable[[], list[Figure]]]:
    """Each benchmark by its name, in full size or a quick one."""
    quick = bool(options.quick)

    def with_issues() -> list[Figure]:
        with tools() as found:
            return issues.measure(found, issues=4 if quick else 20, rounds=options.rounds, profile=options.profile)

    def with_idle() -> list[Figure]:
        with tools() as found:
            return idle.measure(found, seconds=35 if quick else 90)

    def with_labels() -> list[Figure]:
        with tools() as found:
            return labels.measure(found, trials=3 if quick else 12)

    def with_parallel() -> list[Figure]:
        with tools() as found:
            return parallel.measure(found, issues=4 if quick else 20, rounds=1)

    def with_sandboxes() -> list[Figure]:
        with tools() as found:
            return sandboxes.measure(found, issues=4 if quick else 20)

    def with_kinds() -> list[Figure]:
        with tools() as found:
            return kinds.measure(found, issues=4 if quick else 20)

    def with_tabs() -> list[Figure]:
        with tools() as found:
            return tabs.measure(found, issues=4 if quick else 8, pairs=1 if quick else 5)

    return {
        "kinds": with_kinds,
        "parallel": with_parallel,
        "sandboxes": with_sandboxes,
        "commands": lambda: commands.measure(runs=500 if quick else 10_000, pairs=5 if quick else 15),
        "policies": lambda: policies.measure(pairs=3 if quick else 9),
        "scale": lambda: scale.measure(facts=20_000 if quick else 1_000_000, issues=500 if quick else 10_000),
        "issues": with_issues,
        "idle": with_idle,
        "labels": with_labels,
        "landing": lambda: landing.measure(issues=4 if quick else 20, pairs=2 if quick else 5),
        "page": lambda: page.measure(
            runs=500 if quick else 10_000,
            times=5 if quick else 25,
            idle=5 if quick else 30,
            changes=20 if quick else 1000,
        ),
        "tabs": with_tabs,
        "playback": lambda: playback.measure(facts=20_000 if quick else 1_000_000, moments=5 if quick else 50),
        "foreman": lambda: foreman.measure(
            entries=1000 if quick else 10_000, starts=2 if quick else 9, prompts=20 if quick else 300
        ),
        "first_hour": first_hour.measure,
        "verifier": lambda: verifier.measure(rounds=3 if quick else 15),
        "trees": lambda: trees.measure(files=2000, pairs=5 if quick else 15, trees=20 if quick else 200),
        "suite": suite.measure,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; 1 where a benchmark failed, or with --strict where a figure is over its bound."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure ashep (docs/benchmarks.md).")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(NAMES)}; default: all but suite")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast is it")
    parser.add_argument("--rounds", type=int, default=1, help="how often `issues` is repeated; medians are told")
    parser.add_argument("--suite", action="store_true", help="the tests' own time, too")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a figure is over its bound")
    parser.add_argument("--markdown", action="store_true", help="print a table for a document")
    parser.add_argument(
        "--profile", type=Path, help="profile the daemon of `issues` into this file (it is slower then)"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - {*NAMES}:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    chosen = options.names or [name for name in NAMES if name != "suite" or options.suite]
    figures, failed = list[Figure](), list[str]()
    for name in chosen:
        say(f"{name} …")
        try:
            figures += benchmarks(options)[name]()
        except Exception:
            traceback.print_exc()
            failed.append(name)
    print(markdown(figures) if options.markdown else table(figures))
    over = [figure.name.strip() for figure in figures if figure.is_over]
    print(f"\n{len(over)} over the bound{': ' if over else ''}{'; '.join(over)}")
    if failed:
        print(f"failed to run: {', '.join(failed)}")
    return 1 if failed or (options.strict and over) else 0


if __name__ == "__main__":
    sys.exit(main())
