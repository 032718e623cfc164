"""From facts to commands: evolve, decide, dispatch, and the difference between what should be and what is."""
