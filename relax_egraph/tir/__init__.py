"""The loop language: what a kernel does, loop by loop, before it is machine code."""
