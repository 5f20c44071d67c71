"""A session at an editor: a rule file, and 200 edits of it as a person would type them."""

from collections.abc import Iterator
from random import Random

BEGIN = """\
; Rules of a model of ours.
(ruleset mine)

; (twice y x): y = x + x
(relation twice (Tensor Tensor))

; x + x is twice x
; float: exact
(rule ((= y (R.add x x))) ((twice y x)) :ruleset mine :name "doubled")

; 2 x / 2 = x, of floats
; float: exact
(rewrite (R.divide y two) x
  :when ((twice y x) (= 2.0 (const-scalar two)) (is-float x))
  :ruleset mine :name "half-of-double")

; (x + a) - (y + a) = x - y
; float: fast
(rewrite (R.subtract (R.add x a) (R.add y a)) (R.subtract x y)
  :ruleset mine :name "difference-of-shifted")

; a reshape of a reshape is one
; float: exact
(rewrite (R.reshape (R.reshape x s) u) (R.reshape x u)
  :ruleset mine :name "reshape-once")

; Σ (x · c) = c · Σ x, for a number c
; float: reassociates
(rewrite (R.sum (R.multiply x (R.broadcast_to c s)) axes keep)
         (R.multiply (R.sum x axes keep) (R.broadcast_to c u))
  :when ((= 0 (rank-of c)) (= u (shape-of (R.sum x axes keep))))
  :ruleset mine :name "sum-of-scaled")
"""

_TYPED = """
; ‖x‖² · ‖y‖² = (‖x‖ · ‖y‖)² — as 𝒙, 𝒚 are vectors
; float: reassociates
(rewrite (R.multiply (R.square x) (R.square y))
         (R.square (R.multiply x y))
  :when ((is-float x) (= (shape-of x) (shape-of y)))
  :ruleset mine :name "squares-together")

(relation seen (Tensor))
(rule ((seen x) (= y (R.exp x))) ((seen y))
  :ruleset mine :name "seen-further")
"""

EDITS = 200

Edit = tuple[int, int, str]
"""Two offsets, and the text that is put between them."""


def session() -> Iterator[tuple[Edit, str]]:
    """The edits, each with the text behind it: two rules are typed, then words are changed."""
    random = Random(7)
    text, rest, count = BEGIN, _TYPED, 0
    undo: list[Edit] = []
    while count < EDITS:
        if rest:
            size = random.choice((1, 2, 3, 5, 8))
            edit = (len(text), len(text), rest[:size])
            rest = rest[size:]
        elif undo:
            edit = undo.pop()
        else:
            edit = _mistake(random, text)
            start, end, new = edit
            undo = [(start, start + len(new), text[start:end])]
        start, end, new = edit
        text = text[:start] + new + text[end:]
        count += 1
        yield edit, text


def _mistake(random: Random, text: str) -> Edit:
    """A character that is left out, doubled or another one, a word less, or a line twice."""
    at = random.randrange(len(text) - 1)
    line_end = text.find("\n", at) + 1 or len(text)
    line_start = text.rfind("\n", 0, at) + 1
    match random.choice(("left out", "doubled", "other", "word", "line")):
        case "left out":
            return at, at + 1, ""
        case "doubled":
            return at, at, text[at]
        case "other":
            return at, at + 1, random.choice('xyz()R."; 1')
        case "word":
            end = text.find(" ", at)
            return at, end if at < end <= line_end else line_end - 1, ""
        case _:
            return line_end, line_end, text[line_start:line_end]
