"""The core alone: playbooks for its rules, laws over a made-up world, and mutants that both must catch."""
