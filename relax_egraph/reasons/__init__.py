"""What is asked of one optimization: why a rule did something, why not, and which one is wrong."""
