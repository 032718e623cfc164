"""Adapters without a world behind them: scripted, in memory, and held to the contracts of the real ones.

They pass the suites of `ashep.extras.testing` and tests/conformance. Never: an answer that the real ones cannot give.
"""
