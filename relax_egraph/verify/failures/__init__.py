"""What is wrong with a rule: the smallest operands, the premise that lacks, what is proven."""
