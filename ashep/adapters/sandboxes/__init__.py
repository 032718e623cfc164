"""Where agents run that are kept apart, whatever kind they are: what they see, what they may ask from in there, and who
works in a place.

Never: what one kind of agent needs alone, or who is to be kept apart.
"""
