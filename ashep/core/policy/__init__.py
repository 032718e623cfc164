"""What users write: policies, agents, settings, checks, permissions.

Here live the models of files, and what their words mean. Never: anything that happened.
"""
