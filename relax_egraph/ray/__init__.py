"""Work on several machines with Ray: the only door to it."""
