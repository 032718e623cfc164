"""Schemas of the API: pydantic models of what goes in and out.

Never: a decision, or access to the world.
"""
