"""Encoding: from a dataflow block to a view, and from a view to the tables of egglog."""
