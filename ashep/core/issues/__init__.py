"""An issue's course: where an outcome leads, people first, and how facts change a flow.

Never: the start of a run, or what lands.
"""
