"""Policies by the thousand: made up, small, and lived through to their end."""
