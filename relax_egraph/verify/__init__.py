"""The check of rules by trials on random instances."""

INSTANCES = 20
"""The default number of instances that a rule has to match."""
