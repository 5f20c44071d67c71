"""Tensors made of a shape and a rule."""
