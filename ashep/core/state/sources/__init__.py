"""Issues that are kept elsewhere: what is known of them besides the tracker's flows.

Never: a rule, or whose word counts.
"""
