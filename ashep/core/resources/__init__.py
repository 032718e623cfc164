"""What runs need and use up: budgets, providers, the agent server, who is told of it."""
