"""Does anything grow? A daemon under a steady load, for a day of virtual time or half an hour on the real tools.

`python -m chaos.soak --virtual 24h`, `python -m chaos.soak --real 30m`: memory, descriptors, threads, tasks, processes
and sessions at work are sampled; what stands in the last quarter is compared with what stood in the second one (the
first is for warming up), and the figures are printed. The exit code is 1 where something grew.
"""
