"""Commands about policies: check, graph, simulate, import and export.

Never: what a policy means, which is the core's.
"""
