"""Where a program that was imported differs from the system it comes from, and what made it so.

    print(rx.diff("model.pt2", [x]))        # torch's values beside ours, in the order of the source

The program may be right as imported and wrong as optimized: then rules are bisected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relax_egraph.base.parameters import NOT_NEGATIVE, optional, takes
from relax_egraph.frontends import EXPORTED, probed_torch
from relax_egraph.frontends.probed import Probe, Probed
from relax_egraph.optimize.session import OPTIONS
from relax_egraph.reasons.first_difference import Found, first_difference
from relax_egraph.reasons.progress import PROGRESS, Progress
from relax_egraph.reasons.running import INPUTS, Inputs, arguments
from relax_egraph.rules import RULES, Given


@dataclass(frozen=True, slots=True)
class Diff:
    """A comparison with `system`, whose values are `probes`, then `results` results.

    `found` is the first difference, or that there is none.
    """

    system: str
    probes: tuple[Probe, ...]
    results: int
    found: Found

    @property
    def differs(self) -> bool:
        """Whether a value differs by more than the tolerance."""
        return self.found.stage is not None

    @property
    def value(self) -> str:
        """The value that differs, or the result that differs most: its name, operator and place."""
        at = self.found.difference.output
        if at < len(self.probes):
            return str(self.probes[at])
        return f"result {at - len(self.probes)}"

    def __str__(self) -> str:
        count, difference = len(self.probes), self.found.difference
        apart = (
            f"{list(difference.at)} is {difference.after}, {self.system} has {difference.before}: "
            f"off by {difference.apart:.3g}, allowed are {difference.allowed:.3g}"
        )
        if self.found.stage is None:
            return f"the results agree with {self.system}; most apart is {self.value}:\n  {apart}"
        at = difference.output
        order = f", number {at + 1} of {count} values" if at < count else ""
        lines = [f"first difference: {self.value}{order}", f"  {apart}", *self._causes()]
        return "\n".join(lines)

    def _causes(self) -> list[str]:
        if self.found.stage == "import":
            return [
                "it is so before any rule, by the numpy reference: the operator was converted "
                f"wrongly, or is defined otherwise than in {self.system}"
            ]
        bisected = self.found.bisected
        assert bisected is not None
        if bisected.sets:
            return ["as imported it is right; rules make it wrong:", str(bisected)]
        kernels = ", ".join(self.found.kernels)
        return [f"as imported it is right, and no rule is to blame: look at the kernels {kernels}"]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        found, difference = self.found, self.found.difference
        probe = self.probes[difference.output] if difference.output < len(self.probes) else None
        source = probe and {"name": probe.name, "operator": probe.operator, "place": probe.place}
        return {
            "system": self.system,
            "differs": self.differs,
            "values": len(self.probes),
            "results": self.results,
            "stage": found.stage,
            "output": difference.output,
            "source": source,
            "at": list(difference.at),
            "expected": difference.before,
            "got": difference.after,
            "apart": difference.apart,
            "allowed": difference.allowed,
            "bisected": found.bisected and found.bisected.as_dict(),
            "kernels": list(found.kernels),
        }


@takes(
    program=EXPORTED,
    inputs=INPUTS,
    rules=RULES,
    rtol=optional(NOT_NEGATIVE),
    atol=optional(NOT_NEGATIVE),
    progress=PROGRESS,
    **OPTIONS,
)
def diff(
    program: Any,
    inputs: Inputs,
    rules: Sequence[Given] = (),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Diff:
    """Find the first value of an exported program that differs from torch's, and what made it so.

    `program` is what ``torch.export.export`` returned, or the path of a file that
    ``torch.export.save`` wrote; `inputs` are the arguments of its module's ``main`` (see
    `from_torch`), by name or in order.  torch runs the program node by node; the values are
    compared in its order, first as imported, then as optimized with `rules` and `options` (those
    of `optimize`), built and run.

    Values may differ by the tolerance of `bisect`: ``atol + rtol * |torch's|``, by default half the
    digits of the dtype, besides the rounding of the program itself.  `progress` is called before
    each try of the bisection, with its number and the number of its rules.

    Raises `ModelError` like `from_torch`, ``ValueError`` and `RunError` for inputs that ``main``
    does not take, ``ImportError`` without the package torch.
    """
    return compared(
        probed_torch(program), inputs, rules, rtol=rtol, atol=atol, progress=progress, **options
    )


def compared(probed: Probed, inputs: Inputs, rules: Sequence[Given] = (), **how: Any) -> Diff:
    """`diff` of `probed`; `how` are its keywords."""
    args = arguments(probed.module, "main", inputs)
    expected = probed.run(args)
    results = len(expected) - len(probed.probes)
    found = first_difference(probed.module, args, expected, results, rules, **how)
    return Diff(probed.system, probed.probes, results, found)
