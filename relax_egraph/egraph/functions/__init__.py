"""Functions that rules call; the engine computes them outside of the e-graph."""
