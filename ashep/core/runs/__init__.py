"""An attempt: which agent, its prompts, its turns, what it asks, a person in its session.

Never: where its outcome leads.
"""
