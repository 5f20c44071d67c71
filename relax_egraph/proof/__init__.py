"""Proofs that an optimized program is equal to what it was made of, and their replay."""
