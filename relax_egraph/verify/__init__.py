"""Proof by trial that rules are sound."""

INSTANCES = 20
"""How many instances a rule has to match, by default."""
