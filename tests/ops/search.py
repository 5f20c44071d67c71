"""Instances of searches."""

from collections.abc import Mapping

from tests.ops.case import Sampler

SAMPLERS: Mapping[str, Sampler] = {}
