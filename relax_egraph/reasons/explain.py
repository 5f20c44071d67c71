"""An optimized module with its explanation: the kernels that run, and the rules that led to each.

    reasons = explain(module, rules=["my.egg"])
    reasons.module                      # the result of `optimize`
    reasons.chains                      # for each kernel, the rules that led to it
    Path("why.html").write_text(reasons.page())

`explain` takes as long as `optimize`; proofs, gains and prices are computed on first use.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any

from rich.console import Group

from relax_egraph.base import notebook
from relax_egraph.base.parameters import FLAG
from relax_egraph.egraph.engine import RuleBook
from relax_egraph.errors import ProofError, SaturationError
from relax_egraph.extract import REFERENCE_PROFILE
from relax_egraph.ir import assumptions
from relax_egraph.ir.called import operators_for
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.operators import Operators
from relax_egraph.ir.tolerance import tolerance_of
from relax_egraph.optimize.explanation import Explanation, RegionReport, plain_text
from relax_egraph.optimize.prepare import book_for, prepare
from relax_egraph.optimize.run import run
from relax_egraph.optimize.session import Session, changed_options, with_options_of
from relax_egraph.proof.chains import chains
from relax_egraph.proof.prove import prove
from relax_egraph.proof.text import trace_data, trace_text
from relax_egraph.proof.trace import Proof, Trace
from relax_egraph.reasons.figures import Known, base, figures_of
from relax_egraph.reasons.gains import Gain, gains
from relax_egraph.reasons.kernels import Running, running_in
from relax_egraph.reasons.prices import seconds_of
from relax_egraph.reasons.progress import Progress
from relax_egraph.reasons.text import text_of
from relax_egraph.rules import read


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reasons(Explanation):
    """The optimized `source` of a `session`, with the reasons for each kernel.

    Beside the fields of `Explanation` there are `running`, `seconds`, `proofs`, `traces`, `chains`,
    `new_nodes` and `gains`, each computed on first use.
    """

    source: IRModule
    session: Session
    operators: Operators

    @cached_property
    def prepared(self) -> IRModule:
        """The module that was planned: `source`, simplified."""
        assumed = assumptions.parse(self.session.assume)
        return prepare(self.source, self.session, assumed).module

    @cached_property
    def book(self) -> RuleBook:
        """The rules of the session."""
        session = self.session
        with self.operators.in_force():
            return book_for(self.prepared, session.read_rules(), session.without, session.fast_math)

    @cached_property
    def running(self) -> tuple[Running, ...]:
        """The calls of the result, each with the variables of the source that it replaces."""
        return running_in(self)

    @cached_property
    def seconds(self) -> tuple[float | None, ...]:
        """The estimated seconds of each of `running`; ``None`` if there are variants."""
        if self.session.variants:
            return (None,) * len(self.running)
        profile = self.session.profile or REFERENCE_PROFILE
        return seconds_of(self.running, profile, self.session.prices)

    @cached_property
    def proofs(self) -> tuple[Proof, ...]:
        """For each of `regions`, the proof of every output; raises `ProofError`."""
        return tuple(map(self._proof, self.regions))

    def _proof(self, region: RegionReport) -> Proof:
        placed = next((p for p in self.placed if _same(p.region, region)), None)
        origin = list(placed.origin.items()) if placed else []
        names = {c: var.name for var, c in reversed(origin)}
        outputs = [names.get(root, f"output {k}") for k, root in enumerate(region.source.roots)]
        attrs = self.prepared[region.function].attrs
        return prove(region, outputs, tolerance_of(region.function, attrs))

    @property
    def traces(self) -> tuple[Trace, ...]:
        """For each output, the chain of single rule applications; raises `ProofError`."""
        return tuple(trace for proof in self.proofs for trace in proof.traces)

    def proof_text(self) -> str:
        """All traces, step by step."""
        return "\n".join(map(trace_text, self.traces))

    def proof_data(self) -> list[dict[str, Any]]:
        """All traces as plain data."""
        return list(map(trace_data, self.traces))

    @cached_property
    def chains(self) -> tuple[tuple[str, ...], ...]:
        """For each of `running`, the rules that led to it, in order; raises `ProofError`."""
        by_region = [
            (region, chains(proof.traces, region.view.roots, region.extraction.program))
            for region, proof in zip(self.regions, self.proofs, strict=True)
        ]

        def of(one: Running) -> tuple[str, ...]:
            program = one.placed.region.extraction.program
            place = next(k for k, choice in enumerate(program) if choice is one.choice)
            known = next(rules for region, rules in by_region if _same(region, one.placed.region))
            return known.get(place, ())

        return tuple(map(of, self.running))

    @cached_property
    def new_nodes(self) -> Mapping[str, int]:
        """By rule, the number of nodes that it added to the e-graphs; raises `ProofError`."""
        nodes = Counter[str]()
        pairs = zip(self.regions, self.proofs, strict=True)
        for region, proof in {id(r.view): (r, p) for r, p in pairs}.values():
            for firing in proof.firings:
                nodes[base(firing.rule)] += firing.nodes * region.uses
        return dict(nodes)

    @cached_property
    def gains(self) -> tuple[Gain, ...]:
        """The gain of each rule in the proof of the result, the largest share first.

        All other rules gain nothing: the result is reached without them.  The module is optimized
        once for each rule.  Raises `ProofError`.
        """
        return self.compute_gains()

    def compute_gains(self, progress: Progress | None = None) -> tuple[Gain, ...]:
        """`gains`; unless they are known already, `progress` is that of ``rx.gains``."""
        steps = (step for trace in self.traces for step in trace.steps)
        used = {base(rule) for step in steps for rule in step.rules}
        if "gains" not in self.__dict__:
            names = used.intersection(rule.name for rule in self.book.rewrites)
            rules, options = self.session.rules, changed_options(self.session)
            with self.operators.in_force():
                self.__dict__["gains"] = (
                    gains(self.source, rules, only=names, progress=progress, **options)
                    if names
                    else ()
                )
        return self.__dict__["gains"]

    def figures(self, *, quick: bool = False) -> dict[str, Any]:
        """Everything as plain data, costs in seconds; `quick` leaves out what takes long.

        Figures that failed or were left out are ``None``, and "missing" says why.
        """
        missing: dict[str, str] = {}

        def known_or_none(name: str) -> Any:
            if quick and name not in self.__dict__:
                missing[name] = _LEFT_OUT[name]
                return None
            try:
                return getattr(self, name)
            except (ProofError, SaturationError) as problem:
                missing[name] = f"The {name} are not there: {problem}"
                return None

        proofs, worth = known_or_none("proofs"), known_or_none("gains")
        known = Known(
            source=self.source,
            explanation=self,
            book=self.book,
            running=self.running,
            seconds=self.seconds,
            chains=None if proofs is None else self.chains,
            new_nodes=None if proofs is None else self.new_nodes,
            gains=worth,
            traces=None if proofs is None else self.traces,
            missing=missing,
        )
        return figures_of(known)

    def page(self, title: str = "", *, quick: bool = False) -> str:
        """Everything as a page of HTML in one file."""
        from relax_egraph.reasons.page.render import page_of  # jinja2 takes a while

        return page_of(self.figures(quick=quick), title)

    def __str__(self) -> str:
        return plain_text(self.__rich__())

    def __rich__(self) -> Group:
        return text_of(self.figures(quick=True))

    def _repr_html_(self) -> str:
        try:
            from relax_egraph.reasons.page.render import framed
        except ImportError:  # the page needs jinja2
            return notebook.table(self.table())
        return framed(self.page(quick=True))


_LEFT_OUT = {
    "proofs": "The rules that led to each kernel were left out; `chains` proves them.",
    "gains": "The gain of each rule was left out; `gains` optimizes once without each rule.",
}
"""The messages in place of figures that `quick` leaves out."""


def _same(a: RegionReport, b: RegionReport) -> bool:
    """Whether both are reports of one region; their number of uses may differ."""
    return a.view is b.view and a.extraction is b.extraction


@dataclass(frozen=True, kw_only=True)
class Explaining(Session):
    """The options of `explain`."""

    proof: Annotated[bool, FLAG] = False


@with_options_of(Explaining)
def explain(module: IRModule, session: Explaining) -> Reasons:
    """Optimize like `optimize` with the same keywords, and return the module with the reasons.

    With `proof`, the chain of single rule applications from `module` to each output is computed at
    once; without it, on first use of `traces` or `chains`.

    Raises the errors of `optimize`, and `ProofError` if the chain does not reach the result.
    """
    if session.rules:
        session = replace(session, rules=(read(session.rules),))
    explanation = run(module, session)
    known = {field.name: getattr(explanation, field.name) for field in fields(explanation)}
    operators = operators_for(module)
    reasons = Reasons(**known, source=module, session=session, operators=operators)
    if session.proof:
        _ = reasons.proofs
    return reasons
