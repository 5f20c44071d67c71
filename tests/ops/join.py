"""Instances of joining, cutting and repeating."""

from collections.abc import Mapping

from tests.ops.case import Sampler

SAMPLERS: Mapping[str, Sampler] = {}
