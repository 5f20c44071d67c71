"""Explanations of a rule that did not match: its deepest partial match, and the failing premise."""

from relax_egraph.reasons.why_not.answer import Miss as Miss
from relax_egraph.reasons.why_not.answer import Near as Near
from relax_egraph.reasons.why_not.answer import WhyNot as WhyNot
from relax_egraph.reasons.why_not.ask import why_not as why_not
