"""What the journal holds: facts and commands by domain, and how they are written. Nothing is decided or known here."""
