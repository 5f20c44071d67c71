"""Pictures of an optimized module, for files and notebooks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from relax_egraph.base.files import replacing
from relax_egraph.base.parameters import NAME, choice, instance, optional, takes
from relax_egraph.egraph.view import ClassId
from relax_egraph.errors import nearest
from relax_egraph.pictures.egraphs import egraph_diagrams
from relax_egraph.pictures.kernels import kernel_diagrams
from relax_egraph.pictures.svg import document
from relax_egraph.reasons.explain import Reasons
from relax_egraph.reasons.touched import touched

Of: TypeAlias = Literal["egraph", "kernels"]


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A picture as text of SVG; `captions` are those of its parts, with what was left out."""

    svg: str
    captions: tuple[str, ...]

    def save(self, path: str | Path) -> None:
        """Write the picture to a file, which is replaced atomically."""
        with replacing(Path(path)) as file:
            file.write(self.svg.encode())

    def __repr__(self) -> str:
        return f"<Picture: {'; '.join(self.captions)}>"

    def _repr_svg_(self) -> str:
        return self.svg


@takes(
    reasons=instance("what rx.explain returns", Reasons),
    of=choice("egraph", "kernels"),
    rule=optional(NAME),
)
def picture(reasons: Reasons, of: Of = "kernels", rule: str | None = None) -> Picture:
    """Draw the chosen program, or with ``of="egraph"`` the e-graphs that it was chosen from.

    Kernels have their operators and their price by the cost model.  An e-graph has a box for each
    class of tensors and a row for each way to compute it, kernels unfolded; the chosen one is
    marked.  With `rule`, it has only the classes that this rule touched.

    Raises ``ValueError`` for an unknown `rule`, and ``ImportError`` without igraph.
    """
    if of == "kernels":
        if rule is not None:
            raise ValueError('rule needs of="egraph"')
        diagrams = kernel_diagrams(reasons)
    else:
        diagrams = egraph_diagrams(reasons, None if rule is None else _touched(reasons, rule))
    captions = tuple(diagram.caption for diagram in diagrams)
    return Picture(document(diagrams, "; ".join(captions)), captions)


def _touched(reasons: Reasons, name: str) -> Sequence[Collection[ClassId]]:
    """The classes of each e-graph that the rule `name` touched."""
    rules = {rule.name: rule for rule in reasons.book.rules}
    if name not in rules:
        near = nearest(name, (*rules,))
        raise ValueError("; ".join(filter(None, (f"there is no rule {name!r}", near))))
    return [touched(region, rules[name]) for region in reasons.egraphs]
