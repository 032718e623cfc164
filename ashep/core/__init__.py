"""The pure core: facts in, facts and commands out. No IO, no clock, no randomness, no logging (design section 3)."""
