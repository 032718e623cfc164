"""Where agents run that are kept apart, whatever kind they are: what they see, and what they may ask from in there.

Never: the settings or the login of one kind of agents.
"""
