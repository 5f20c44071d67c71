"""Random bytecode: mostly the output of a compiler, sometimes arbitrary instructions.

Calls of kernels are safe to run: the writer tracks the registers with n initialised float32
elements, and passes only those to kernels.  By mistake, at random, it passes values that no kernel
accepts: integers, shapes, storages, heaps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from relax_egraph.vm import ExecBuilder
from relax_egraph.vm.bytecode import Operand
from relax_egraph.vm.exec_builder import Value

ROWS = 3
"""The extent ``n`` in intended runs of programs."""


class Writer:
    """Writes one function, whose first `parameters` registers are parameters.

    The heap has n in slot 0, 4·n in slot 1, and counters of loops from slot 4 on.
    """

    def __init__(self, builder: ExecBuilder, random: Random, parameters: int) -> None:
        self.random = random
        self.builder = builder
        self.asks = 0.0
        self.registers = parameters + 1
        self.heap = self.builder.r(parameters)
        self.vectors: list[Operand] = []  # of n elements
        self.others: list[Operand] = []
        self.results: list[Operand] = []  # of any number of elements: no kernel takes them
        self.slots = 4
        self.depth = 0
        self.callees: list[Callee] = []

    def new(self) -> Operand:
        self.registers += 1
        return self.builder.r(self.registers - 1)

    def chance(self, likelihood: float) -> bool:
        return self.random.random() < likelihood

    def vector(self) -> Operand:
        if self.others and self.chance(0.003):
            return self.random.choice(self.others)
        return self.random.choice(self.vectors)

    def any(self) -> Operand:
        return self.random.choice([*self.vectors, *self.others])

    def mostly_vector(self) -> Operand:
        return self.any() if self.chance(0.05) else self.random.choice(self.vectors)

    def call(self, name: str, *args: Value, dst: Operand | None = None) -> Operand:
        target = self.new() if dst is None else dst
        self.builder.emit_call(name, args, target)
        return target

    def builtin(self, name: str, *args: Value) -> Operand:
        return self.call(f"vm.builtin.{name}", *args)

    # --- steps ------------------------------------------------------------------------

    def begin(self, vectors: Sequence[str], others: Sequence[str] = (), count: str = "") -> None:
        """Check the parameters: `vectors` of n elements, `others` of 4, an integer `count`."""
        name = self.builder.r
        self.call("vm.builtin.alloc_shape_heap", SLOTS, dst=self.heap)
        for place, param in enumerate([*vectors, *others]):
            where, what = f"parameter {param}", "R.Tensor"
            first = "n -> @0" if place == 0 else "n == @0"
            extent = "4" if param in others else first
            self.builtin("check_tensor_info", name(place), where, what, 1, "float32")
            self.builtin("match_shape", name(place), self.heap, where, what, extent)
        if count:
            place = self.heap.value - 1  # the last parameter
            self.builtin("match_prim", name(place), self.heap, count, "R.Prim", f"{count} -> @4")
            self.slots = 5
        for slot, text in enumerate(self.dimensions(), start=1):
            self.builtin("compute_shapes", self.heap, slot, text)
        self.vectors += map(name, range(len(vectors)))
        self.others.append(self.heap)

    def dimensions(self) -> list[str]:
        wild = ["@0 // (@0 - 3)", "@0 * 4611686018427387904", "-@0"]
        mild = ["@0 + 1", "min(@0, 5) // 2", "@0 % 2", "max(@0, 2, @0 * 3)"]
        other = self.random.choice([*mild * 5, *wild])
        return ["@0 * 4", other, "7"]

    def uninitialised(self) -> Operand:
        """A new, uninitialised vector of n elements."""
        size = self.builtin("load_prim", self.heap, 1)
        offset = self.random.choice([0] * 200 + [4, 64] * 3 + [-4, 2])
        if offset > 0:
            size = self.builtin("copy", 8000)
        storage = self.builtin("alloc_storage", self.builder.vm_state(), size)
        shape = self.builtin("make_shape", self.heap, "@0")
        self.others += [size, storage, shape]
        return self.builtin("alloc_tensor", storage, offset, shape, "float32")

    def add(self) -> None:
        a, b = self.vector(), self.vector()
        out = self.uninitialised()
        count = self.builtin("load_prim", self.heap, 0)
        self.builder.emit_call("add", [a, b, out, count])
        self.vectors.append(out)
        self.others.append(count)

    def double(self) -> None:
        x = self.builtin("writable", self.vector())
        self.builder.emit_call("double", [x, self.builtin("load_prim", self.heap, 0)])

    def view(self) -> None:
        shape = self.builtin("make_shape", self.heap, *self.random.choice(VIEWS))
        self.others.append(self.builtin("reshape", self.vector(), shape))
        flat = self.builtin("make_shape", self.heap, "@0")
        self.vectors.append(self.builtin("reshape", self.others[-1], flat))

    def pack(self) -> None:
        fields = [self.any() for _ in range(self.random.randint(0, 3))]
        packed = self.builtin("make_tuple", *fields)
        self.others.append(packed)
        if fields:
            self.others.append(self.builtin("tuple_getitem", packed, 0))

    def measure(self) -> None:
        self.others.append(self.builtin("shape_of", self.mostly_vector()))
        self.others.append(self.builtin("load_shape", self.heap, 0, 3))
        self.others.append(self.builtin("size_of", self.others[-2], "float64"))

    def check(self) -> None:
        pattern = self.random.choice([*["n == @0", "_", "m -> @3"] * 6, "7", "n == @1", "3"])
        self.builtin("match_shape", self.mostly_vector(), self.heap, "here", "what", pattern)

    def ask(self) -> None:
        """Call a function that is not a builtin, which no native program runs."""
        self.others.append(self.call("test.ask", self.any()))

    def branch(self) -> None:
        """Two ways to compute a vector, depending on a vector's elements or on n."""
        truth = self.truth()
        otherwise, end, result = self.builder.label(), self.builder.label(), self.new()
        self.builder.emit_if(truth, otherwise)
        self.arm(result)
        self.builder.emit_goto(end)
        self.builder.place(otherwise)
        if self.chance(0.1):
            self.builder.emit_call("vm.builtin.fatal", ["this was not to happen"])
        self.arm(result)
        self.builder.place(end)
        self.vectors.append(result)

    def truth(self) -> Operand:
        if self.chance(0.4):
            return self.builtin(
                "read_if_cond",
                self.builtin("prim_less_equal", self.builtin("load_prim", self.heap, 0), 2),
            )
        storage = self.builtin("alloc_storage", self.builder.vm_state(), 1)
        out = self.builtin("alloc_tensor", storage, 0, (), "bool")
        count = self.builtin("load_prim", self.heap, 0)
        self.builder.emit_call("is_large", [self.vector(), out, count])
        return self.builtin("read_if_cond", out)

    def arm(self, result: Operand) -> None:
        """Steps whose values are unused afterwards, except `result`."""
        vectors, others, results = list(self.vectors), list(self.others), list(self.results)
        self.steps(self.random.randint(0, 3))
        if self.chance(0.8):
            self.add()
        self.call("vm.builtin.copy", self.vectors[-1], dst=result)
        self.vectors, self.others, self.results = vectors, others, results

    # --- loops and calls --------------------------------------------------------------

    def loop(self) -> None:
        """A loop of a few iterations, with the test at its start or end."""
        if self.depth == 2 or self.slots >= SLOTS:
            return
        self.depth += 1
        slot, bound = self.slots, self.random.randint(0, 3)
        self.slots += 1
        carried = [self.builtin("copy", self.vector()) for _ in range(self.random.randint(1, 2))]
        vectors, others, results = list(self.vectors), list(self.others), list(self.results)
        self.vectors += carried
        self.builtin("compute_shapes", self.heap, slot, "0")
        again, end = self.builder.label(), self.builder.label()
        self.builder.place(again)
        if is_tested_first := self.chance(0.5):
            self.builder.emit_if(self.is_at_most(slot, bound), end)
        self.steps(self.random.randint(0, 3))
        self.builtin("compute_shapes", self.heap, slot, f"@{slot} + 1")
        following = [self.vector() for _ in carried]
        for place, vector in zip(carried, following, strict=True):
            self.call("vm.builtin.copy", vector, dst=place)
        if is_tested_first:
            self.builder.emit_goto(again)
        elif self.chance(0.5):
            self.builder.emit_if(self.is_at_most(slot, bound), end)
            self.builder.emit_goto(again)
        else:
            self.builtin("compute_shapes", self.heap, 3, f"{bound} - @{slot}")
            self.builder.emit_if(self.is_at_most(3, 0), again)
        self.builder.place(end)
        self.vectors, self.others, self.results = [*vectors, *carried], others, results
        self.depth -= 1

    def is_at_most(self, slot: int, bound: int) -> Operand:
        count = self.builtin("load_prim", self.heap, slot)
        return self.builtin("read_if_cond", self.builtin("prim_less_equal", count, bound))

    def called(self) -> None:
        """Call one of the other functions."""
        if self.callees:
            callee = self.random.choice(self.callees)
            result = callee.call(self)
            if callee.keeps_extent:
                self.vectors.append(result)
            else:
                self.results.append(result)

    def steps(self, count: int) -> None:
        kinds = [self.add] * 8 + [self.double, self.view, self.view, self.pack, self.measure]
        kinds += [self.check, self.branch, self.branch, self.loop, self.called, self.called]
        for _ in range(count):
            if self.chance(self.asks):
                self.ask()
            self.random.choice(kinds)()


@dataclass(frozen=True)
class Callee:
    """A function of `vectors` vectors and, with `counts`, of an integer where it starts to count.

    The vectors may be `packed` into a tuple.
    """

    name: str
    vectors: int
    counts: bool = False
    packed: bool = False
    keeps_extent: bool = True

    def call(self, writer: Writer) -> Operand:
        """Write a call of the function."""
        args: list[Value] = [writer.vector() for _ in range(self.vectors)]
        if self.packed:
            args = [writer.builtin("make_tuple", *args)]
        args += [writer.random.randint(-1, 3)] * self.counts
        if writer.chance(0.8):
            return writer.call(self.name, *args)
        split = writer.random.randint(0, len(args))
        function = writer.builder.f(self.name)
        closure = writer.builtin("make_closure", function, *args[split:])
        return writer.builtin("invoke_closure", closure, *args[:split])


class Program:
    """Writes ``main(x, y)`` of two float32 vectors, of n and of 4 elements, and its callees."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.builder = ExecBuilder()
        self.callees: list[Callee] = []

    def write(self) -> ExecBuilder:
        """Write all functions."""
        for number in range(self.random.choice((0, 0, 1, 1, 2, 3))):
            kinds = (self.plain, self.tail, self.tail, self.deep, self.growing, self.packed)
            self.callees.append(self.random.choice(kinds)(f"f{number}"))
        writer = Writer(self.builder, self.random, 2)
        writer.callees, writer.asks = self.callees, self.random.choice((0, 0, 0.2))
        with self.builder.function("main", 2, ["x", "y"], allow_unused=True):
            writer.begin(["x"], ["y"])
            writer.steps(self.random.randint(1, 12))
            results = [writer.vector() for _ in range(self.random.randint(1, 3))]
            if writer.chance(0.5):
                results.append(writer.any())
            results += writer.results
            self.builder.emit_ret(writer.builtin("make_tuple", *results))
        return self.builder

    def plain(self, name: str) -> Callee:
        """A function that calls only others."""
        writer = Writer(self.builder, self.random, 1)
        writer.callees = list(self.callees)
        with self.builder.function(name, 1, ["x"], allow_unused=True, private=True):
            writer.begin(["x"])
            writer.steps(self.random.randint(0, 4))
            self.builder.emit_ret(writer.vector())
        return Callee(name, 1)

    def packed(self, name: str) -> Callee:
        """A function of a tuple that returns the result of a recursive call."""
        writer = Writer(self.builder, self.random, 2)
        with self.builder.function(name, 2, ["p", "i"], allow_unused=True, private=True):
            writer.builtin("check_tuple_info", self.builder.r(0), "parameter p", "R.Tuple", 2)
            fields = [writer.builtin("tuple_getitem", self.builder.r(0), k) for k in range(2)]
            writer.begin([], count="i")
            for field, pattern in zip(fields, ("n -> @0", "n == @0"), strict=True):
                writer.builtin("check_tensor_info", field, "a field", "R.Tensor", 1, "float32")
                writer.builtin("match_shape", field, writer.heap, "a field", "R.Tensor", pattern)
            writer.builtin("compute_shapes", writer.heap, 1, "@0 * 4")
            writer.vectors += fields
            end = self.builder.label()
            self.builder.emit_if(writer.is_at_most(4, self.random.randint(0, 4)), end)
            vectors, others = list(writer.vectors), list(writer.others)
            writer.steps(self.random.randint(0, 3))
            writer.builtin("compute_shapes", writer.heap, 4, "@4 + 1")
            following = writer.builtin("make_tuple", writer.vector(), writer.vector())
            count = writer.builtin("load_prim", writer.heap, 4)
            self.builder.emit_ret(writer.call(name, following, count))
            self.builder.place(end)
            writer.vectors, writer.others = vectors, others
            self.builder.emit_ret(writer.vector())
        return Callee(name, 2, counts=True, packed=True)

    def recursive(
        self, name: str, count: int, again: Callable[[Writer, list[Value]], Operand]
    ) -> Callee:
        """A function that does something `again` until its counter reaches the end."""
        params = [f"x{k}" for k in range(count)]
        writer = Writer(self.builder, self.random, count + 1)
        with self.builder.function(
            name, count + 1, [*params, "i"], allow_unused=True, private=True
        ):
            writer.begin(params, count="i")
            writer.steps(self.random.randint(0, 1))
            end = self.builder.label()
            self.builder.emit_if(writer.is_at_most(4, self.random.randint(0, 4)), end)
            vectors, others = list(writer.vectors), list(writer.others)
            writer.steps(self.random.randint(0, 3))
            writer.builtin("compute_shapes", writer.heap, 4, "@4 + 1")
            self.builder.emit_ret(again(writer, [writer.builtin("load_prim", writer.heap, 4)]))
            self.builder.place(end)
            writer.vectors, writer.others = vectors, others
            self.builder.emit_ret(writer.vector())
        return Callee(name, count, counts=True)

    def tail(self, name: str) -> Callee:
        """A function that returns the result of a recursive call."""
        count = self.random.randint(1, 3)

        def again(writer: Writer, rest: list[Value]) -> Operand:
            return writer.call(name, *(writer.vector() for _ in range(count)), *rest)

        return self.recursive(name, count, again)

    def deep(self, name: str) -> Callee:
        """A function that uses the result of a recursive call."""

        def again(writer: Writer, rest: list[Value]) -> Operand:
            writer.vectors = [writer.call(name, writer.vector(), *rest)]
            writer.add()
            return writer.vectors[-1]

        return self.recursive(name, 1, again)

    def growing(self, name: str) -> Callee:
        """A function whose recursive calls have ever more elements."""

        def again(writer: Writer, rest: list[Value]) -> Operand:
            writer.builtin("compute_shapes", writer.heap, 2, "@0 * 8")
            size = writer.builtin("load_prim", writer.heap, 2)
            writer.builtin("compute_shapes", writer.heap, 2, "@0 * 2")
            shape = writer.builtin("make_shape", writer.heap, "@2")
            storage = writer.builtin("alloc_storage", self.builder.vm_state(), size)
            grown = writer.builtin("alloc_tensor", storage, 0, shape, "float32")
            extent = writer.builtin("load_prim", writer.heap, 0)
            self.builder.emit_call("repeat", [writer.vector(), grown, extent])
            return writer.call(name, grown, *rest)

        callee = self.recursive(name, 1, again)
        return replace(callee, keeps_extent=False)


SLOTS = 8
"""Slots of a heap."""

VIEWS = [*[["@0", "1"], ["1", "@0", "1"], ["@0"]] * 12, ["@3"], ["@0", "2"], ["-1", "@0", "-1"]]


def inputs(rows: int) -> list[np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Arguments of a program, `rows` for ``n``."""
    return [np.arange(rows, dtype=np.float32) + 2, np.arange(4, dtype=np.float32)]
