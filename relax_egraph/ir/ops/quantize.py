"""Between floating-point numbers and scaled integers."""
