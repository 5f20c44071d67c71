"""The native engine: translates bytecode to programs for a driver in machine code."""
