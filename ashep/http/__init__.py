"""The verifier as a service: `ashep serve`, HTTP on loopback with a token.

Never: how a check is carried out, or the daemon.

`tickets` does what is asked, over the ports of tracker, annotations and verifier; `history` is the rule of what is kept
on an issue; `places` says which repositories may be asked for. `models` are what goes in and out, `operations` lists
the endpoints, and describes them and just those models; `http` answers requests, `serving` listens.
"""
