"""What editors show of rule files: the grammar colours every token, and knows the vocabulary."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from relax_egraph import rules
from relax_egraph.cli.editor_forms import FORMS
from relax_egraph.egraph.rulebook.forms import Source, atoms
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.scope import vocabulary
from tests.support.command import invoke

ROOT = Path(__file__).parents[2]
EDITORS = ROOT / "editors"
GENERATED = {
    "textmate": EDITORS / "vscode" / "syntaxes" / "egg.tmLanguage.json",
    "vim": EDITORS / "vim" / "syntax" / "egg.vim",
}
FILES = [*sorted((ROOT / "rules").glob("*.egg")), *sorted((ROOT / "tests/rules").glob("*.egg"))]


class Token(NamedTuple):
    """A stretch of a line, from column `start` on, and its innermost scope."""

    start: int
    text: str
    scope: str


def tokens(grammar: Any, line: str) -> Iterator[Token]:
    """What `grammar` makes of `line`: the earliest match, of several the first in order."""
    at = 0
    while at < len(line):
        matches = [(r.search(line, at), p) for r, p in _patterns(grammar, grammar["patterns"])]
        found = [(match, pattern) for match, pattern in matches if match]
        if not found:
            return
        match, pattern = min(found, key=lambda f: f[0].start())
        if "begin" not in pattern:
            assert match.end() > match.start(), pattern
            yield Token(match.start(), match[0], pattern["name"])
            at = match.end()
            continue
        inside = _patterns(grammar, pattern["patterns"])
        start, at = match.start(), match.end()
        while True:
            end = re.compile(pattern["end"]).search(line, at)
            parts = [m for r, _ in inside if (m := r.search(line, at))]
            part = min(parts, key=lambda m: m.start(), default=None)
            if part is None or (end and end.start() <= part.start()):
                break
            at = part.end()
        at = end.end() if end else len(line)
        yield Token(start, line[start:at], pattern["name"])


def _patterns(grammar: Any, listed: Any) -> list[tuple[re.Pattern[str], Any]]:
    found = [grammar["repository"][p["include"][1:]] if "include" in p else p for p in listed]
    return [(re.compile(p.get("match") or p["begin"]), p) for p in found]


@pytest.fixture(scope="module")
def grammar() -> Any:
    return json.loads(GENERATED["textmate"].read_text("utf-8"))


@pytest.mark.parametrize("form", GENERATED)
def test_the_file_is_that_of_the_vocabulary(form: str, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--bless"):
        GENERATED[form].write_text(FORMS[form](), encoding="utf-8")

    assert GENERATED[form].read_text("utf-8") == FORMS[form]()


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_token_of_the_book_and_its_tests_is_coloured(path: Path, grammar: Any) -> None:
    text = path.read_text("utf-8")
    found = {
        (number, token.start + 1): token
        for number, line in enumerate(text.split("\n"), 1)
        for token in tokens(grammar, line)
    }

    for (number, column), token in found.items():
        assert "invalid" not in token.scope, (number, column, token)
    source = Source(path.name, text)
    for form in read(source):
        for atom in atoms(form):
            place = source.span(atom.start)
            token = found[place.line, place.column]
            assert token.text == atom.text
    coloured = sum(len(token.text.replace(" ", "")) for token in found.values())
    assert coloured == len(re.sub(r"\s", "", text))


LINES = {
    '(rewrite (R.add x (R.const 0.5 "float32")) x': [
        ("rewrite", "keyword.control"),
        ("R.add", "support.function.operator"),
        ("x", "variable.parameter"),
        ("R.const", "support.function.operator"),
        ("0.5", "constant.numeric"),
        ('"float32"', "string.quoted"),
        ("x", "variable.parameter"),
    ],
    "(R.nn.rely x) (R.add2 x) (Prim.dims d)": [
        ("R.nn.rely", "invalid.illegal.operator"),
        ("x", "variable.parameter"),
        ("R.add2", "invalid.illegal.operator"),
        ("x", "variable.parameter"),
        ("Prim.dims", "invalid.illegal.operator"),
        ("d", "variable.parameter"),
    ],
    ':when ((= s (shape-of x)) (times-number t x 2)) :rulset my :name "a \\" b"': [
        (":when", "keyword.other.option"),
        ("=", "keyword.operator"),
        ("s", "variable.parameter"),
        ("shape-of", "support.function.fact"),
        ("x", "variable.parameter"),
        ("times-number", "entity.name.function"),
        ("t", "variable.parameter"),
        ("x", "variable.parameter"),
        ("2", "constant.numeric"),
        (":rulset", "invalid.illegal.option"),
        ("my", "variable.parameter"),
        (":name", "keyword.other.option"),
        ('"a \\" b"', "string.quoted"),
    ],
    "(relation of-two (Tensor f64)) ; float: exact": [
        ("relation", "storage.type"),
        ("of-two", "variable.parameter"),
        ("Tensor", "support.type"),
        ("f64", "support.type"),
        ("; float: exact", "comment.line"),
    ],
    "(check (dim-ge $d _)) (f -inf -1 -1.5e-3 x-1 true NaN)": [
        ("check", "keyword.control"),
        ("dim-ge", "support.function.fact"),
        ("$d", "variable.other.global"),
        ("_", "variable.language"),
        ("f", "entity.name.function"),
        ("-inf", "constant.numeric"),
        ("-1", "constant.numeric"),
        ("-1.5e-3", "constant.numeric"),
        ("x-1", "variable.parameter"),
        ("true", "constant.language"),
        ("NaN", "constant.numeric"),
    ],
    "(vec-get (unstable-fn y) (- n 1))": [
        ("vec-get", "support.function.primitive"),
        ("unstable-fn", "support.function.primitive"),
        ("y", "variable.parameter"),
        ("-", "keyword.operator"),
        ("n", "variable.parameter"),
        ("1", "constant.numeric"),
    ],
}


@pytest.mark.parametrize("line", LINES)
def test_what_is_known_is_coloured_as_what_it_is(line: str, grammar: Any) -> None:
    found = [
        (token.text, token.scope.removesuffix(".egg"))
        for token in tokens(grammar, line)
        if token.scope != "punctuation.section.egg"
    ]

    assert found == LINES[line]


def test_every_name_of_the_vocabulary_is_known(grammar: Any) -> None:
    for declaration in vocabulary():
        _, head, *_ = tokens(grammar, f"({declaration.name} x)")
        kind = "operator" if declaration.kind == "constructor" else "fact"
        assert head == Token(1, declaration.name, f"support.function.{kind}.egg")


SAMPLE = """\
; float: exact
(rewrite (R.add x (R.const 0.5 "float32")) (R.nn.rely x)
  :when ((= s (shape-of x)) (times-number t x)) :rulset my)
"""

VIM = r"""
set nocompatible encoding=utf-8
set runtimepath^={folder}
syntax on
edit {file}
if &filetype != 'egg' | cquit | endif
let found = []
for line in range(1, line('$'))
  for column in range(1, col([line, '$']) - 1)
    call add(found, line . ':' . column . ':' . synIDattr(synID(line, column, 1), 'name'))
  endfor
endfor
call writefile(found, '{output}')
qall!
"""


@pytest.mark.skipif(shutil.which("vim") is None, reason="there is no vim to read the syntax file")
def test_vim_colours_likewise(tmp_path: Path) -> None:
    file, output, script = tmp_path / "my.egg", tmp_path / "out", tmp_path / "script.vim"
    file.write_text(SAMPLE)
    script.write_text(VIM.format(folder=EDITORS / "vim", file=file, output=output))

    subprocess.run(["vim", "-es", "-u", script, "-i", "NONE"], check=True, timeout=60)

    groups = dict(line.rsplit(":", 1) for line in output.read_text().splitlines())
    shown = {
        match[0]: groups[f"{number}:{match.start() + 1}"]
        for number, line in enumerate(SAMPLE.splitlines(), 1)
        for match in re.finditer(r';.*|"[^"]*"|[^\s()]+', line)
    }
    assert shown == {
        "; float: exact": "eggComment",
        "rewrite": "eggRule",
        "R.add": "eggOperator",
        "x": "",
        "R.const": "eggOperator",
        "0.5": "eggNumber",
        '"float32"': "eggString",
        "R.nn.rely": "eggUnknown",
        ":when": "eggOption",
        "=": "eggHead",
        "s": "",
        "shape-of": "eggFact",
        "times-number": "eggHead",
        "t": "",
        ":rulset": "eggUnknown",
        "my": "",
    }


def printed(*args: str) -> str:
    result = invoke("rules", "vocabulary", *args)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_snippet_completes_a_name_with_its_arguments() -> None:
    snippets = json.loads(printed("--editor", "snippets"))

    assert snippets["R.sum"] == {
        "scope": "egg",
        "prefix": "R.sum",
        "body": "R.sum ${1:x} ${2:axis} ${3:keepdims}",
        "description": (
            "(R.sum x:Tensor axis:Axes keepdims:bool): "
            + next(d.meaning for d in vocabulary() if d.name == "R.sum")
        ),
    }
    assert set(snippets) == {d.name for d in vocabulary()}


def test_a_dictionary_has_a_name_a_line() -> None:
    assert printed("--editor", "words").split("\n") == [*(d.name for d in vocabulary()), ""]


def test_a_form_for_editors_is_of_the_whole_vocabulary() -> None:
    result = invoke("rules", "vocabulary", "R.add", "--editor", "words")

    assert result.exit_code == 2
    assert "--editor prints the whole vocabulary" in result.output


def test_the_extension_has_what_it_names() -> None:
    folder = EDITORS / "vscode"
    package = json.loads((folder / "package.json").read_text())
    (language,), (grammar,) = (
        package["contributes"]["languages"],
        package["contributes"]["grammars"],
    )
    settings = json.loads((folder / language["configuration"]).read_text())
    scope = json.loads((folder / grammar["path"]).read_text("utf-8"))["scopeName"]

    assert grammar["language"] == language["id"]
    assert grammar["scopeName"] == scope
    assert settings["comments"] == {"lineComment": ";"}
    assert re.findall(settings["wordPattern"], '(R.nn.softmax x-1 "a b")') == [
        *("R.nn.softmax", "x-1", "a", "b")
    ]
    assert f"{rules.__name__.partition('.')[0].replace('_', '-')}-rules" == package["name"]
