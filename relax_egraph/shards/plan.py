"""The best plan of a function for several devices: equations say how, prices say which."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from relax_egraph.base.parameters import (
    NAME,
    collection,
    instance,
    integer,
    mapping,
    optional,
    takes,
)
from relax_egraph.egraph.encoding.encode import Encoded, encode
from relax_egraph.egraph.engine import Budget, Phase, Report, RuleBook, StopReason, saturate
from relax_egraph.egraph.readback.decode import decode
from relax_egraph.egraph.readback.fused import FusedFunctions
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.errors import ExtractionError
from relax_egraph.extract import REFERENCE_PROFILE, Hints, Profile
from relax_egraph.extract.certificate import certify
from relax_egraph.extract.effort import Effort
from relax_egraph.extract.problem import OPTIMAL, Selection, computable
from relax_egraph.extract.select import select
from relax_egraph.ir import assumptions
from relax_egraph.ir.assumptions import assuming
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import Call, Constant, Expr, Var, VarBinding
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.optimize.session import OPTIONS, Session, check_symbols
from relax_egraph.shards.candidates import (
    ANY,
    PARTS,
    WHOLE,
    Candidates,
    Made,
    Place,
    place,
    problem_of,
    program_of,
)
from relax_egraph.shards.link import Link
from relax_egraph.shards.local import COLLECTIVES
from relax_egraph.shards.prices import DevicePrices
from relax_egraph.shards.report import Sent, collectives_of, cuts_of_parameters
from relax_egraph.shards.source import Source, axes_in_parts, cuts_of, parameters, source_of

FAMILY = "dist"
"""The family of rules about values over several devices."""

_BUDGET = Budget(nodes=200_000, seconds=120.0, iterations=200)
_PHASE = Phase(FAMILY, (FAMILY,), match_limit=1_000_000)
FORMS = ("canon", "constants", "idioms", "softmax", "statistics", "norms")
"""The families that recognise what exporters write out: a norm is cut, or whole, as one."""

_FIRST = Phase("forms", FORMS)
_EFFORT = Effort(20.0, 0.0)

_OPTIONS = {
    "module": MODULE,
    "parts": integer("a number of devices, 2 or more", 2),
    "link": instance("a Link", Link),
    "function": NAME,
    "weights": collection('a sequence of names, such as ["up"]', NAME),
    **{name: OPTIONS[name] for name in ("assume", "hints", "profile")},
}


@dataclass(frozen=True, slots=True)
class ShardedPlan:
    """A function for `parts` devices, as one program of tensors with axes of parts.

    `module` has the function under its name.  Its results are those of the source, on every device,
    but for those `in_parts`, which has their axes by number.  `cut_values` are the variables with
    an axis of parts.  Of `weights` devices have parts, cut before; of a cache it is the part along
    the axis in `caches`.

    `seconds` are those of each device by the price model, before fusion;
    no plan that the rules find costs less than `bound`.  `status` is ``optimal``, or says why that
    is not proven.  `alone` is what the source costs on one device, by the same prices.
    """

    module: IRModule
    function: str
    parts: int
    link: Link
    seconds: float
    bound: float
    status: str
    alone: float
    weights: frozenset[str]
    caches: Mapping[str, int | None]
    in_parts: Mapping[int, int]
    cut_values: frozenset[str]
    saturation: Report

    @property
    def speedup(self) -> float:
        """How many times faster than one device: simulated by the price model, not measured."""
        return self.alone / self.seconds

    @property
    def cuts(self) -> Mapping[str, tuple[int, ...]]:
        """The axes along which parameters are cut, by name."""
        return cuts_of_parameters(self.module, self.function)

    @property
    def collectives(self) -> tuple[Sent, ...]:
        """What is sent, in order."""
        return collectives_of(self.module, self.function)

    def __str__(self) -> str:
        along = (f"{name} along axis {', '.join(map(str, a))}" for name, a in self.cuts.items())
        return "\n".join(
            (
                f"{self.function} on {self.parts} devices, {self.status}: "
                f"{1e6 * self.seconds:.0f} µs, on one {1e6 * self.alone:.0f} µs: "
                f"{self.speedup:.2f} times as fast (simulated)",
                f"  in parts: {'; '.join(along) or 'nothing'}",
                *(f"  {sent}" for sent in self.collectives),
            )
        )


@takes(
    **_OPTIONS,
    caches=optional(
        mapping("numbers of results, such as {'keys': 1}", integer("a number, 0 or more", 0))
    ),
    without=OPTIONS["without"],
)
def sharded(
    module: IRModule,
    *,
    parts: int,
    link: Link,
    function: str = "main",
    weights: Sequence[str] = (),
    caches: Mapping[str, int] | None = None,
    assume: Sequence[str] = (),
    hints: Hints | None = None,
    profile: Profile | None = None,
    without: Sequence[str] = (),
) -> ShardedPlan:
    """Find the cheapest plan of `function` for `parts` equal devices, joined by `link`.

    Its constants, and the parameters that `weights` names, are weights: each device keeps a part of
    a matrix, along any axis, and has to gather it to have it whole; vectors it may have whole.
    Other parameters are given to every device, and the result is on every device.  `caches` are
    parameters that a result replaces in the next call: ``{"keys": 1}`` says that result 1 becomes
    ``keys``.  They stay in parts, along the axis that is cheapest, if one is proven to have equal
    parts.

    Norms and activations are recognised first; then the rules of the family ``dist`` apply, but for
    those that `without` names.  `assume`, `hints` and `profile` mean what they mean to `optimize`.

    Raises `IllFormed` if the function is no single dataflow block, ``ValueError`` for names that
    it does not have.
    """
    session = Session(assume=assume, hints=hints, profile=profile)
    check_symbols(module, session)
    with assuming(assumptions.parse(assume)):
        source = source_of(module, function, session)
        prices = DevicePrices(profile or REFERENCE_PROFILE, hints, parts, link)
        question = _Question(source, parts, without)
        anyhow = {p.name: ANY for p in parameters(source, tuple(weights))}
        found = list(question.plans(anyhow, caches or {}, prices))
        best = min(found, key=lambda plan: plan.selection.cost)
        unproven = [f.selection.status for f in found if f.selection.status != OPTIMAL]
        if question.report.stop_reason != StopReason.SATURATED.value:
            unproven.append(f"saturation: {question.report.stop_reason}")
        planned, cut_values = question.module_of(best)
        cut = {name: axis for name, axis in best.axes.items() if axis is not None}
        return ShardedPlan(
            module=planned,
            cut_values=cut_values,
            function=function,
            parts=parts,
            link=link,
            seconds=best.selection.cost,
            bound=min(plan.selection.bound for plan in found),
            status="; ".join(dict.fromkeys(unproven)) or OPTIMAL,
            alone=question.alone(prices),
            weights=frozenset(weights),
            caches=best.axes,
            in_parts={(caches or {})[name]: axis for name, axis in cut.items()},
            saturation=question.report,
        )


@takes(**_OPTIONS)
def stated(
    module: IRModule,
    *,
    parts: int,
    link: Link,
    function: str = "main",
    weights: Sequence[str] = (),
    assume: Sequence[str] = (),
    hints: Hints | None = None,
    profile: Profile | None = None,
) -> float:
    """The seconds of a plan that is written by hand, on each device, by the prices of `sharded`.

    Operators of ``R.dist`` say what is cut and where is sent; a function without them is what every
    device computes alone.  Parts of constants, and of the parameters that are `weights`, are cut
    before.  Raises `ExtractionError` for a plan in which an operator is not known to do the same to
    each part.
    """
    with assuming(assumptions.parse(assume)):
        source = source_of(module, function, Session(assume=assume, hints=hints, profile=profile))
        prices = DevicePrices(profile or REFERENCE_PROFILE, hints, parts, link)
        encoded = encode(source.bindings, source.results)
        view = encoded.view
        anyhow = {p.name: ANY for p in parameters(source, tuple(weights))}
        ways = [(place(root, WHOLE), place(root, PARTS)) for root in view.roots]
        made = Candidates(view, _keys(view, anyhow), prices).among([w for w, _ in ways])
        derivable = computable(problem_of(made, ()))
        roots = [whole if whole in derivable else part for whole, part in ways]
        for root in roots:
            if root not in derivable:
                raise ExtractionError("an operator is not known to do the same to each part")
        return select(problem_of(made, roots), effort=_EFFORT).cost


def _keys(view: View, names: Mapping[str, int]) -> dict[int, int]:
    """The leaves of a view that are parameters of these names."""
    return {
        key: names[leaf.name]
        for key, leaf in enumerate(view.leaves)
        if isinstance(leaf, Var) and leaf.name in names
    }


@dataclass(frozen=True, slots=True)
class _Plan:
    """A selection, with the axes of caches."""

    axes: Mapping[str, int | None]
    roots: tuple[Place, ...]
    made: tuple[Made, ...]
    selection: Selection


class _Question:
    """The saturated e-graph of a source, with all of its values cut along all axes."""

    def __init__(self, source: Source, parts: int, without: Sequence[str]) -> None:
        self._source, self._parts = source, parts
        cuts = [*cuts_of(source, parts)]
        outputs = [*source.results, *(cut.var for cut in cuts)]
        self._encoded: Encoded = encode([*source.bindings, *cuts], outputs)
        book = RuleBook.default(families=(*FORMS, FAMILY), without=without)
        saturated = saturate(self._encoded.view, book, _BUDGET, (_FIRST, _PHASE), isolate=False)
        self.report = saturated.report
        self._view, self._became = saturated.view, saturated.became
        leaves = enumerate(self._view.leaves)
        self._constants = {key: ANY for key, leaf in leaves if isinstance(leaf, Constant)}
        self._cuts = {_operand(cut): self._class_of(cut.var) for cut in cuts}

    def plans(
        self, weights: Mapping[str, int], caches: Mapping[str, int], prices: DevicePrices
    ) -> Iterator[_Plan]:
        """The best plan for each choice of axes of caches."""
        names = [p.name for p in parameters(self._source, caches)]
        every = [self._axes_of(name, caches[name]) for name in names]
        for axes in product(*every):
            chosen: dict[str, int | None] = dict(zip(names, axes, strict=True))
            in_parts = {caches[n]: axis for n, axis in chosen.items() if axis is not None}
            kept = {n: axis for n, axis in chosen.items() if axis is not None}
            roots = tuple(self._root(k, in_parts.get(k)) for k in range(len(self._source.results)))
            keys = self._constants | _keys(self._view, {**weights, **kept})
            made = Candidates(self._view, keys, prices).among(roots)
            problem = problem_of(made, roots)
            if not computable(problem).issuperset(roots):
                continue
            selection = select(problem, effort=_EFFORT)
            certify(problem, selection)
            yield _Plan(chosen, roots, made, selection)

    def alone(self, prices: DevicePrices) -> float:
        """The seconds of one device that has everything."""
        roots = [self._root(k, None) for k in range(len(self._source.results))]
        made = Candidates(self._view, {}, prices).among(roots)
        made = tuple(m for m in made if m.way == WHOLE and m.node.op not in COLLECTIVES)
        return select(problem_of(made, roots), effort=_EFFORT).cost

    def module_of(self, plan: _Plan) -> tuple[IRModule, frozenset[str]]:
        """The module with the function as `plan` computes it, and the values that are in parts."""
        source = self._source
        view, program = program_of(self._view, plan.made, plan.selection)
        classes = [root // 2 for root in plan.roots]
        infos = [view.classes[c].struct_info for c in classes]
        results = tuple(Var(v.name, i) for v, i in zip(source.results, infos, strict=True))
        named = reversed(list(self._encoded.origin.items()))
        names = {self._became[c]: v.name for v, c in named if c in self._became}
        values: dict[ClassId, Expr] = {}
        bindings = decode(
            replace(view, roots=tuple(classes)),
            program,
            list(zip(results, classes, strict=True)),
            names,
            FusedFunctions(BlockBuilder().add_func),
            taken={p.name for p in source.function.params},
            values=values,
        )
        chosen = (plan.made[number] for number in plan.selection.chosen)
        cut = (values.get(m.made) for m in chosen if m.way == PARTS)
        names_cut = frozenset(v.name for v in cut if isinstance(v, Var))
        return source.function_of(bindings, results), names_cut

    def _axes_of(self, cache: str, result: int) -> list[int | None]:
        """The axes along which a cache can be kept: of the parameter, and of its new value."""
        results = self._source.results
        if result >= len(results):
            raise ValueError(f"caches: {cache} is to be result {result} of {len(results)}")
        (before,) = parameters(self._source, (cache,))
        both = (axes_in_parts(v, self._parts) for v in (before, results[result]))
        first, second = both
        return [a for a in first if a in second] or [None]

    def _root(self, number: int, axis: int | None) -> Place:
        result = self._source.results[number]
        if axis is None:
            return place(self._class_of(result), WHOLE)
        return place(self._cuts[result, axis], PARTS)

    def _class_of(self, var: Var) -> ClassId:
        return self._became[self._encoded.origin[var]]


def _operand(cut: VarBinding) -> tuple[Expr, int]:
    """What is cut, and along which axis."""
    assert isinstance(cut.value, Call)
    axis = cut.value.attrs["axis"]
    assert isinstance(axis, int)
    return cut.value.args[0], axis
