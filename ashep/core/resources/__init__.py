"""What runs need and use up: budgets, providers, the agent server, the journal's room, who is told of it.

Never: what an issue is about.
"""
