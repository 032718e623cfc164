"""Programs that the verifier starts: each is run by its path, imports nothing but the standard library, and ends.

Never: an import of ashep.
"""
