"""The first value of a program that differs from what it should be, and the stage that made it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from relax_egraph.errors import RunError
from relax_egraph.ir.expr import Call, Function, SeqExpr, Tuple
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.walk import bindings_of
from relax_egraph.optimize import optimize
from relax_egraph.passes import dead_code_elimination
from relax_egraph.reasons.bisect import bisect
from relax_egraph.reasons.bisected import Bisected
from relax_egraph.reasons.difference import Allowed, Difference, rounding
from relax_egraph.reasons.progress import Progress
from relax_egraph.reasons.running import built, interpreted, meant
from relax_egraph.rules import Given

Stage: TypeAlias = Literal["import", "optimization"]
"""What made a difference: the import, which the numpy reference shows, or what follows it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The first value that differs: `difference`, whose output counts from the first value.

    Without such, `stage` is ``None`` and the difference is the largest of the results.  `bisected`
    tells which rules make the value wrong, on the program of that value alone; `kernels` are the
    functions and operators that compute it there.  `checked` values were compared in the stage.
    """

    stage: Stage | None
    difference: Difference
    checked: int
    bisected: Bisected | None = None
    kernels: tuple[str, ...] = ()


def first_difference(
    module: IRModule,
    args: Sequence[Any],
    expected: Sequence[Any],
    results: int,
    rules: Sequence[Given] = (),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Found:
    """Find the first output of ``main`` that differs from `expected`, for the arguments `args`.

    ``main`` returns a flat tuple: values in the order of their source, of which the last `results`
    are those of the program; the others serve to find the difference.

    The numpy reference comes first: a value that differs there was imported wrongly, or an
    operator is defined otherwise.  Then the program is optimized with `rules` and `options`, built
    and run for its results alone, as a user does.  If one of them differs, the program that
    returns all values is run.  Where that is right, as what was fused is now apart, programs of a
    single value are: the first is found by halving.  At last the rules are bisected.

    The tolerance is that of `bisect`.  Raises what optimizing, building and running raise.
    """
    trial = _Trial(module, args, expected, rtol, atol, rules, options)
    imported = trial.imported()
    if imported is not None and imported.exceeds:
        return Found("import", imported, len(expected))
    values = range(len(expected))
    wanted = values[len(expected) - results :]
    got = trial.ran(wanted)
    worst = trial.worst(wanted, got)
    if not worst.exceeds:
        return Found(None, worst, results)
    wrong = trial.first(wanted, got)
    assert wrong is not None
    found = trial.first(values, trial.ran(values)) or trial.halved(values, wrong)
    at = found.output
    alone = _returning(module, [at])
    bisected = bisect(alone, args, rules, rtol=rtol, atol=atol, progress=progress, **options)
    kernels = _called(_main(optimize(alone, rules, **options)))
    return Found("optimization", found, len(expected), bisected, kernels)


@dataclass(slots=True)
class _Trial:
    """Programs that return some of the values of `module`, compared with those `expected`."""

    module: IRModule
    args: Sequence[Any]
    expected: Sequence[Any]
    rtol: float | None
    atol: float | None
    rules: Sequence[Given]
    options: dict[str, Any]
    _rounding: Sequence[float] = field(default=(), init=False)

    def imported(self) -> Difference | None:
        """The first difference of the program as imported, or its largest one within tolerance.

        ``None`` if the reference cannot run it.
        """
        try:
            values = interpreted(self.module, "main", self.args)
        except RunError:
            return None
        meaning = meant(self.module, "main", self.args)
        self._rounding = rounding(values, meaning) if meaning is not None else ()
        places = range(len(values))
        return self.first(places, values) or self.worst(places, values)

    def halved(self, values: Sequence[int], known: Difference) -> Difference:
        """A value that differs in a program of its own, where the one before does not.

        Of one value, `known` is the difference in a larger program.
        """
        low, high = 0, known.output  # what differs is in low … high
        while low < high:
            middle = (low + high) // 2
            alone = values[middle : middle + 1]
            found = self.first(alone, self.ran(alone))
            if found is None:
                low = middle + 1
            else:
                known, high = found, middle
        return known

    def ran(self, places: Sequence[int]) -> list[Any]:
        """The values at `places`, by a program of these, optimized and built."""
        program = _returning(self.module, places)
        return built(optimize(program, self.rules, **self.options), "main", self.args)

    def first(self, places: Sequence[int], values: Sequence[Any]) -> Difference | None:
        """The first difference above tolerance of the `values` at `places`."""
        each = (self.worst([p], [v]) for p, v in zip(places, values, strict=True))
        return next((difference for difference in each if difference.exceeds), None)

    def worst(self, places: Sequence[int], values: Sequence[Any]) -> Difference:
        """The difference of the `values` at `places` that is largest for its tolerance."""
        expected = [self.expected[p] for p in places]
        rounded = [self._rounding[p] for p in places] if self._rounding else ()
        worst = Allowed(expected, self.rtol, self.atol, rounded).worst(values)
        return replace(worst, output=places[worst.output])


def _returning(module: IRModule, places: Sequence[int]) -> IRModule:
    """`module`, whose ``main`` returns only the values at `places` of its tuple."""
    main = _main(module)
    assert isinstance(main.body, SeqExpr)
    assert isinstance(main.body.body, Tuple)
    kept = Tuple(tuple(main.body.body.fields[place] for place in places))
    body = SeqExpr(main.body.blocks, kept)
    changed = replace(main, body=body, ret_struct_info=kept.struct_info)
    functions = {**module.functions, "main": changed}
    return dead_code_elimination()(replace(module, functions=functions))


def _main(module: IRModule) -> Function:
    main = module["main"]
    assert isinstance(main, Function)
    return main


def _called(main: Function) -> tuple[str, ...]:
    """What `main` calls, in order: fused functions, and operators that stand alone."""
    assert isinstance(main.body, SeqExpr)
    values = (binding.value for binding in bindings_of(main.body))
    return tuple(str(v.op) for v in values if isinstance(v, Call))
