"""The dtypes that operands of a rule are tried with."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.egraph.rulebook.forms import Tree, atoms, forms_in, heads, written
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.prove.layouts import ON_IMAGES
from relax_egraph.prove.meanings import BLIND
from relax_egraph.prove.unfolding import ROUNDED


@dataclass(frozen=True, slots=True)
class Dtypes:
    """`every` dtype that an operand may have; one of those that are `alike` is as good as another.

    Two of these are tried only where operands may differ in them.
    """

    every: tuple[str, ...]
    alike: Set[str] = frozenset()

    def beside(self, used: Set[str], dtypes: Sequence[str]) -> Sequence[str]:
        """`dtypes` without all but one of those alike that are not `used` yet."""
        fresh = [d for d in dtypes if d in self.alike and d not in used]
        return [d for d in dtypes if d not in fresh[1:]]


def dtypes_of(trees: Sequence[Tree]) -> Dtypes:
    """The dtypes that operands are tried with: two floats stand for all, unless dtypes matter."""
    names = {h for t in trees for h in heads(t)}
    if "dtype-holds" in names or _makes_texts(trees):
        return Dtypes(DTYPES)
    applied = {h for h in names if h.startswith("R.")}
    if applied <= _MOVES | _IMAGES and not names & _OF_FLOATS:
        return Dtypes(_FLOATS[:2], frozenset(_FLOATS[:2]))
    if "count-matches" in names:
        return Dtypes(DTYPES)
    text = " ".join(map(written, trees))
    said = [d for d in _FLOATS if f'"{d}"' in text]
    spoken = {written(f) for t in trees for f in forms_in(t) if f.head == "dtype-of"}
    others = [d for d in _FLOATS if d not in said][: max(2, len(spoken))]
    return Dtypes((*others, *said, *_NO_FLOATS), frozenset(others))


def _makes_texts(trees: Sequence[Tree]) -> bool:
    """Whether a rule may make the text of a dtype that it does not say: of parts, or by a call."""
    names = {h for t in trees for h in heads(t)}
    texts = {a.text.strip('"') for t in trees for a in atoms(t) if a.text.startswith('"')}
    letters = [t for t in texts - {*DTYPES} if any(map(str.isalpha, t))]
    parts = any(text in d for text in letters for d in DTYPES)
    called = (h for h in names - BLIND if h in FUNCTIONS)
    return (parts and "+" in names) or any(FUNCTIONS[h].result == "String" for h in called)


_OF_FLOATS = frozenset(("dtype-of", "is-float", "const-scalar", ROUNDED))
_FLOATS = ("float64", "float32", "float16", "bfloat16")
_NO_FLOATS = ("int32", "uint32", "bool", "int8", "int16", "int64", "uint8", "uint16", "uint64")
"""The dtypes that are tried beside floats."""

_MOVES = frozenset(
    f"R.{name}"
    for name in (
        *("permute_dims", "reshape", "broadcast_to", "concat", "stack", "split", "strided_slice"),
        *("flip", "expand_dims", "squeeze", "flatten", "nn.batch_flatten", "tile", "repeat"),
        *("tuple_get", "nn.pad", "dist.shard", "dist.replicate"),
    )
)
"""Operators that move elements of any dtype alike."""

_IMAGES = frozenset(f"R.{name}" for name in ON_IMAGES)
"""Operators that are unknown functions of elements of any dtype."""
