"""From a success to the base: work trees, evidence, landing, pull requests, notes on closing.

Never: git itself, which is an adapter's.
"""
