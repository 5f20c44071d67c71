"""Random instances of what a rule matches."""
