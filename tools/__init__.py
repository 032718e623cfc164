"""Generators of documents: each writes a page from what the code or the tests say, and a test sees that it is fresh."""
