"""What a change touches: files, flags, secrets, tests. It reads a diff and nothing else."""
