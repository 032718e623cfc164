"""End to end: a real `ashep`, the real bd, a real OpenCode server. Only the model and the people are scripted."""
