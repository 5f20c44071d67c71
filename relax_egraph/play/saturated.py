"""The classes of a growing e-graph in the saturated one, which was read back."""

from collections.abc import Mapping

from relax_egraph.egraph.view import ClassId, View
from relax_egraph.play.growth import Class, Step


def saturated_classes(
    step: Step, became: Mapping[ClassId, ClassId], view: View
) -> Mapping[Class, ClassId]:
    """By class of the last `step`, its class in the saturated `view`.

    `became` maps those of the program; the others are found by their nodes.
    """
    nodes = {
        node: c
        for c, eclass in view.classes.items()
        if eclass.sort != "kernel"
        for node in eclass.nodes
    }
    known = {c: became[c] for c in step.classes if c in became}
    changed = True
    while changed:
        changed = False
        for c, entries in step.classes.items():
            if c in known:
                continue
            for entry in entries:
                if all(k in known for k in entry.node.operands):
                    now = nodes.get(entry.node.over(known.__getitem__))
                    if now is not None:
                        known[c], changed = now, True
                        break
    return known
