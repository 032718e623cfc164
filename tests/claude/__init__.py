"""Claude Code's adapter: its parts on recorded lines, and over the real binary what no other runner has."""
