"""The HTTP server of `ashep serve`: loopback only, one guard, and what each token may ask.

Never: how a check runs, or the daemon.

`routes` is the table of endpoints, and `openapi` describes them. `schemas` holds what goes in and out, `handlers` what
answers. `application` and `connection_limits` take requests, `sessions`, `login_links` and `paired_devices` let people
in, `static` is the built page, `server` listens.
"""
