"""Run damaged executables: ``python -m tests.support.file_fuzz 0 1500`` prints each outcome.

With ``texts`` as a further argument, LLVM texts are damaged.

It is a process of its own, so that its death is seen; it prints each seed to standard error first.

Kernels rely on the memory that bytecode passes, which was proven at build time.  So no real kernel
runs where the damage may have changed that: kernels of the same types that do nothing replace them.
"""

import faulthandler
import json
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from random import Random
from typing import Any, NoReturn

import numpy as np

from relax_egraph import build, parse
from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.loading import link
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit import link as link_kernels
from relax_egraph.lower.jit.compiled import CompiledKernels
from relax_egraph.lower.jit.kernel_sets import compiled_kernels, fitting_kernels, head_of
from relax_egraph.lower.jit.machine_code import compiled_object
from relax_egraph.lower.jit.rebuild import rebuilt
from relax_egraph.vm import Executable, VirtualMachine
from relax_egraph.vm.binary import from_bytes
from relax_egraph.vm.machine import Engine
from relax_egraph.vm.sections import SECTIONS
from tests.support.file_mutations import mutated
from tests.support.native import MODULE, W, outcome, with_kernels, x_of
from tests.support.random_bytecode import Program, inputs
from tests.support.sectioned import contents_of

PATIENCE = 0.1
"""The time limit of one call in seconds; a damaged program may loop."""

HANGS = 120
"""The time limit of fifty calls; a longer run hangs where no signal gets through."""

MEMORY = 16 << 30
ENGINES: tuple[Engine, ...] = ("interpreter", "auto")

BRANCHES = """
@I.ir_module
class Module:
    @R.function(private=True)
    def down(
        x: R.Tensor((4,), "float32"), k: R.Tensor((), "int64")
    ) -> R.Tensor((4,), "float32"):
        cls = Module
        c = R.greater(k, R.const(0, "int64"))
        if c:
            y = R.add(x, R.const([1.0, 2.0, 3.0, 4.0], "float32"))
            j = R.subtract(k, R.const(1, "int64"))
            r = cls.down(y, j)
        else:
            r = x
        return r

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        return cls.down(x, R.const(3, "int64"))
"""


TEXTS = (b"<9999999 x", b"i65535", b"null", b"undef", b"asm", b"@llvm.trap", b"fence", b"x86_fp80")


def ask(*args: object) -> object:
    """A function of the user with any arguments, as damage changes those of a call.

    Files do not record the arity of user functions, and their exceptions are passed on.
    """
    return args[0] if args else None


PACKED = {"test.ask": ask}


@cache
def built() -> Executable:
    """An executable with kernels for several processors; the last set holds texts."""
    return build(parse(MODULE), ("native", "generic"), portable=True)


@cache
def subjects() -> list[tuple[Executable, bytes, tuple[Any, ...]]]:
    """Executables, their bytes, and arguments of ``main``."""
    executables: list[tuple[Executable, tuple[Any, ...]]] = [
        (with_kernels(Program(seed).write()), tuple(inputs(3))) for seed in range(24)
    ]
    executables += [(built(), (x_of(2), W))] * 6
    executables += [(build(parse(BRANCHES)), (np.zeros(4, np.float32),))] * 6
    return [(exe, exe.to_bytes(), arguments) for exe, arguments in executables]


def run(seed: int) -> str:
    """The outcome of the damaged executable number `seed`: the place of its refusal, or its runs.

    Raises exceptions other than errors of the format and of the machine.
    """
    original, whole, arguments = subjects()[seed % len(subjects())]
    kind, data = mutated(whole, seed)
    if data == whole:
        return f"{kind}: not damaged"
    try:
        executable = from_bytes(data)
        for kernels in executable.kernels:
            head_of(kernels)
    except ExecutableError as error:
        return f"{kind}: refused by the loader{'' if _names_section(error) else ', nowhere'}"
    assert executable.as_text()
    assert executable.stats()
    assert from_bytes(executable.to_bytes()) == executable
    same_kernels = executable.kernels == original.kernels
    executable = replace(
        executable, linker=_linked(same_kernels=same_kernels), driver=original.driver
    )
    try:
        vms = [VirtualMachine(executable, PACKED, engine=e, num_threads=1) for e in ENGINES]
    except (ExecutableError, RunError):
        return f"{kind}: refused by the machine"
    if "main" not in {f.name for f in executable.functions if not f.private}:
        assert _end(partial(vms[0].__getitem__, "main"), ()) == "refused"
    if _same_program(executable, original):
        executable = replace(executable, linker=link)
        expected, actual = (
            outcome(VirtualMachine(e, PACKED, num_threads=1), *arguments)
            for e in (original, executable)
        )
        assert actual == expected
        return f"{kind}: the same result"
    return f"{kind}: {_called(vms, arguments)}"


def _names_section(error: ExecutableError) -> bool:
    return str(error).startswith(("header: ", *(f"section {name}: " for name in SECTIONS)))


def _called(vms: list[VirtualMachine], arguments: tuple[Any, ...]) -> str:
    """The outcomes of calls of each function, which are equal in both engines."""
    ending = "runs"
    for f in vms[0].executable.functions:
        if f.private:
            assert _end(partial(vms[0].__getitem__, f.name), ()) == "refused"
            continue
        for args in (
            arguments,
            tuple(a[:0] for a in arguments),
            (),
            (1, (2, 3)),
            tuple(arguments[::-1]),
        ):
            ends: list[str] = []
            for vm in vms:
                ends.append(_end(vm[f.name], args))
                if ends[-1] == "loops":
                    return "loops"
            if ends != ["runs", "runs"]:
                ending = "a call is refused"
            if args is arguments and ends[0] not in ("runs", "refused"):
                return ends[0]
    return ending


def _end(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    try:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            function(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (RunError, ExecutableError):
        return "refused"
    except _TooLong:
        return "loops"
    return "runs"


def _same_program(a: Executable, b: Executable) -> bool:
    parts = ("functions", "callees", "code", "offsets", "constants", "tensors")
    ours, others = contents_of(a.to_bytes()), contents_of(b.to_bytes())
    return a.kernels == b.kernels and all(ours[name] == others[name] for name in parts)


def _linked(*, same_kernels: bool) -> Callable[..., Mapping[str, Callable[..., Any]]]:
    """Link kernels that exist, with kernels of the same types that do nothing."""

    def linker(executable: Executable, threads: int | None) -> Mapping[str, Callable[..., Any]]:
        if not executable.kernels:
            return {}
        compiled = fitting_kernels(executable.kernels)
        if not same_kernels:
            link_kernels(compiled)
        infos = {name: replace(info, symbol="nothing") for name, info in compiled.kernels.items()}
        return link_kernels(CompiledKernels(host(), {"nothing": _nothing()}, infos))

    return linker


def run_text(seed: int) -> str:
    """The outcome of a damaged LLVM text that is to be compiled."""
    random = Random(seed)
    texts = compiled_kernels(built().kernels[-1])
    name = random.choice(list(texts.objects))
    words = texts.objects[name].split(b" ")
    for _ in range(random.choice([1, 1, 2, 4])):
        place = random.randrange(len(words))
        words[place] = random.choice([*(words[random.randrange(len(words))],) * 4, *TEXTS, b""])
    damaged = replace(texts, objects={**texts.objects, name: b" ".join(words)})
    try:
        rebuilt(damaged, host())
    except ExecutableError as error:
        return "text: " + ("LLVM ended" if "ended with" in str(error) else "refused")
    return "text: compiled"


@cache
def _nothing() -> bytes:
    return compiled_object("define i32 @nothing() {\n  ret i32 0\n}\n", host())


class _TooLong(BaseException):
    pass


def _too_long(*_: object) -> NoReturn:
    raise _TooLong


def main() -> None:
    """Run the range of seeds on the command line; print the counts as JSON."""
    first, last = map(int, sys.argv[1:3])
    runs = run_text if sys.argv[3:] == ["texts"] else run
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _too_long)
    faulthandler.enable()
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        print(seed, file=sys.stderr, flush=True)
        if seed % 50 == 0:  # it costs a thread
            faulthandler.dump_traceback_later(HANGS, exit=True)
        counts[runs(seed)] += 1
    print(json.dumps(dict(sorted(counts.items())), indent=1))


if __name__ == "__main__":
    main()
