"""Kernels of other libraries: for each a rule, a registered function and a price.

A rule says which operators a function computes, and a price how long it takes.  Extraction calls
the function where that is cheaper than the kernels of this package.
"""
