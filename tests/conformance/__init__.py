"""One suite a port, over every adapter: what a test here says holds for the memory ones and for the real ones."""
