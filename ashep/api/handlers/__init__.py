"""Handlers of the API: queries over the read model, actions of people, live events, and verification tickets.

Never: how a request comes in, or who may ask.
"""
