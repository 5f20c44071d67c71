"""Measurements of the compiler itself, and of its programs beside other systems."""
