"""Steps of an e-graph's growth as data for the page, bounded; the page draws them."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from relax_egraph.egraph.readback.node_text import node_text
from relax_egraph.egraph.recording.recording import record
from relax_egraph.egraph.view import ClassId, EClass
from relax_egraph.ir.struct_info import tensor
from relax_egraph.optimize.explanation import RegionReport
from relax_egraph.play.growth import Class, Entry, Growth, Step, name_of
from relax_egraph.play.saturated import saturated_classes
from relax_egraph.reasons.classes import class_type_text, source_text
from relax_egraph.reasons.explain import Reasons
from relax_egraph.reasons.tensors import Chosen, chosen_of

MOST_CLASSES = 80
"""The most classes in a picture: those closest to the results."""

MOST_NODES = 8
"""The most nodes of a class in a picture."""

MOST_STEPS = 40
"""The most steps: the first ones, and the last."""


def pictures(reasons: Reasons) -> list[dict[str, Any]]:
    """The steps of each e-graph of `reasons`; equal blocks are one e-graph."""
    return [_Region(reasons, region).as_dict() for region in reasons.egraphs]


class _Region:
    """One e-graph: its run is repeated and recorded."""

    def __init__(self, reasons: Reasons, region: RegionReport) -> None:
        self.reasons = reasons
        self.region = region
        view, self.source = region.view, region.runs[0].view
        with region.runs[0].again():
            growth = Growth(self.source, reasons.book.of_user)
            self.steps = [s for s in growth.steps(record(region.runs[0])) if _changes(s)]
        self.known = saturated_classes(self.steps[-1], region.became, view)
        self.types = dict[Class, str]()
        self.names = self._names(growth)
        for step in reversed(self.steps):
            for c in step.classes:
                self.types.setdefault(c, self._type(growth.find(c), c))
        self.roots = [growth.find(root) for root in self.source.roots]
        here = [(n, one) for n, one in enumerate(reasons.running) if one.placed.region.view is view]
        self.chosen = chosen_of(view, here)

    def as_dict(self) -> dict[str, Any]:
        """The steps, the last of them with what was chosen."""
        shown = self.steps
        if len(shown) > MOST_STEPS:
            shown = [*shown[: MOST_STEPS - 1], shown[-1]]
        steps = [self._step(step) for step in shown[:-1]]
        return {
            "function": self.region.function,
            "steps": [*steps, self._step(shown[-1], self.chosen)],
            "left_out": len(self.steps) - len(shown),
        }

    def _step(self, step: Step, chosen: Mapping[ClassId, Chosen] | None = None) -> dict[str, Any]:
        reached = self._reached(step)
        return {
            "phase": step.phase,
            "iteration": step.iteration,
            "effects": [
                {
                    "rule": name_of(e.rule),
                    "matches": e.matches,
                    "nodes": e.nodes,
                    "unions": e.unions,
                }
                for e in step.effects
                if e.nodes or e.unions
            ],
            "classes": [self._class(step, c, chosen or {}) for c in reached[:MOST_CLASSES]],
            "of": len(step.classes),
            "number": step.number,
        }

    def _reached(self, step: Step) -> list[Class]:
        """The classes of a step, from the results to their operands, breadth first."""
        roots = [root for root in self.source.roots if root in step.classes] or self.roots
        seen = dict.fromkeys(root for root in roots if root in step.classes)
        todo = deque(seen)
        while todo:
            for entry in step.classes[todo.popleft()]:
                for k in entry.node.operands:
                    if k in step.classes and k not in seen:
                        seen[k] = None
                        todo.append(k)
        return list(seen)

    def _class(self, step: Step, c: Class, chosen: Mapping[ClassId, Chosen]) -> dict[str, Any]:
        choice = chosen.get(self.known[c]) if c in self.known else None
        entries = list(step.classes[c])
        best = next((e for e in entries if choice and self._is(e, choice)), None)
        if best is not None:
            entries.sort(key=lambda e: e is not best)
        return {
            "class": c,
            "names": self.names.get(c, []),
            "type": self.types[c],
            "root": c in self.source.roots or c in self.roots,
            "merged": c in step.merged,
            "kernel": choice.kernel if choice else None,
            "nodes": [
                {
                    "text": self._text(e),
                    "classes": [k for k in e.node.operands if k in step.classes],
                    "rule": name_of(e.rule),
                    "step": e.step,
                    "chosen": e is best,
                }
                for e in entries[:MOST_NODES]
            ],
            "more": max(0, len(entries) - MOST_NODES),
        }

    def _is(self, entry: Entry, choice: Chosen) -> bool:
        """Whether a node of the last step is the chosen one."""
        if not all(k in self.known for k in entry.node.operands):
            return False
        return entry.node.over(self.known.__getitem__) == choice.node

    def _text(self, entry: Entry) -> str:
        """A node as in rules, without its classes."""
        text = source_text(self.source, entry.node)
        return node_text(entry.node, _ANY, whole=False) if text is None else text

    def _type(self, *numbers: Class) -> str:
        """The type of a class, from the program or from the saturated e-graph."""
        for c in numbers:
            if c in self.source.classes:
                return class_type_text(self.source.classes[c])
            if c in self.known:
                return class_type_text(self.region.view.classes[self.known[c]])
        return ""

    def _names(self, growth: Growth) -> dict[Class, list[str]]:
        """The variables of the program by class, before and after classes were joined."""
        placed = next((p for p in self.reasons.placed if p.region.view is self.region.view), None)
        names: dict[Class, dict[str, None]] = {}
        for var, c in placed.origin.items() if placed else ():
            for number in dict.fromkeys((c, growth.find(c))):
                names.setdefault(number, {})[var.name] = None
        return {c: list(called) for c, called in names.items()}


def _changes(step: Step) -> bool:
    return not step.phase or any(e.nodes or e.unions for e in step.effects)


_ANY = EClass("tensor", (), tensor((), "float32"))
"""Any class of tensors: the text of a node depends on the sort of its class alone."""
