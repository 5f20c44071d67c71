"""Importer of programs of torch; the package torch is imported here alone."""
