"""Rule files that are wrong in every way: each gets its answer, in bounded time and memory."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

import relax_egraph as rx
from relax_egraph.egraph.engine import Budget, RuleBook, saturate
from relax_egraph.errors import RuleError, SaturationError
from tests.support.hand_made import leaf, operation, view

PROGRAM = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        lv = R.exp(x)
        lv1 = R.add(lv, y)
        gv = R.nn.relu(lv1)
        R.output(gv)
    return gv
"""

SIZE = 5_000_000
MEGABYTES = 500
"""The most memory that reading a file takes, of which 150 are the imports."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "my.egg"


def refused(file: Path, error: type[Exception] = RuleError) -> str:
    """What `optimize` says of the file, which leaves the module alone."""
    module = rx.parse(PROGRAM)
    before = module.script()

    with pytest.raises(error) as raised:
        rx.optimize(module, rules=[file])

    assert module.script() == before
    assert "exp" in rx.optimize(module).script()  # the process goes on
    return str(raised.value).replace(str(file), file.name)


def test_a_rule_that_feeds_itself_loses_no_program(file: Path) -> None:
    file.write_text('(rewrite (R.exp x) (R.exp (R.abs x)) :name "one-more")\n')

    best = rx.optimize(rx.parse(PROGRAM), rules=[file])

    assert "exp" in best.script()


def test_a_rule_that_feeds_itself_twice_over_is_banned(file: Path) -> None:
    file.write_text("""
        (rewrite (R.exp x) (R.add (R.exp (R.abs x)) (R.exp (R.negative x))) :name "two-more")
    """)

    report = saturate(
        view(leaf(0), operation("exp", 0)), RuleBook.default([file], families=["fusion"])
    ).report

    (ban,) = report.bans
    assert ban.rule == "two-more"
    assert report.nodes < 5_000  # the explosion is undone: extraction need not weigh it
    assert report.stop_reason == "saturated without two-more"


def test_regrouping_a_sum_of_thirty_is_banned(file: Path) -> None:
    """With commutativity, a sum of 30 terms has 3^30 sums of some of them."""
    file.write_text("""
        (rewrite (R.add a b) (R.add b a) :name "swap")
        (birewrite (R.add (R.add a b) c) (R.add a (R.add b c)) :name "regroup")
    """)
    sums = [operation("add", 0, 1), *(operation("add", 28 + k, k) for k in range(2, 30))]
    program = view(*(leaf(k) for k in range(30)), *sums)

    saturated = saturate(
        program, RuleBook.default([file], families=["fusion"]), Budget(nodes=20_000)
    )

    assert [ban.rule for ban in saturated.report.bans] == ["regroup"]
    assert saturated.report.nodes <= 8 * 20_000
    assert saturated.report.notes == ()  # the worker lives


def test_panic_is_refused_where_it_is(file: Path) -> None:
    file.write_text('(rule ((= t (R.exp x))) ((panic "boom")) :name "panics")\n')

    assert (
        refused(file)
        == """\
my.egg:1:26: panic is not allowed: it would end the run
    (rule ((= t (R.exp x))) ((panic "boom")) :name "panics")
                             ^
a fact in the rule's body can keep it from matching"""
    )


def test_equating_tensors_of_different_shape_names_the_rule(file: Path) -> None:
    file.write_text(
        '(rule ((= t (R.exp x))) ((union t (R.sum x (vec-of 0) false))) :name "sums")\n'
    )

    assert refused(file, SaturationError) == (
        "rule sums (my.egg:1:1) is unsound: it equates values of shapes (n, 4) and (4,)"
    )


@pytest.mark.parametrize("text", ["", "\n\n", "; nothing but words\n"])
def test_an_empty_file_changes_nothing(file: Path, text: str) -> None:
    file.write_text(text)
    module = rx.parse(PROGRAM)

    assert rx.optimize(module, rules=[file]).script() == rx.optimize(module).script()


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.egg"):
        rx.optimize(rx.parse(PROGRAM), rules=["nowhere.egg"])


def rule(number: int) -> str:
    scaled = f'(R.multiply x (R.const {number}.5 "float32"))'
    return f"(rewrite (R.add (R.exp x) {scaled}) (R.add {scaled} (R.exp x)))\n"


LARGE: dict[str, tuple[str, str]] = {
    "comments": ("; a comment\n" * (SIZE // 12), "0 rules"),
    "rules with long laws": (
        "".join(f"; {'the law of it ' * 180}\n{rule(k)}" for k in range(SIZE // 2650)),
        f"{SIZE // 2650} rules",
    ),
    "more rules than a book has": (
        "".join(rule(k) for k in range(SIZE // 120)),
        "10001:1: a rule file has at most 10000 forms",
    ),
    "declarations": (
        "".join(f"(relation helper-{k} (Tensor))\n" for k in range(SIZE // 35)),
        "10001:1: a rule file has at most 10000 forms",
    ),
    "one giant form": (
        f"(rewrite (R.exp x) (vec-of {'x ' * (SIZE // 2)}))",
        "1:1: this form has more than 20000 characters",
    ),
    "one giant name": (
        f"(rewrite (R.exp x) {'x' * SIZE})",
        "1:1: this form has more than 20000 characters",
    ),
    "deep nesting": (
        f"{'(R.exp ' * (SIZE // 8)}x{')' * (SIZE // 8)}",
        "1:1401: forms are nested more than 200 deep",
    ),
    "open parentheses": ("(" * SIZE, "1:201: forms are nested more than 200 deep"),
    "closed parentheses": (")" * SIZE, "1:1: unexpected ')'"),
    "an open string": (f'(rewrite "{"a" * SIZE}', "1:10: this string is never closed"),
    "words": (
        "lorem ipsum " * (SIZE // 12),
        "1:1: unexpected lorem: it stands outside of any form",
    ),
    "one long line": (
        "(ruleset r) (oops)" + " " * SIZE,
        "1:13: unknown command oops",
    ),
    "zeros": ("\0" * SIZE, "1:1: unexpected"),
}


NO_TEXT = b"; law\n; \xc3\xa9\xff" + random.Random(0).randbytes(SIZE)

SCRIPT = """
import re, sys
from pathlib import Path
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.errors import RuleError
for name in sys.argv[1:]:
    Path("/proc/self/clear_refs").write_text("5")  # forgets how much memory there was at most
    try:
        book = RuleBook.default([Path(name)], families=[])
        print(len(book.rewrites), "rules")
    except RuleError as problem:
        print(str(problem).partition("\\n")[0].removeprefix(name + ":"))
        assert len(str(problem)) < len(name) + 1000
    status = Path("/proc/self/status").read_text()
    print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
"""
"""Says what becomes of each file, and how many megabytes that took."""


def test_files_of_five_megabytes_get_their_answers(tmp_path: Path) -> None:
    contents = {kind: text.encode() for kind, (text, _) in LARGE.items()} | {"no text": NO_TEXT}
    expected = [answer for _, answer in LARGE.values()] + ["2:4: byte 0xff is not text"]
    files = [tmp_path / f"{kind}.egg" for kind in contents]
    for file, content in zip(files, contents.values(), strict=True):
        file.write_bytes(content)

    done = subprocess.run([sys.executable, "-c", SCRIPT, *files], capture_output=True, text=True)

    assert done.stderr == ""
    said = done.stdout.splitlines()
    answers = [answer[: len(start)] for answer, start in zip(said[::2], expected, strict=True)]
    assert dict(zip(contents, answers, strict=True)) == dict(zip(contents, expected, strict=True))
    assert {k: m for k, m in zip(contents, said[1::2], strict=True) if int(m) >= MEGABYTES} == {}


def test_thousands_of_rules_run(file: Path) -> None:
    file.write_text("".join(rule(k) for k in range(3000)))
    program = view(leaf(0), operation("exp", 0), operation("add", 1, 0))

    report = saturate(program, RuleBook.default([file], families=["canon", "fusion"])).report

    assert report.saturated
    assert report.matches["add-commutes"] == 1
