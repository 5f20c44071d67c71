"""Measurements: of the compiler itself, and of what it makes beside other systems."""
