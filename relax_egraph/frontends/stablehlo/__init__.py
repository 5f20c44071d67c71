"""Importer of StableHLO programs; the packages jaxlib and jax are imported here alone."""
