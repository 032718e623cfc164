"""Adapters without a world behind them: scripted, in memory, and held to the contracts of the real ones."""
