"""Scans along an axis: cumulative sums and products."""
