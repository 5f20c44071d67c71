"""Saved models as tables of rows: named inputs and results, and how many rows a call takes."""
