"""The rule book: one ``.egg`` file for each family of rules; and the rule files of users.

The family is the ruleset is the file's name.  ``README.md`` says what makes a rule admissible.

    mine = rx.rules.load("my.egg")          # read and checked once
    rx.optimize(module, rules=[mine])
    rx.rules.check(mine)                    # whether they are right: data that can be printed
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from relax_egraph.base import parameters
from relax_egraph.base.parameters import (
    NAMES,
    SEED,
    collection,
    instance,
    integer,
    optional,
    takes,
)
from relax_egraph.errors import RuleError, Span

FACTS = ("dim", "facts", "ranges", "magnitudes", "ordinary")
"""What is deduced of values, and equates none; always part of the book."""

FAMILIES = (
    *("canon", "constants", "logic", "bounds", "movement", "shape", "slices"),
    *("layout", "along", "windows"),
    *("algebra", "reductions", "fma", "linear", "convolution"),
    *("idioms", "softmax", "statistics", "norms", "masks", "attention", "grouping", "rotary"),
    *("unfold", "horizontal", "quantized", "images", "weights", "fusion"),
    "dist",
)
"""The families of rewrites."""

ON_REQUEST = ("dist",)
"""Those that `optimize` leaves out: plans for several devices are made of them (`shards`)."""


def text(family: str) -> str:
    """The text of the file of `family`, one of `FACTS` or `FAMILIES`."""
    return (Path(__file__).parent / f"{family}.egg").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Rules:
    """Rule files of a user, as they were when they were read; each a name and a text.

    The name is the path as it was given, and empty where the text was given itself.
    """

    files: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        names = (name or f"a text of {len(text)} characters" for name, text in self.files)
        return f"<Rules: {', '.join(names) or 'none'}>"


Given: TypeAlias = str | Path | Rules
"""Rules as users give them: a path, a text, or what was loaded before."""

RULE = instance("a path, a text, or what rules.load returned", str, Path, Rules)
RULES = collection('a sequence of rule files, texts or loaded rules, such as ["my.egg"]', RULE)
"""What rules are where a parameter takes several."""

_LONGEST_PATH = 4096

_FUNCTIONS = "relax_egraph.egraph.functions.function"
"""What declares functions; loaded when one is."""

_ENGINE, _CHECKER = "relax_egraph.egraph.rulebook.book", "relax_egraph.verify.user_rules"
_PROVER = "relax_egraph.prove.user_rules"
"""The modules that read, check and prove rules, imported on first use: data imports nothing."""


@takes(given=RULE, without=NAMES)
def load(*given: Given, without: Iterable[str] = ()) -> Rules:
    """Read rule files (or texts) and check them beside the rule book, but for families `without`.

    What is returned can be passed as ``rules`` any number of times, with other files too, and is
    not read again.  Raises `RuleError`, which says every form that is wrong.
    """
    rules, left_out = read(given), tuple(without)
    import_module(_ENGINE).check_rules(rules, left_out)
    return rules


@takes(
    given=RULE,
    only=optional(NAMES),
    trials=integer("a number of trials, 1 or more", 1),
    seed=SEED,
    processes=optional(integer("a number of processes, 1 or more", 1)),
    progress=optional(parameters.function("a function of a verdict")),
)
def check(
    *given: Given,
    only: Iterable[str] | None = None,
    trials: int = 20,
    seed: int = 0,
    processes: int | None = None,
    progress: Callable[[Any], object] | None = None,
) -> tuple[Any, ...]:
    """Try the rules of files (or texts), beside the book, on random instances; or the book's own.

        for verdict in rx.rules.check("my.egg"):
            print(verdict)

    says of a rule ``x / x = 1`` that it is wrong, and shows the smallest operands for which it is;
    of one that is right its float class, by how many units in the last place it may change a
    result, and which values the sides differ on.

    Every rule is tried until it has matched `trials` instances of its left side: shapes with
    symbols and with extents 0 and 1, all dtypes, attributes, and values among which are the
    largest and the smallest, infinities and NaN.  What egglog unites is computed by the reference,
    in the rule's dtype and in float64.  Returned is a `Verdict` on each rule that equates values,
    in order, or on those named in `only`; ``verdict.sound`` says whether the rule keeps to what the
    comment ``; float:`` above it states.  `progress` is called with each final verdict; without it,
    a terminal or a notebook shows how many there are.

    The same `seed` has the same verdicts, in any number of `processes` (by default one of each
    processor).  They are apart from this one: a rule that never ends, or takes all memory, costs no
    verdict but its own, which says so.  With ``processes=1`` all is done here.

    Raises `RuleError` for a file that does not read; ``ValueError`` for one without rules, and for
    a name in `only` that no rule has; `Interrupted`, whose `done` are the verdicts so far.
    """
    verify = import_module(_CHECKER).check_user_rules
    return verify(
        read(given), only, trials=trials, seed=seed, processes=processes, progress=progress
    )


@takes(
    given=RULE,
    only=optional(NAMES),
    progress=optional(parameters.function("a function of a verdict")),
)
def prove(
    *given: Given,
    only: Iterable[str] | None = None,
    progress: Callable[[Any], object] | None = None,
) -> tuple[Any, ...]:
    """Prove the rules of files (or texts), beside the book, for all extents; or the book's own.

        for verdict in rx.rules.prove("my.egg"):
            print(verdict)

    A rule that is ``proven`` equates values that are equal over the real numbers (integers modulo
    their range, truth values), for every extent, every attribute, and operands of the ranks in
    ``verdict.ranks``; and its right side is well-typed wherever its left side is.  One that is
    ``refuted`` has a counterexample, computed with numpy.  One that is ``not proven``, or ``not
    expressible``, may be right: ``verdict.reason`` is the step, or the operator, that is missing.
    How both sides round is for `check` to say.

    Returned is a verdict on each rule that equates values, in order, or on those named in `only`;
    `progress` is called with each, or they are counted as by `check`.  It needs z3: ``pip install
    relax-egraph[prove]``.

    Raises `RuleError` for a file that does not read; ``ValueError`` for one without rules, and for
    a name in `only` that no such rule has; ``ModuleNotFoundError`` without z3; `Interrupted`, whose
    `done` are the verdicts so far.
    """
    return import_module(_PROVER).prove_user_rules(read(given), only, progress=progress)


F = TypeVar("F", bound=Callable[..., Any])


def function(compute: F) -> F:
    """Let rules call the Python function `compute`, by its name with ``-`` for ``_``.

        @rx.rules.function
        def next_power_of_two(n: int) -> int:
            '''The least power of two that is n or more.'''
            return 1 << (n - 1).bit_length()

        (= m (next-power-of-two n))        ; in :when, or in a rule's body

    Its annotations are sorts: ``int`` (``i64``), ``float``, ``str``, ``bool``, ``tuple[int, ...]``
    (``Axes``), ``tuple[float, ...]``, and `Dim` and `Shape` of ``relax_egraph.ir``.  It is
    computed outside of the e-graph, once for each distinct argument, so it must be pure.  Where it
    returns ``None``, the premise does not hold.  `check` computes it twice, and says so if the two
    differ.

    Raises ``TypeError`` for an annotation that is no sort, and ``ValueError`` for the name of a
    function of the engine.
    """
    return import_module(_FUNCTIONS).function(compute)


def read(given: Iterable[Given]) -> Rules:
    """The texts of `given`, in order, unchecked."""
    files: list[tuple[str, str]] = []
    for entry in given:
        if isinstance(entry, Rules):
            files += entry.files
        elif isinstance(entry, Path) or _is_path(entry):
            files.append((str(entry), _decoded(str(entry), Path(entry).read_bytes())))
        else:
            files.append(("", entry))
    return Rules(tuple(files))


def _is_path(entry: str) -> bool:
    """The name of a file that is there, or a short line that ends in ``.egg`` and is no form."""
    if len(entry) >= _LONGEST_PATH or not entry.isprintable() or entry.lstrip()[:1] in "(;":
        return False
    return entry.endswith(".egg") or os.path.isfile(entry)


def _decoded(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as problem:
        before = data[: problem.start].decode("utf-8", "replace").split("\n")
        span = Span(name, len(before), len(before[-1]) + 1)
        message = f"byte 0x{data[problem.start]:02x} is not text"
        raise RuleError(span, message, before[-1], "a rule file is UTF-8 text") from None
