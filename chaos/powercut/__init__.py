"""Power cuts: what real git wrote, cut off anywhere, with whatever was not flushed lost, torn or kept."""
