"""Lives of made-up issues under a policy: the real shepherd over memory, in virtual time.

Tracker, agent server and work tree are the memory adapters, the journal is in memory, and time jumps to whatever comes
next. What agents and people do is said by a script, by chance, or by somebody at a terminal; everything else is the
core's, and the shepherd's own. Never: a rule of its own.
"""
