"""Rules that are found: equal terms over chosen operators, checked and written for review."""
