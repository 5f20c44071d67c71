"""Certificates of proofs: what a verdict rests on, as data that another solver can check."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove.prove import prove
from relax_egraph.prove.questions import Instance, recording
from relax_egraph.prove.refutation import refuted
from relax_egraph.prove.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Certificate:
    """A verdict on a rule; of one that is proven, its general instances and its `questions`.

    Each question is SMT-LIB text, of conditions that cannot hold together.
    """

    verdict: Verdict
    instances: tuple[Instance, ...] = ()
    questions: tuple[str, ...] = ()


def certified(rule: Rule, book: RuleBook) -> Certificate:
    """The proof of a rule, or the counterexample that numpy computes."""
    with recording() as record:
        verdict = prove(rule, book)
    if verdict.status != "proven":
        return Certificate(refuted(verdict, book) or verdict)
    return Certificate(verdict, (*record.instances,), (*record.questions,))


def data_of(certificate: Certificate) -> dict[str, Any]:
    """A certificate as plain data for JSON, without the rule."""
    verdict = {f.name: getattr(certificate.verdict, f.name) for f in fields(Verdict)}
    del verdict["rule"]
    return {
        "verdict": verdict,
        "instances": [asdict(instance) for instance in certificate.instances],
        "questions": [*certificate.questions],
    }


def certificate_of(data: Mapping[str, Any], rule: Rule) -> Certificate:
    """The certificate that `data_of` wrote of `rule`."""
    verdict = {**data["verdict"]}
    verdict |= {name: tuple(verdict[name]) for name in ("ranks", "meanings")}
    instances = (
        Instance(i["operands"], tuple(i["assumed"]), tuple(i["bijections"]))
        for i in data["instances"]
    )
    return Certificate(Verdict(rule, **verdict), tuple(instances), tuple(data["questions"]))
