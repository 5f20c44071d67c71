"""Proofs of many rules, each a task: in this process or in those of an executor, with a journal."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

from relax_egraph.base.journal import Journal
from relax_egraph.base.run_input import VERSIONS, RunInput
from relax_egraph.base.sources import digest_of_code
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.reading import Reading, adopt
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove.certificate import Certificate, certificate_of, data_of
from relax_egraph.prove.kept import LIBRARIES, certificate, is_foreign, stated
from relax_egraph.prove.verdict import Verdict
from relax_egraph.workers.executor import ExecutorOf
from relax_egraph.workers.process import Death, Limits

_LIMITS = Limits(3600.0, 8 << 30)
"""The most time and memory of a proof in another process; its steps are bounded in any case."""


def certificates_of(
    book: RuleBook, some: Sequence[Rule], executor: ExecutorOf | None, journal: Journal | None
) -> Iterator[Certificate]:
    """The certificates of `some` rules of `book`, in the order of completion.

    Without an `executor` they are made in this process.  Those in the `journal` are taken from
    there.  Raises ``ValueError`` for a journal of rules with Python functions or operators, and for
    one that has proofs, but of none of these rules as they are stated here.
    """
    if journal is not None and is_foreign(book):
        raise ValueError(
            "a journal keeps no proofs beside Python functions or operators of your own, whose "
            "code may change; prove the rules without it"
        )
    if journal is not None:
        parts = {VERSIONS: _versions()}
        RunInput("proof", parts, "rules", [stated(r, book) for r in some]).require_in(journal)
    known = journal or Journal()
    if executor is None:
        for rule in some:
            yield _known(known, book, rule, certificate)
        return
    with executor(partial(_begin, book, book.reading)) as pool:

        def made_there(rule: Rule, _: RuleBook) -> Certificate | Death:
            data = pool.run(partial(_data, rule.name), _LIMITS)
            return data if isinstance(data, Death) else certificate_of(data, rule)

        yield from pool.map(lambda rule: _known(known, book, rule, made_there), some)


def _known(
    journal: Journal,
    book: RuleBook,
    rule: Rule,
    prove: Callable[[Rule, RuleBook], Certificate | Death],
) -> Certificate:
    """The certificate of `rule` in the journal, or else the one that `prove` makes, which is kept.

    A proof that does not end is not kept: another run may have more time or memory.
    """
    question = ["proof", *_versions(), stated(rule, book)]
    if (data := journal.get(question)) is not None:
        return certificate_of(data, rule)
    made = prove(rule, book)
    if isinstance(made, Death):
        return Certificate(Verdict(rule, "not proven", f"its process {made}"))
    journal.put(question, data_of(made))
    return made


def _versions() -> list[str]:
    return [digest_of_code(), *(f"{name} {version(name)}" for name in LIBRARIES)]


_books = list[RuleBook]()


def _begin(book: RuleBook, reading: Reading) -> None:
    """Initialize a process for proofs of rules of `book`."""
    adopt(reading)
    _books[:] = [book]


def _data(name: str) -> dict[str, Any]:
    book = _books[0]
    rule = next(rule for rule in book.rules if rule.name == name)
    return data_of(certificate(rule, book))
