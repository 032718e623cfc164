"""The demonstration: a scripted model server on loopback, so that everything can be tried without a provider.

Never: a thing that the program needs.
"""
