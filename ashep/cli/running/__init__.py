"""Commands that work, or speak with the daemon that does: work, stop, pause, answers, verify, serve.

Never: the daemon itself.
"""
