"""LLVM functions as text: values with operators, control flow, functions on lanes."""
