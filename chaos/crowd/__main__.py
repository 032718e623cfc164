"""`python -m chaos.crowd --issues 200 --files 12`: prints the figures."""

import argparse

from chaos.crowd.crowd import crowd

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--issues", type=int, default=200, help="how many")
parser.add_argument("--files", type=int, default=12, help="how many files they write in")
parser.add_argument("--runs", type=int, default=8, help="how many are worked on at once")
parser.add_argument("--seed", type=int, default=0)
asked = parser.parse_args()
print(crowd(asked.issues, asked.files, seed=asked.seed, runs=asked.runs))
