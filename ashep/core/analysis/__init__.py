"""Reads the journal and judges: account, audit, replay, soundness, what another policy had done.

It asks the real rules. Never: a decision that anything acts on.
"""
