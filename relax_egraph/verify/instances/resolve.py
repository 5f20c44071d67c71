"""Resolution of a query into a problem: equal arguments become one variable, operators nodes.

A tensor ``x`` has the variables ``x.shape`` and ``x.dtype``; the operands of an elementwise
operator share a shape variable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from relax_egraph.egraph.node import CALLS
from relax_egraph.egraph.rulebook.vocabulary import Declaration, operators
from relax_egraph.verify.instances.congruence import Congruence
from relax_egraph.verify.instances.keeping import SHAPED, keeps_shape
from relax_egraph.verify.instances.primitives import Fails, compute, computes
from relax_egraph.verify.instances.problem import VALUES, Application, Contradiction, Problem
from relax_egraph.verify.instances.query import Apply, Arg, Literal, Query


def problem_of(query: Query, declarations: Mapping[str, Declaration], random: Random) -> Problem:
    """Resolve `query`; open lengths of tensor lists are drawn.  Raises `Contradiction`."""
    return _Resolving(query, declarations, random, Congruence(query.applies)).problem()


@dataclass(slots=True)
class _Resolving:
    query: Query
    declarations: Mapping[str, Declaration]
    random: Random
    same: Congruence
    sorts: dict[str, str] = field(default_factory=dict[str, str])
    elements: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def problem(self) -> Problem:
        for a, b in self.query.same:
            self.same.unite(a, b)
        self.same.close()
        self.find_sorts()
        self.take_vectors_apart()
        self.same.close()
        self.find_sorts()
        facts = self.facts()
        nodes = tuple(self.node(a) for a in self.query.applies if a.head.startswith(("R.", "K.")))
        for node in nodes:
            self.share_shapes(node)
        bake = self.same.find
        self.find_sorts()
        for premise in facts.premises:
            _refuse_false(premise, [bake(a) for a in premise.args])
        producers: dict[str, Application] = {}
        for node in sorted(map(self.baked, nodes), key=lambda n: n.built):
            producers.setdefault(node.result, node)
        elements = {
            str(bake(v)): tuple(str(bake(e)) for e in items) for v, items in self.elements.items()
        }
        _refuse_cycles(producers, elements)
        tensors = [v for v, s in self.sorts.items() if s in VALUES and bake(v) == v]
        shapes = {t: bake(self.of(t, "shape")) for t in tensors}
        dtypes = {t: bake(self.of(t, "dtype")) for t in tensors}
        for variables, sort in ((shapes, "Shape"), (dtypes, "String")):
            for variable in variables.values():
                self.sorted(variable, sort)
        return Problem(
            nodes=tuple(producers.values()),
            premises=tuple(
                replace(
                    p,
                    args=tuple(map(bake, p.args)),
                    result=None if p.result is None else bake(p.result),
                )
                for p in facts.premises
            ),
            sorts={v: s for v, s in self.sorts.items() if bake(v) == v},
            elements=elements,
            scalars={str(bake(t)): bake(c) for t, c in facts.scalars.items()},
            constants=tuple(dict.fromkeys(str(bake(t)) for t in facts.constants)),
            positions={str(bake(t)): bake(i) for t, i in facts.positions.items()},
            uses=tuple(replace(u, args=tuple(map(bake, u.args))) for u in facts.uses),
            producers=producers,
            shapes=shapes,
            dtypes=dtypes,
            names={v: bake(v) for v in self.same.parent},
        )

    def baked(self, node: Application) -> Application:
        args = tuple(map(self.same.find, node.args))
        return replace(node, args=args, result=str(self.same.find(node.result)))

    def find_sorts(self) -> None:
        for apply in self.query.applies:
            declaration = self.declarations.get(apply.head)
            if declaration is None:
                continue
            self.sorted(apply.result, declaration.result)
            for arg, sort in zip(apply.args, declaration.sorts, strict=False):
                self.sorted(arg, sort)
        for apply in self.query.applies:
            match apply.head, apply.args:
                case "vec-get", (items, _):
                    self.sorted(apply.result, _ELEMENT.get(self.sort(items), ""))
                case "vec-of", args:
                    inside = {self.sort(a) for a in args} - {""}
                    known = [v for v, e in _ELEMENT.items() if e in inside]
                    self.sorted(apply.result, known[0] if known else "")
                case _:
                    pass

    def sorted(self, arg: Arg | None, sort: str) -> None:
        if arg is not None and sort and isinstance(representative := self.same.find(arg), str):
            self.sorts[representative] = sort

    def sort(self, arg: Arg) -> str:
        representative = self.same.find(arg)
        return self.sorts.get(representative, "") if isinstance(representative, str) else ""

    def take_vectors_apart(self) -> None:
        """Name the elements of each ``Tensors`` variable."""
        find, unite = self.same.find, self.same.unite
        lists = [v for v, s in self.sorts.items() if s == "Tensors" and find(v) == v]
        for variable in lists:
            uses = [
                a
                for a in self.query.applies
                if any(find(arg) == variable for arg in (*a.args[:1], a.result or Literal(0)))
            ]
            written = [a.args for a in uses if a.head == "vec-of"]
            counts = [find(a.result) for a in uses if a.head == "vec-length" and a.result]
            gets = [a for a in uses if a.head == "vec-get"]
            places = [p.value for a in gets if isinstance(p := find(a.args[1]), Literal)]
            known = [len(w) for w in written]
            known += [int(c.value) for c in counts if isinstance(c, Literal)]
            least = max([int(p) + 1 for p in places], default=1)
            count = known[0] if known else self.random.randint(least, max(least, 3))
            if count < least:
                raise Contradiction(f"{count} tensors have no number {least - 1}")
            names = tuple(f"{variable} [{k}]" for k in range(count))
            self.elements[variable] = names
            for name in names:
                self.sorts[name] = "Tensor"
            for args in written:
                if len(args) != count:
                    raise Contradiction(f"{len(args)} tensors are not {count}")
                for name, arg in zip(names, args, strict=True):
                    unite(name, arg)
            for length in counts:
                unite(length, Literal(count))
            for apply in gets:
                at = find(apply.args[1])
                if isinstance(at, str):
                    unite(at, Literal(self.random.randrange(count)))
                    at = find(at)
                if apply.result is not None and isinstance(at, Literal):
                    if not 0 <= int(at.value) < count:
                        raise Contradiction(f"{count} tensors have no number {at.value}")
                    unite(names[int(at.value)], apply.result)

    def facts(self) -> "_Facts":
        facts = _Facts()
        for apply in self.query.applies:
            x = str(apply.args[0]) if apply.args else ""
            other = apply.result
            if other is None and apply.head in _FUNCTIONS:
                other = self.query.variable()
            match apply.head:
                case "shape-of" | "dtype-of" if other is not None:
                    self.same.unite(other, self.of(apply.args[0], apply.head.removesuffix("-of")))
                case "shape-claim" | "dtype-claim":
                    self.same.unite(apply.args[1], self.of(apply.args[0], apply.head[:5]))
                case "rank-of":
                    shape = self.of(apply.args[0], "shape")
                    facts.premises.append(Apply("vec-length", (shape,), other, apply.form))
                case "numel-of":
                    shape = self.of(apply.args[0], "shape")
                    facts.premises.append(Apply("product", (shape,), other, apply.form))
                case "const-scalar" if other is not None:
                    if x in facts.scalars:
                        self.same.unite(facts.scalars[x], other)
                    facts.scalars[x] = other
                case "is-const":
                    facts.constants.append(x)
                case "within-tolerance" | "has-reciprocal":
                    facts.constants.append(x)
                    facts.premises.append(apply)
                case "source-index" if other is not None:
                    facts.positions[x] = other
                case "uses-of" | "only-used-by":
                    facts.uses.append(apply)
                case head if head.startswith(("R.", "K.")) or head in ("Leaf", "Value"):
                    pass
                case "vec-of" | "vec-get" | "vec-length" if self.on_tensors(apply):
                    pass
                case _:
                    facts.premises.append(apply)
        return facts

    def on_tensors(self, apply: Apply) -> bool:
        sides = (*apply.args[:1], *(() if apply.result is None else (apply.result,)))
        return any(self.sort(s) == "Tensors" for s in sides)

    def of(self, tensor: Arg, what: str) -> str:
        """The variable for the shape or dtype of `tensor`."""
        return f"{self.same.find(tensor)} {what}"

    def node(self, apply: Apply) -> Application:
        traits = operators().get(apply.head[2:])
        if traits is None and apply.head not in _SPECIAL:
            raise Contradiction(f"{apply.head} is not drawn")
        assert isinstance(apply.result, str)
        result = self.same.find(apply.result)
        if not isinstance(result, str):
            raise Contradiction(f"{apply.text} is no literal")
        self.sorts.setdefault(result, self.declarations[apply.head].result)
        op = traits.op if traits else None
        return Application(apply.head, op, apply.args, result, apply.text, apply.built)

    def share_shapes(self, node: Application) -> None:
        if node.head in ("K.load", "K.store"):
            self.same.unite(self.of(node.args[0], "shape"), self.of(node.result, "shape"))
            self.same.unite(self.of(node.args[0], "dtype"), self.of(node.result, "dtype"))
            return
        if node.head in _CALLS:
            self.same.unite(node.args[2], self.of(node.result, "shape"))
            self.same.unite(node.args[3], self.of(node.result, "dtype"))
            return
        if node.op is None or self.sort(node.result) == "Tuple":
            return
        result = self.of(node.result, "shape")
        kinds = [o.kind for o in node.op.operands]
        if node.op.elementwise:
            for arg, kind in zip(node.args, kinds, strict=False):
                if kind == "tensor":
                    self.same.unite(self.of(arg, "shape"), result)
        elif keeps_shape(node.op):
            self.same.unite(self.of(node.args[0], "shape"), result)
        elif node.op.name in SHAPED:
            self.same.unite(node.args[kinds.index("shape")], result)


def _refuse_false(premise: Apply, args: Sequence[Arg]) -> None:
    """Raise `Contradiction` for a comparison of literals that does not hold, of a bound with 0."""
    values = tuple(a.value for a in args if isinstance(a, Literal))
    if len(values) == len(args) and premise.result is None and computes(premise.head):
        try:
            holds = compute(premise.head, values)
        except Fails:
            holds = False
        if holds is not True:
            raise Contradiction(premise.text)


def _refuse_cycles(
    producers: Mapping[str, Application], elements: Mapping[str, tuple[str, ...]]
) -> None:
    """Raise `Contradiction` if a value would be its own operand."""
    done: set[str] = set()
    above: set[str] = set()
    stack = [(v, False) for v in producers]
    while stack:
        variable, leaving = stack.pop()
        if leaving:
            above.discard(variable)
            done.add(variable)
        elif variable in above:
            raise Contradiction(f"{producers[variable].text} is an operand of itself")
        elif variable not in done and variable in producers:
            above.add(variable)
            stack.append((variable, True))
            for arg in producers[variable].args:
                stack += [(t, False) for t in elements.get(str(arg), (str(arg),)) if t not in done]


@dataclass(slots=True)
class _Facts:
    premises: list[Apply] = field(default_factory=list[Apply])
    scalars: dict[str, Arg] = field(default_factory=dict[str, Arg])
    constants: list[str] = field(default_factory=list[str])
    positions: dict[str, Arg] = field(default_factory=dict[str, Arg])
    uses: list[Apply] = field(default_factory=list[Apply])


_FUNCTIONS = ("shape-of", "dtype-of", "rank-of", "numel-of", "const-scalar", "source-index")
_ELEMENT = {"Tensors": "Tensor", "Shape": "Dim", "Axes": "i64", "Floats": "f64"}
_CALLS = tuple(f"R.{op}" for op in CALLS)
_SPECIAL = ("R.none", "R.const", "R.tuple_get", "K.load", "K.store", *_CALLS)
