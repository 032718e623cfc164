"""Do many issues that meet in few files all come to where they are to be, and what does that cost?

`python -m chaos.crowd --issues 200 --files 12`: issues in work trees of their own, in memory and virtual time. Each
adds a line to one or two files, so that whoever comes later mostly contradicts what landed meanwhile; some fail the
project's check at first, some change nothing at first, a person commits now and then. It prints what came of it.
"""
