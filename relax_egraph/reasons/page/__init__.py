"""The explanation of an optimized module as one HTML file."""
