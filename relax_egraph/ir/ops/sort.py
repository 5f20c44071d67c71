"""Sorting along an axis."""
