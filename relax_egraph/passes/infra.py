"""Passes: functions from module to module that have a name, run under a context.

A `Pass` that is called runs; a pass inside a `Sequential` runs if the context enables it.
Instruments wrap every run, so that they see a pass that raises too.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, TypeAlias

from relax_egraph.errors import IllFormed
from relax_egraph.ir.depth import deep
from relax_egraph.ir.expr import Function
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.passes.options import OPTIONS, check_option

Transform: TypeAlias = Callable[[IRModule], IRModule]


@dataclass(frozen=True, slots=True)
class Pass:
    """A transformation of modules.

    `required` passes run just before this one.  A `Sequential` skips it under a context of
    an `opt_level` below its own.
    """

    name: str
    opt_level: int
    run: Transform
    required: tuple["Pass", ...] = ()

    def __call__(self, module: IRModule) -> IRModule:
        """Transform `module`, wrapped in the context's instruments, the first outermost."""
        for needed in self.required:
            module = needed(module)
        run = self.run
        for instrument in reversed(PassContext.current().instruments):
            run = _wrapped(instrument, self, run)
        with deep(IllFormed, f"{self.name}: the module is nested too deeply"):
            return run(module)


Instrument: TypeAlias = Callable[[Pass, IRModule, Transform], IRModule]
"""Gets the pass, the module and the rest of the work; returns what that work returned."""


def _wrapped(instrument: Instrument, running: Pass, run: Transform) -> Transform:
    return lambda module: instrument(running, module, run)


@dataclass(slots=True)
class PassContext:
    """Which passes of a `Sequential` run, and what watches them: ``with PassContext(...):``.

    Passes are named by their `name`; a disabled pass stays off even if it is required.
    `config` holds values of options that were declared by `declare_option`; it raises `ValueError`
    for any other, and for a value that is not of the option's type.
    """

    opt_level: int = 2
    required_pass: Sequence[str] = ()
    disabled_pass: Sequence[str] = ()
    instruments: Sequence[Instrument] = ()
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _entered: list[Token["PassContext | None"]] = field(
        default_factory=list[Token["PassContext | None"]], init=False, repr=False
    )

    def __post_init__(self) -> None:
        for key, value in self.config.items():
            check_option(key, value)

    def option(self, key: str) -> Any:
        """The value of a declared option: this context's, or its default."""
        return self.config.get(key, OPTIONS[key].default)

    @staticmethod
    def current() -> "PassContext":
        """The innermost context that is entered, or one of defaults."""
        return _current.get() or PassContext()

    def enables(self, candidate: Pass) -> bool:
        """Whether a `Sequential` runs `candidate` under this context."""
        if candidate.name in self.disabled_pass:
            return False
        return candidate.name in self.required_pass or self.opt_level >= candidate.opt_level

    def __enter__(self) -> "PassContext":
        self._entered.append(_current.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.reset(self._entered.pop())


_current: ContextVar[PassContext | None] = ContextVar("pass_context", default=None)


def module_pass(
    *, name: str, opt_level: int = 0, required: Sequence[Pass] = ()
) -> Callable[[Transform], Pass]:
    """Make a pass of a function from module to module."""
    return lambda run: Pass(name, opt_level, run, tuple(required))


def function_pass(
    *, name: str, opt_level: int = 0, required: Sequence[Pass] = ()
) -> Callable[[Callable[[Function, IRModule], Function]], Pass]:
    """Make a pass of what rewrites one relax function, given the module as it was before the pass.

    A module of which no function changed is returned itself.
    """

    def decorate(rewrite: Callable[[Function, IRModule], Function]) -> Pass:
        def run(module: IRModule) -> IRModule:
            functions: dict[str, BaseFunc] = dict(module.functions)
            for function_name, function in module.relax_functions():
                functions[function_name] = rewrite(function, module)
            changed = any(functions[n] is not f for n, f in module.functions.items())
            return replace(module, functions=functions) if changed else module

        return Pass(name, opt_level, run, tuple(required))

    return decorate


@dataclass(frozen=True, slots=True)
class Sequential:
    """Passes in order, those that the context enables; itself called and watched as a pass."""

    passes: "Sequence[Pass | Sequential]"
    name: str = "sequential"
    opt_level: int = 0

    def as_pass(self) -> Pass:
        """The sequence as one pass."""
        return Pass(self.name, self.opt_level, self._run)

    def __call__(self, module: IRModule) -> IRModule:
        """Transform `module` by each enabled pass."""
        return self.as_pass()(module)

    def _run(self, module: IRModule) -> IRModule:
        for step in self.passes:
            one = step.as_pass() if isinstance(step, Sequential) else step
            if PassContext.current().enables(one):
                module = one(module)
        return module
