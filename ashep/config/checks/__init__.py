"""Checks that stand in an issue's text: read, linted, and put there.

Never: carrying them out, which `ashep.adapters.verifier` does.
"""
