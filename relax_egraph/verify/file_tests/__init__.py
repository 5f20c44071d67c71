"""File tests: what rules do on programs written out in ``.egg`` files."""
