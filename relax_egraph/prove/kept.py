"""Proofs that are kept in the cache: one that depends on nothing that changed is read from there.

A verdict depends on the rule, on the rules that deduce its premises and what these are stated to
mean, on the definitions of operators, on the prover, and on z3.  Beside functions and operators of
the user, whose Python code may change, nothing is kept.
"""

import json
import zlib
from collections.abc import Sequence, Set
from functools import cache

from relax_egraph.base.sources import code_in
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import written
from relax_egraph.egraph.rulebook.rule import Rule, Statement
from relax_egraph.egraph.rulebook.scope import declarations_in
from relax_egraph.lower.jit.object_cache import default_cache, digest
from relax_egraph.prove.certificate import Certificate, certificate_of, certified, data_of
from relax_egraph.prove.unfolding import KNOWN, STEERING
from relax_egraph.rules import FACTS
from relax_egraph.verify.instances.makers import makers_of

_FOLDERS = ("egraph", "ir", "lower/legalize", "prove", "tir", "verify")
"""The folders of sources that proofs depend on."""

LIBRARIES = ("z3-solver", "sympy", "numpy")


def certificate(rule: Rule, book: RuleBook) -> Certificate:
    """The certificate of a rule: from the cache, or else of a proof, which is kept."""
    stored, prover = default_cache(), prover_version()
    if stored.folder is None or prover is None or is_foreign(book):
        return certified(rule, book)
    key = digest("proof", prover, stated(rule, book))
    if (entry := stored.get(key)) is not None:
        try:
            return certificate_of(json.loads(zlib.decompress(entry)), rule)
        except (KeyError, TypeError, ValueError, zlib.error):
            pass  # the entry is of no such certificate
    made = certified(rule, book)
    stored.put(key, zlib.compress(json.dumps(data_of(made)).encode()))
    stored.trim()
    return made


def is_foreign(book: RuleBook) -> bool:
    """Whether `book` has functions or operators of the user, whose Python code may change."""
    return bool(book.operators.own) or any(source.functions for source in book.user)


def stated(rule: Rule, book: RuleBook) -> str:
    """A digest of all that rules and declarations state on which a verdict depends."""
    some, heads = rests_on(rule, book)
    vocabulary = [str(book.declarations[head]) for head in sorted(heads & book.declarations.keys())]
    statements = (e for e in book.reading.entries if isinstance(e, Statement))
    of_rules = heads - (KNOWN | STEERING)
    tables = [
        s.text for s in statements if any(d.name in of_rules for d in declarations_in(s.form))
    ]
    meanings = [book.meanings[head] for head in sorted(heads & book.meanings.keys())]
    if any(meaning.constructors for meaning in meanings):  # no rule may equate two of their sort
        some = book.rules
    texts = (f"{r.name} {r.float_class} {written(r.form)}" for r in (rule, *some))
    return digest(*vocabulary, *tables, *(meaning.text for meaning in meanings), *texts)


def rests_on(rule: Rule, book: RuleBook) -> tuple[Sequence[Rule], Set[str]]:
    """`rule` and all rules that add rows that are read, transitively, and the names of what is.

    What the prover knows by itself does not rest on the book's rules for it.
    """
    makers = makers_of(book)
    rules = {rule.name: rule}
    names = dict.fromkeys(name for d in rule.directions for name in d.reads)
    todo = [*names]
    for name in todo:
        meaning = book.meanings.get(name)
        more = [] if meaning is None else [*meaning.reads]
        for maker in makers.adding(name):
            of_book = maker.rule.ruleset in FACTS
            if maker.rule.name not in rules and not (of_book and name in KNOWN | STEERING):
                rules[maker.rule.name] = maker.rule
                more += [read for d in maker.rule.directions for read in d.reads]
        todo += [name for name in dict.fromkeys(more) if name not in names]
        names |= dict.fromkeys(more)
    return [*rules.values()], names.keys()


@cache
def prover_version() -> str | None:
    """A name for the sources that prove; ``None`` where they are no files, or being edited."""
    code = code_in(_FOLDERS, LIBRARIES)
    return None if code is None else digest(*code)
