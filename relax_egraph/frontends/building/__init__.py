"""Calls of operators that several front doors make alike."""
