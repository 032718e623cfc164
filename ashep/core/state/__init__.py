"""What is known: the World, its flows and runs, and the parts that fold by themselves.

Here live values, and folds that read no policy. Never: a decision.
"""
