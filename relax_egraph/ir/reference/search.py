"""Searches: positions of extremes, places in sorted sequences."""

from collections.abc import Mapping

from relax_egraph.ir.reference.array import Reference

REFERENCE: Mapping[str, Reference] = {}
