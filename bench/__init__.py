"""Measurements of ashep with the real bd and the real OpenCode server: `python -m bench` (docs/benchmarks.md).

They are commands, not tests: what a machine can do on a bad day is no defect of the code. What is compared is measured
in one run, side by side, in CPU seconds where that is possible.

Modules: `figures` (a figure, its bound, the table), `processes` (what /proc says), `place` (a private home, a database,
a model, an agent server), `issues`, `idle`, `labels`, `commands`, `suite` (the benchmarks), `bare` (the loop to compare
with), `history` (lives made by the core), `copies` (a journal of any size), `scale` (what must not grow).
"""
