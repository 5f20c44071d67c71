"""Classes of terms with equal values, and the equations between their terms."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.discover.evaluation import Fingerprint, Values, fingerprint_of
from relax_egraph.discover.terms import Term
from relax_egraph.discover.worlds import WORLDS

Domain: TypeAlias = tuple[int, ...]
"""The worlds in which a term has a value, by position."""

_GENERIC = [k for k, world in enumerate(WORLDS) if world.is_generic]

_WORLDS = 2
"""The fewest worlds in which a term has elements."""


@dataclass(slots=True)
class Classes:
    """Terms by value; the first term of a class is its representative.

    A term equals one with a larger domain if the values agree where it is defined: a reshape of a
    reshape is refused where either shape is, the last reshape only where its own shape is.
    """

    values: dict[Term, Values] = field(default_factory=dict[Term, Values])
    _first: dict[Domain, dict[Fingerprint, Term]] = field(
        default_factory=dict[Domain, dict[Fingerprint, Term]]
    )
    _fingerprints: dict[Term, Fingerprint] = field(default_factory=dict[Term, Fingerprint])

    def add(self, term: Term, values: Values) -> Term | None:
        """Add `term`; returns the representative of its class if that is another term.

        Terms that have elements in few worlds, or in none with general extents, are left out, and
        are their own representatives: they are well-typed for special extents only.
        """
        full = [v is not None and v.elements.size > 0 for v in values]
        if sum(full) < _WORLDS or not any(full[k] for k in _GENERIC):
            return term
        fingerprint = fingerprint_of(values)
        domain = _domain(fingerprint)
        if domain not in self._first:
            self._first[domain] = dict(self._within(domain))
        known = self._first[domain].get(_restricted(fingerprint, domain))
        if known is not None:
            return known
        self.values[term] = values
        self._fingerprints[term] = fingerprint
        for other, terms in self._first.items():
            if set(other) <= set(domain):
                terms.setdefault(_restricted(fingerprint, other), term)
        return None

    def _within(self, domain: Domain) -> Iterator[tuple[Fingerprint, Term]]:
        """The representatives that are defined in all of `domain`; the first of equal ones last."""
        for term, fingerprint in reversed(self._fingerprints.items()):
            if set(domain) <= set(_domain(fingerprint)):
                yield _restricted(fingerprint, domain), term


def _domain(fingerprint: Fingerprint) -> Domain:
    return tuple(k for k, digest in enumerate(fingerprint) if digest is not None)


def _restricted(fingerprint: Fingerprint, domain: Domain) -> Fingerprint:
    return tuple(fingerprint[k] for k in domain)
