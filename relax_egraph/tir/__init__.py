"""The loop language: kernels as loops, between the graph and machine code."""
