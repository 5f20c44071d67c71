"""LLVM functions, written in the order of execution, with structured branches.

    f = Function(module, "axpy", (PTR, PTR, I64))
    x, y, n = f.args
    with f.loop(0, n) as loop:
        place = f.address(y, loop.index, F32)
        f.store(f.load(f.address(x, loop.index, F32), F32) * 2.0 + f.load(place, F32), place)
    f.finish()

Types come from `module_text`, arithmetic, calls, memory and loops from `instructions`, masks,
shuffles and reductions over lanes from `vector`.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager

from relax_egraph.lower.emit.instructions import Instructions, Value
from relax_egraph.lower.emit.module_text import Module, Type

Arms = tuple[AbstractContextManager[None], AbstractContextManager[None]]
"""The two blocks of `Function.either`."""


class Function(Instructions):
    """A function of `module`, written in the order of execution; `finish` adds it."""

    def __init__(
        self,
        module: Module,
        name: str,
        params: Sequence[Type],
        *,
        result: Type | None = None,
        internal: bool = False,
    ) -> None:
        super().__init__(module)
        self.name = name
        self.result = result
        self.internal = internal
        self.args = tuple(Value(self, type, f"%a{i}") for i, type in enumerate(params))

    # --- branches ---------------------------------------------------------------------

    @contextmanager
    def forever(self) -> Generator[Callable[[Value], None]]:
        """``while True: …``; yields a function that leaves the loop if its condition holds.

        The loop carries no values: iterations communicate through memory.
        """
        head, end = self._label(), self._label()
        self.line(f"br label %{head}")
        self._open(head)

        def leave(condition: Value) -> None:
            stay = self._label()
            self._branch(condition, end, stay)
            self._open(stay)

        yield leave
        self.line(f"br label %{head}")
        self._open(end)

    @contextmanager
    def when(self, condition: Value) -> Generator[None]:
        """``if condition:``."""
        then, end = self._label(), self._label()
        self._branch(condition, then, end)
        with self._arm(then, end):
            yield
        self._open(end)

    @contextmanager
    def either(self, condition: Value) -> Generator[Arms]:
        """``if condition: … else: …``: ``with f.either(c) as (then, otherwise)``.

        The two blocks are written one after the other: ``with then: …``.
        """
        then, otherwise, end = self._label(), self._label(), self._label()
        self._branch(condition, then, otherwise)
        yield self._arm(then, end), self._arm(otherwise, end)
        self._open(end)

    @contextmanager
    def _arm(self, label: str, end: str) -> Generator[None]:
        self._open(label)
        yield
        self.line(f"br label %{end}")

    def finish(self, result: Value | None = None) -> None:
        """Return `result`, and add the function to its module."""
        params = ", ".join(map(str, self.args))
        linkage = "internal " if self.internal else ""
        bits = self.module.target.vector_bits
        self.line("ret void" if result is None else f"ret {result}")
        body = "\n".join([*self._entry, *self._lines])
        self.module.define(
            self.name,
            tuple(a.type for a in self.args),
            f"define {linkage}{self.result or 'void'} @{self.name}({params}) nounwind "
            f'"prefer-vector-width"="{bits}" {{\nentry:\n{body}\n}}\n',
        )
