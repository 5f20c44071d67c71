"""Random instances of rules' patterns."""
