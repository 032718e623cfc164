"""The foreman: its parts, and the whole of it over the real `claude`."""
