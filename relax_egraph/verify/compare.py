"""What the classes of a trial show of the instances in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np

from relax_egraph.egraph.loader import RuleInfo
from relax_egraph.egraph.trial import Trial
from relax_egraph.ir import dims
from relax_egraph.verify.classes import Classes, Difference
from relax_egraph.verify.draw import Instance
from relax_egraph.verify.inputs import KINDS
from relax_egraph.verify.program import Program
from relax_egraph.verify.tolerance import ORDER, Need, kept
from relax_egraph.verify.values import Evaluation

_EXTENTS = ((2, 3, 5), (0, 1, 2, 5))
"""Extents of symbols: of the first run, and of the others."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An instance whose classes have two values."""

    instance: Instance
    difference: Difference

    @property
    def exceeds(self) -> bool:
        """Whether the rules that made the instance state less."""
        allowed = max(ORDER.index(stated(rule)) for rule in self.instance.rules)
        return ORDER.index(self.difference.need) > allowed


def compare(program: Program, trial: Trial, random: Random) -> tuple[set[int], list[Wrong]]:
    """Which instances have classes that were compared, and what is wrong with them."""
    of_step = {s.number: s.instance for s in program.steps}
    compared: set[int] = set()
    wrong: dict[tuple[int, Need], Wrong] = {}
    for k, kind in enumerate(KINDS):
        rng = np.random.default_rng(random.getrandbits(32))
        extents = {n: int(rng.choice(_EXTENTS[min(k, 1)])) for n in program.symbols}
        run = Evaluation(program, extents, kind, rng)
        run.compute()
        classes = Classes(run, trial)
        for difference in classes.differences():
            for at in {of_step[n] for n in difference.steps}:
                found = Wrong(program.instances[at], difference)
                if kind != "nan" or not _has_empty(found.instance, extents):
                    wrong.setdefault((at, difference.need), found)
        compared |= {of_step[n] for n in classes.compared}
    return compared, list(wrong.values())


def _has_empty(instance: Instance, extents: Mapping[str, int]) -> bool:
    """Whether a tensor has no elements: a sum over none of them loses what is not a number."""
    infos = (instance.info(v) for v in instance.problem.shapes if v in instance.problem.needed)
    return any(dims.evaluate(d, extents) == 0 for i in infos for d in i.dims or ())


def stated(rule: RuleInfo) -> Need:
    """The class that a rule keeps to."""
    return kept(rule.float_class)
