"""Explanations of failing rules: minimal counterexamples and missing premises; proofs of shapes."""
