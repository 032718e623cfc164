"""What the page looks at and does, and programs below /api/v1: pictures of the journal, acts of people, live changes.

Never: how a request comes in, or who may ask.
"""
