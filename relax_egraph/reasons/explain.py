"""Why an optimized module is what it is: what runs, what it was, and which rules made it so.

    reasons = explain(module, rules=["my.egg"])
    reasons.module                      # what `optimize` returns
    reasons.chains                      # for each kernel, the rules that made it
    Path("why.html").write_text(reasons.page())

Optimizing itself takes no longer; the rest is computed when it is first asked for.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any

from rich.console import Group

from relax_egraph.base.parameters import FLAG
from relax_egraph.egraph.engine import RuleBook
from relax_egraph.errors import ProofError, SaturationError
from relax_egraph.extract import REFERENCE_PROFILE
from relax_egraph.ir import assumptions
from relax_egraph.ir.module import IRModule
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
from relax_egraph.reasons.restricted import Told, untold
from relax_egraph.reasons.text import text_of
from relax_egraph.rules import read


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reasons(Explanation):
    """The optimized `source` of a `session`, with the reasons for each kernel of it.

    Beside the fields of `Explanation` there are `running`, `seconds`, `proofs`, `traces`, `chains`,
    `made` and `gains`, each computed on first use.
    """

    source: IRModule
    session: Session

    @cached_property
    def prepared(self) -> IRModule:
        """The module that was planned: `source`, simplified."""
        assumed = assumptions.parse(self.session.assume)
        return prepare(self.source, self.session.tolerance, assumed)

    @cached_property
    def book(self) -> RuleBook:
        """The rules of the session."""
        session = self.session
        return book_for(self.prepared, read(session.rules), session.without, session.fast_math)

    @cached_property
    def running(self) -> tuple[Running, ...]:
        """What runs in the result, each with the variables of the source that it stands for."""
        return running_in(self)

    @cached_property
    def seconds(self) -> tuple[float | None, ...]:
        """What each of `running` costs once; with variants, which are priced apart, nothing."""
        if self.session.variants:
            return (None,) * len(self.running)
        profile = self.session.profile or REFERENCE_PROFILE
        return seconds_of(self.running, profile, self.session.prices)

    @cached_property
    def proofs(self) -> tuple[Proof, ...]:
        """For each of `regions`, how every output of it was reached; raises `ProofError`."""
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
        """For each of `running`, the rules that made it, in order; raises `ProofError`."""
        found = [
            (region, chains(proof.traces, region.view.roots, region.extraction.program))
            for region, proof in zip(self.regions, self.proofs, strict=True)
        ]

        def of(one: Running) -> tuple[str, ...]:
            program = one.placed.region.extraction.program
            place = next(k for k, choice in enumerate(program) if choice is one.choice)
            known = next(rules for region, rules in found if _same(region, one.placed.region))
            return known.get(place, ())

        return tuple(map(of, self.running))

    @cached_property
    def made(self) -> Mapping[str, int]:
        """By rule, the nodes that it made in the e-graphs; raises `ProofError`."""
        found = Counter[str]()
        pairs = zip(self.regions, self.proofs, strict=True)
        for region, proof in {id(r.view): (r, p) for r, p in pairs}.values():
            for firing in proof.firings:
                found[base(firing.rule)] += firing.nodes * region.uses
        return dict(found)

    @cached_property
    def gains(self) -> tuple[Gain, ...]:
        """What each rule that the result was made by is worth, the largest share first.

        All others are worth nothing: without them the result is found as well.  It is optimized
        once for each.  Raises `ProofError`.
        """
        return self.gains_told(untold)

    def gains_told(self, told: Told) -> tuple[Gain, ...]:
        """`gains`; where they are not known yet, `told` hears of each try."""
        steps = (step for trace in self.traces for step in trace.steps)
        used = {base(rule) for step in steps for rule in step.rules}
        if "gains" not in self.__dict__:
            names = used.intersection(rule.name for rule in self.book.rewrites)
            rules, options = self.session.rules, changed_options(self.session)
            self.__dict__["gains"] = (
                gains(self.source, rules, only=names, told=told, **options) if names else ()
            )
        return self.__dict__["gains"]

    def figures(self, *, quick: bool = False) -> dict[str, Any]:
        """All of it as plain data, costs in seconds; `quick` asks for nothing that takes long.

        What could not be found, or was not asked for, is ``None``, and "missing" says why.
        """
        missing: dict[str, str] = {}

        def asked(name: str) -> Any:
            if quick and name not in self.__dict__:
                missing[name] = _UNASKED[name]
                return None
            try:
                return getattr(self, name)
            except (ProofError, SaturationError) as problem:
                missing[name] = f"The {name} are not there: {problem}"
                return None

        proofs, worth = asked("proofs"), asked("gains")
        known = Known(
            source=self.source,
            explanation=self,
            book=self.book,
            running=self.running,
            seconds=self.seconds,
            chains=None if proofs is None else self.chains,
            made=None if proofs is None else self.made,
            gains=worth,
            traces=None if proofs is None else self.traces,
            missing=missing,
        )
        return figures_of(known)

    def page(self, title: str = "", *, quick: bool = False) -> str:
        """All of it as a page of HTML, complete in itself."""
        from relax_egraph.reasons.page.render import page_of  # jinja2 takes a while

        return page_of(self.figures(quick=quick), title)

    def __str__(self) -> str:
        return plain_text(self.__rich__())

    def __rich__(self) -> Group:
        return text_of(self.figures(quick=True))

    def _repr_html_(self) -> str | None:
        try:
            from relax_egraph.reasons.page.render import framed
        except ImportError:  # a notebook then shows it as text
            return None
        return framed(self.page(quick=True))


_UNASKED = {
    "proofs": "Which rules made each kernel was not asked for; `chains` finds it.",
    "gains": "What each rule gains was not asked for; `gains` optimizes once without each.",
}
"""What is said in place of figures that nobody asked for."""


def _same(a: RegionReport, b: RegionReport) -> bool:
    """Whether they are one region; how often it is there may be another count."""
    return a.view is b.view and a.extraction is b.extraction


@dataclass(frozen=True, kw_only=True)
class Explaining(Session):
    """The options of `explain`."""

    proof: Annotated[bool, FLAG] = False


@with_options_of(Explaining)
def explain(module: IRModule, session: Explaining) -> Reasons:
    """Optimize as `optimize` does with the same keywords, and return the module with the reasons.

    With `proof`, the chain of single rule applications from `module` to the result is found at
    once, for each output; else when `traces` or `chains` are asked for.

    Raises what `optimize` raises, and `ProofError` if the result is not reached.
    """
    if session.rules:
        session = replace(session, rules=(read(session.rules),))
    explanation = run(module, session)
    known = {field.name: getattr(explanation, field.name) for field in fields(explanation)}
    reasons = Reasons(**known, source=module, session=session)
    if session.proof:
        _ = reasons.proofs
    return reasons
