"""Proofs that rules are right, for all extents."""
