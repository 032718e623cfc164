"""Extras: what the command line offers next to the program: the simulation, the demonstration, conformance suites,
imports and exports, and Claude Code by day.

The command line imports them, lazily, and nothing else does. Never: a part of what runs at night.
"""
