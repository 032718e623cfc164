"""A deterministic simulation of whole nights: one seed is one story, and the same seed is the same story to the byte.

The daemon's own code runs, adapters included, on a loop whose time is virtual (`loop`), a disk that forgets what was
not synced (`disk`), a program bd and an OpenCode server that behave and misbehave as the real ones were seen to
(`bd`, `server`; each lie names its line of the facts), people who act at any moment (`people`) and a machine that
fails (`world`). `laws` says what must hold then, `story` runs a seed, tells it and shrinks it, `planted` holds bugs
that must be found. `python -m chaos.torture --help` runs seeds; so does `make torture SEEDS=n`.
"""
