"""LLVM functions as text: values with operators, control flow, and functions on lanes."""
