"""The verifier for other machines' programs: tickets, their checks carried out, and what is kept of that.

Never: how a check is carried out.
"""
