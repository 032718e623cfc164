"""Prompts: what an agent is told, made of templates that a user can override in `.agent-shepherd/prompts/`.

Whatever a template says, the prompt names its run and holds the contract of the outcome, and what others wrote stands
in fences. docs/prompts.md is the user's guide. Never: when a prompt is sent, or what follows from its answer.
"""
