"""This machine: programs, processes, file systems, the clock, HTTP clients and servers, and systemd.

Every other adapter may use it, and it uses none. Never: anything of one tracker, runner or repository.
"""
