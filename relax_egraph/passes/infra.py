"""Passes, sequences of passes, and the context that they run in.

A direct call of a `Pass` always runs it; inside a `Sequential`, it runs if the context enables it.
Instruments wrap every run, including runs that raise.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeAlias, overload

from relax_egraph.errors import IllFormed
from relax_egraph.ir.depth import deep
from relax_egraph.ir.expr import Function
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.passes.options import OPTIONS, check_option

Transform: TypeAlias = Callable[[IRModule], IRModule]

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Pass:
    """A named transformation of modules.

    `required` passes run just before this one.  A `Sequential` skips the pass if the `opt_level`
    of the context is below that of the pass.
    """

    name: str
    opt_level: int
    run: Transform
    required: tuple["Pass", ...] = ()

    @overload
    def __call__(self, module: IRModule) -> IRModule: ...

    @overload
    def __call__(self, module: Function) -> Function: ...

    def __call__(self, module: IRModule | Function) -> IRModule | Function:
        """Transform `module`, wrapped in the context's instruments, the first outermost.

        A function is transformed as the only one of a module.
        """
        if isinstance(module, Function):
            return self._alone(module)
        for needed in self.required:
            module = needed(module)
        run = self.run
        for instrument in reversed(PassContext.current().instruments):
            run = _wrapped(instrument, self, run)
        with deep(IllFormed, f"{self.name}: the module is nested too deeply"):
            return run(module)

    def _alone(self, function: Function) -> Function:
        kept = {"private": True} if function.attrs.get("private") else {}
        public = {k: v for k, v in function.attrs.items() if k not in kept}
        whole = replace(function, attrs=public) if kept else function
        changed = self(IRModule({"main": whole}))
        result = changed["main"] if [*changed.functions] == ["main"] else None
        if not isinstance(result, Function):
            names = ", ".join(changed.functions) or "none"
            raise IllFormed(
                f"{self.name}: the functions of its result are {names}; "
                "give it a module, not a function alone"
            )
        if result is whole:
            return function
        return replace(result, attrs={**result.attrs, **kept}) if kept else result


Instrument: TypeAlias = Callable[[Pass, IRModule, Transform], IRModule]
"""Takes the pass, the module and a function that runs it; returns the result of the function."""


def _wrapped(instrument: Instrument, running: Pass, run: Transform) -> Transform:
    return lambda module: instrument(running, module, run)


@dataclass(slots=True)
class PassContext:
    """The context of passes: ``with PassContext(...):`` selects passes and adds instruments.

    Passes are identified by their `name`; a disabled pass does not run even if it is required.
    `config` maps options, which `declare_option` declares, to values; an undeclared option and a
    value of the wrong type raise `ValueError`.
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
        """The innermost active context, or one with defaults."""
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


class ModuleTransformer(Protocol):
    """A class of passes: its instances transform modules."""

    def transform_module(self, module: IRModule, context: PassContext, /) -> IRModule:
        """The new module."""
        ...


class _ModulePass(Protocol):
    """Decorates a function, or a class of passes."""

    @overload
    def __call__(self, run: Callable[P, ModuleTransformer]) -> Callable[P, Pass]: ...

    @overload
    def __call__(self, run: Transform) -> Pass: ...

    def __call__(self, run: Any) -> Any: ...


def module_pass(*, name: str, opt_level: int = 0, required: Sequence[Pass] = ()) -> _ModulePass:
    """Decorator: make a pass of a function from module to module.

    A class with ``transform_module(module, context)`` becomes a function that takes the arguments
    of the class and returns a pass.
    """

    def decorate(run: Any) -> Any:
        if not isinstance(run, type):
            return Pass(name, opt_level, run, tuple(required))
        if not hasattr(run, "transform_module"):
            raise TypeError(
                f"@module_pass: the class {run.__name__} has no method "
                "transform_module(self, module, context)"
            )

        @wraps(run, updated=())
        def made(*args: Any, **options: Any) -> Pass:
            transformer: ModuleTransformer = run(*args, **options)

            def transform(module: IRModule) -> IRModule:
                return transformer.transform_module(module, PassContext.current())

            return Pass(name, opt_level, transform, tuple(required))

        return made

    return decorate


def function_pass(
    *, name: str, opt_level: int = 0, required: Sequence[Pass] = ()
) -> Callable[[Callable[[Function, IRModule], Function]], Pass]:
    """Decorator: make a pass of a function that rewrites one relax function.

    It takes the function and the module before the pass.  A module whose functions did not change
    is returned itself.
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
    """A sequence of passes, run in order if the context enables them; itself called as a pass."""

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
