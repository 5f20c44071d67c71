"""Proof by trial that rules are sound."""
