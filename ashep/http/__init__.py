"""The verifier as a service: `ashep serve`, HTTP on loopback with a token.

Never: how a check is carried out, or the daemon.

`tickets` does what is asked, over the ports of tracker, annotations and verifier; `history` is the rule of what is kept
on an issue; `places` says which repositories may be asked for. `models` are what goes in and out, and `openapi`
describes just them; `operations` lists the endpoints, `http` answers requests, `serving` listens.
"""
