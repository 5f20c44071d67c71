"""Comparisons with torch: its database of operators, models, training."""
