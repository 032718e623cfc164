"""The real `ashep work`, on the real bd and a real OpenCode server, killed at every boundary between it and the world.

`life` is the process that is killed, `points` counts its boundaries, `place` is its project, `scenario` what people and
the model do there, `sweep` kills one life after the other and looks at what became of each. `make torture-real` is the
whole of it (`__main__`); the tests here are a spread that the ordinary test command runs.
"""
