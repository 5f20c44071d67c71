"""Tensors made of a shape and a rule."""

from collections.abc import Mapping

from relax_egraph.ir.reference.array import Reference

REFERENCE: Mapping[str, Reference] = {}
