"""Random bytecode: mostly what a compiler would emit, now and then anything else.

What reaches a kernel is safe to run: the writer keeps account of which registers hold n float32
elements that have been written, and gives kernels nothing else by intent.  By mistake it gives them
what no kernel takes: integers, shapes, storages, heaps.
"""

from random import Random

import numpy as np

from relax_egraph.vm import ExecBuilder
from relax_egraph.vm.bytecode import Operand
from relax_egraph.vm.exec_builder import Value

ROWS = 3
"""The extent that ``n`` has when programs are run as they were meant."""


class Writer:
    """Writes one program: ``main(x, y)`` of two float32 vectors, of n and of 4 elements."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.builder = ExecBuilder()
        self.registers = 3
        self.heap = self.builder.r(2)
        self.vectors: list[Operand] = []  # of n elements
        self.others: list[Operand] = []

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

    # --- what programs do -------------------------------------------------------------

    def begin(self) -> None:
        x, y = self.builder.r(0), self.builder.r(1)
        self.call("vm.builtin.alloc_shape_heap", 4, dst=self.heap)
        for value, name, extent in ((x, "x", "n -> @0"), (y, "y", "4")):
            where, what = f"main: parameter {name}", "R.Tensor"
            self.builtin("check_tensor_info", value, where, what, 1, "float32")
            self.builtin("match_shape", value, self.heap, where, what, extent)
        for slot, text in enumerate(self.dimensions(), start=1):
            self.builtin("compute_shape", self.heap, slot, text)
        self.vectors.append(x)
        self.others.append(self.heap)

    def dimensions(self) -> list[str]:
        wild = ["@0 // (@0 - 3)", "@0 * 4611686018427387904", "-@0"]
        mild = ["@0 + 1", "min(@0, 5) // 2", "@0 % 2", "max(@0, 2, @0 * 3)"]
        other = self.random.choice([*mild * 5, *wild])
        return ["@0 * 4", other, "7"]

    def made(self) -> Operand:
        """A new vector of n elements, which nothing has written."""
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
        out = self.made()
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
        """Call what is no builtin: no native program runs that."""
        self.others.append(self.call("test.ask", self.any()))

    def branch(self) -> None:
        """Two ways to a vector, on what is in a vector or on what n is."""
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
        """Steps whose values nothing after them uses, but for `result`."""
        vectors, others = list(self.vectors), list(self.others)
        self.steps(self.random.randint(0, 3))
        if self.chance(0.8):
            self.add()
        self.call("vm.builtin.copy", self.vectors[-1], dst=result)
        self.vectors, self.others = vectors, others

    def steps(self, count: int) -> None:
        kinds = [self.add] * 8 + [self.double, self.view, self.view, self.pack, self.measure]
        kinds += [self.check, self.branch, self.branch]
        for _ in range(count):
            if self.chance(0.05):
                self.ask()
            self.random.choice(kinds)()

    def program(self) -> ExecBuilder:
        with self.builder.function("main", 2, ["x", "y"], allow_unused=True):
            self.begin()
            self.steps(self.random.randint(1, 12))
            results = [self.vector() for _ in range(self.random.randint(1, 3))]
            if self.chance(0.5):
                results.append(self.any())
            self.builder.emit_ret(self.builtin("make_tuple", *results))
        return self.builder


VIEWS = [*[["@0", "1"], ["1", "@0", "1"], ["@0"]] * 12, ["@3"], ["@0", "2"], ["-1", "@0", "-1"]]


def inputs(rows: int) -> list[np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Arguments of a program, `rows` for ``n``."""
    return [np.arange(rows, dtype=np.float32) + 2, np.arange(4, dtype=np.float32)]
