"""The only code that talks to the world. Adapters do not know each other."""
