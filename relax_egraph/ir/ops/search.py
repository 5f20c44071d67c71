"""Searches: positions of extremes, places in sorted sequences."""
