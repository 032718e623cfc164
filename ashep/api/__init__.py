"""The HTTP server beside the daemon, `ashep serve`: loopback only, one guard, and what each token may ask.

Never: how a check is carried out, or the daemon.

`page` is what people look at and do, `verification` what programs have verified. `openapi` is one table of endpoints,
and describes them and the `models` of what goes in and out; `connection_limits` and `application` answer requests,
`sessions` and `login_links` let people in, `static` is the built page, `server` listens.
"""
