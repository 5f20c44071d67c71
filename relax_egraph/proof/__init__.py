"""Proofs that an optimized program is equal to its source, and their replay."""
