"""What people ask for besides the daemon: answers, audit, replay, a preview, checks, installations.

Here live whole actions, which the command line and the service call. Never: printing, or a rule.
"""
