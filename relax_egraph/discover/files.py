"""The files of a run: rules for review, and a file test in which each of them fires."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from relax_egraph.base.files import replacing
from relax_egraph.discover.derivation import Loaded
from relax_egraph.discover.run import Discovery, Found
from relax_egraph.discover.texts import law

_HEAD = """\
; Rules that were found, for review: those that save most first.
;
; Each was checked on random instances; what is proven of it is said, too.  Names are made of
; operators: a rule that is taken into a family gets a name that says what happens.
"""

_SCHEDULE = "(run-schedule (repeat 3 (saturate (seq (run facts) (run dim))) (run {ruleset})))"


def write_rules(discovery: Discovery, file: Path) -> Path:
    """Write the rules to `file`, and their cases beside it; returns the file of the cases."""
    cases = file.with_name(f"{file.stem}.cases.egg")
    for path, text in ((file, rules_text(discovery)), (cases, cases_text(discovery.found, file))):
        with replacing(path) as aside:
            aside.write(text.encode("utf-8"))
    return cases


def rules_text(discovery: Discovery) -> str:
    """The text of a rule file."""
    notes = [f"; The search ended early: {discovery.stopped}.\n"] if discovery.stopped else []
    return "\n".join(["".join([_HEAD, *notes]), *map(_rule, discovery.found)])


def _rule(found: Found) -> str:
    status = found.status
    words, _, _ = status.words.partition(" of ")  # dtypes and ranks follow
    lines = [f"; {law(found.candidate)}", f"; check: {words}", f"; proof: {status.proof}"]
    lines += [f"; gain: {found.candidate.gain * 1e6:.3g} µs in 1024 x 1024 elements"]
    lines += [f"; float: {status.float_class}", found.text, ""]
    return "\n".join(lines)


def cases_text(found: Sequence[Found], file: Path) -> str:
    """File tests for the rules of `file`, one for each rule."""
    cases = ["\n".join(_case(one, file.stem)) for one in found]
    return f"; RULES: {file.name}\n" + "\n; -----\n".join(cases)


def _case(found: Found, ruleset: str) -> Iterator[str]:
    one = found.candidate.where(found.status.guard)
    load = Loaded(one.worlds[0], prefix="$t")
    left = load.term(one.left)
    yield f"; {law(found.candidate)}"
    yield f"; FIRES: {found.name}"
    yield from load.lines
    count = len(load.lines)
    yield _SCHEDULE.format(ruleset=ruleset)
    right = load.term(one.right)
    yield from load.lines[count:]
    yield f"(check (= {left} {right}))"
    yield ""
