"""Raising: loop functions to the operators that compute the same."""
