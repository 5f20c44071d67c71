"""Explanations of one optimization: rules that led to the result, did not match, or are wrong."""
