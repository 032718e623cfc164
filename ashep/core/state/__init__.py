"""What is known: folds of facts, by domain. Nothing here knows what a policy means, or decides."""
