"""The daemon: the shepherd's turn, and the sources of its facts.

`shepherd` writes what the core decides, `effects` carries commands out, the others tell what they see. Never: a rule.
"""
