"""The operators in force: the built-in ones, and those of users.

    with rx.operators(gelu_tanh):          # in this block, in this thread
        best = rx.optimize(module, rules=["my.egg"])

    rx.register_operators(gelu_tanh)       # in the whole process, from now on

A set is a value that never changes.  A name is looked up in the set that is in force, and so is
all that depends on a set, such as the vocabulary of rules.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import lru_cache, wraps
from threading import RLock
from typing import Any, Literal, ParamSpec, TypeVar, cast

from relax_egraph.base.forks import free_in_forks
from relax_egraph.base.parameters import Kind, takes
from relax_egraph.base.plugins import add_plugins
from relax_egraph.errors import OperatorError, nearest
from relax_egraph.ir.op import OPS, Op
from relax_egraph.ir.own import Own

P = ParamSpec("P")
R = TypeVar("R")

_KEPT = 64
"""The most sets that are kept, and values of a function for each of them."""


@dataclass(frozen=True, eq=False)
class Operators:
    """The built-in operators and `own`, those of users, in the order of their names.

    There is one value for each set; `operator_set` makes it.
    """

    own: tuple[Op, ...] = ()

    def get(self, name: str) -> Op | None:
        """The operator `name`; ``None`` if the set has none."""
        return OPS.get(name) or next((op for op in self.own if op.name == name), None)

    def __iter__(self) -> Iterator[str]:
        """The names of all operators, the built-in ones first."""
        yield from OPS
        yield from (op.name for op in self.own)

    def union(self, more: Iterable[Op]) -> "Operators":
        """The set with `more` operators; raises `OperatorError` for a name of another one."""
        by_name = {op.name: op for op in self.own}
        for op in more:
            if by_name.setdefault(op.name, op) != op:
                raise OperatorError(f"the name {op} is taken by another operator in force")
        return operator_set(tuple(by_name[name] for name in sorted(by_name)))

    @contextmanager
    def in_force(self) -> Generator[None]:
        """Look up operators in this set inside, in this thread."""
        token = _IN_FORCE.set(self)
        try:
            yield
        finally:
            _IN_FORCE.reset(token)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle operators of users by value, as a worker does not import the user's script."""
        return _received, (_code(self),)


@lru_cache(_KEPT)
def operator_set(own: tuple[Op, ...]) -> Operators:
    """The set of the built-in operators and `own`, which are sorted by name."""
    return Operators(own)


_IN_FORCE: ContextVar[Operators | None] = ContextVar("operators", default=None)

GROUP = "relax_egraph.operators"
"""The entry points of plug-ins: an operator each, or several."""


@dataclass(slots=True)
class _Process:
    """The set in force outside of blocks, and whether plug-ins have added to it."""

    operators: Operators
    plugins: Literal["unknown", "loading", "loaded"] = "unknown"


_process = _Process(operator_set(()))
_loading = free_in_forks(RLock())


def in_force() -> Operators:
    """The set that is in force."""
    return _IN_FORCE.get() or of_process()


def of_process() -> Operators:
    """The set that is in force outside of blocks: that of plug-ins and of registrations."""
    if _process.plugins != "loaded":
        with _loading:
            if _process.plugins == "unknown":
                _process.plugins = "loading"
                with _process.operators.in_force():  # for what plug-ins look up
                    add_plugins(GROUP, _add)
                _process.plugins = "loaded"
    return _process.operators


def _add(_: str, value: Any) -> None:
    several = cast(Sequence[Op], value if isinstance(value, list | tuple) else [value])
    for one in several:
        _OPERATOR.check("its value", one)
    _register(several)


def _register(ops: Iterable[Op]) -> None:
    with _loading:
        _process.operators = _process.operators.union(ops)
    if _IN_FORCE.get() is not None:
        _IN_FORCE.set(in_force().union(ops))


def _is_own(value: object) -> bool:
    return isinstance(value, Op) and value.own is not None


_OPERATOR = Kind("an operator that rx.operator defines", _is_own)


def find(name: str) -> Op | None:
    """The operator in force that is called `name`: ``nn.relu``; ``None`` if there is none."""
    return OPS.get(name) or in_force().get(name)


def named(name: str) -> Op:
    """The operator in force that is called `name`; raises `OperatorError` if there is none."""
    op = find(name)
    if op is None:
        raise OperatorError("; ".join(filter(None, (f"unknown operator R.{name}", near(name)))))
    return op


def near(name: str) -> str:
    """The note on a `name` without an operator: a near one, or how one of a user is in force."""
    every = [*in_force()]
    if "." in name and not any(known.startswith(f"{name.split('.')[0]}.") for known in every):
        return "an operator of a user is in force in `with rx.operators(...):`"
    return nearest(f"R.{name}", [f"R.{known}" for known in every])


def by_operators(size: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Memoise a function separately for each set of operators in force, the last `size` values."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @lru_cache(size)
        def answer(_: Operators, *args: Any, **kwargs: Any) -> R:
            return cast(Callable[..., R], function)(*args, **kwargs)

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            return answer(in_force(), *args, **kwargs)

        return wrapper

    return decorate


@takes(ops=_OPERATOR)
@contextmanager
def operators(*ops: Op) -> Generator[None]:
    """Have operators of users in force inside, in this thread, beside those that are.

    Raises `OperatorError` for a name that another operator in force has.
    """
    with in_force().union(ops).in_force():
        yield


@takes(ops=_OPERATOR)
def register_operators(*ops: Op) -> None:
    """Have operators of users in force in the whole process, from now on: once, by a plug-in.

    In other threads, ``with operators(...)`` blocks that have begun do not get them.  Raises
    `OperatorError` for a name that another operator in force has.
    """
    _register(ops)


@lru_cache(_KEPT)
def _code(of: Operators) -> bytes:
    """The operators of users in `of`, without what only this process needs."""
    from relax_egraph.base import by_value  # loaded with the first set that is sent

    try:
        return by_value.dumped([*map(_sent, of.own)]) if of.own else b""
    except Exception as problem:
        names = ", ".join(map(str, of.own))
        raise OperatorError(
            f"the functions of {names} cannot be sent to a worker process: {problem}; "
            "define them without what does not pickle, or optimize with isolate=False"
        ) from None


def _sent(op: Op) -> dict[str, Any]:
    assert op.own
    return {f.name: getattr(op, f.name) for f in fields(op)} | {"own": Own(op.own.reference)}


@lru_cache(_KEPT)
def _received(code: bytes) -> Operators:
    """The set in `code`; there is one value for equal codes."""
    if not code:
        return operator_set(())
    from relax_egraph.base import by_value

    return operator_set(tuple(Op(**values) for values in by_value.loaded(code)))
