"""What users write: policies, agents, settings, checks, permissions. Nothing that happened stands here."""
