"""Repositories as people have them: `ashep install` says what would stop a night there, or the night works."""
