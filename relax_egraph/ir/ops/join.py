"""Operators that join, cut and repeat tensors."""
