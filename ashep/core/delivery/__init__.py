"""From a success to the base: trees, landing, pull requests, notes on closing."""
