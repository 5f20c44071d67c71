"""Draws from distributions, given the random numbers."""
