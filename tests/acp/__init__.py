"""Tests of the runner of agents that speak ACP."""
