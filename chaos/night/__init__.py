"""A simulated night: hundreds of issues, three providers, people, outages and a daemon that dies, on virtual time.

The real shepherd works over the memory adapters (`tests.loop_world`); what happens when is decided by a seed. In the
morning each issue is closed, or waits, or is parked, with a reason; `recount` tells the night a second time, from the
raw lines of the journal and from the tracker, and `ashep report` must say the same, line by line; audit and replay are
clean. `python -m chaos.night --help` lives nights; `test_night.py` has a few small ones.
"""
