"""What instances compute, and in what two values of one class may differ."""
