"""The overhead of the machine between kernels, on entry from Python, and before: nanoseconds."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import relax_egraph as rx
from bench import chains, peers
from bench.direct_calls import direct_calls
from bench.figure import Figure
from bench.program import Array
from bench.system import empty
from bench.timing import Run, least
from examples.digits.model import Digits, build_model
from relax_egraph.vm import Executable, VirtualMachine
from relax_egraph.vm.machine import Engine

COUNT = 1000
"""The kernels of a chain, and the iterations of a loop."""

STATIC, SYMBOLIC = ({"native": at_most, "interpreter": 2000.0} for at_most in (10.0, 20.0))
"""The bounds for each engine, for a kernel."""

ENTRY = {"native": 1000.0}
"""The bound for a call from Python."""

_ENGINES: Mapping[str, Engine] = {"native": "auto", "interpreter": "interpreter"}

_ENTRIES = """
@I.ir_module
class Module:
    @R.function
    def one(x: R.Tensor(("n",), "float32")):
        return R.negative(x)

    @R.function
    def more(
        x: R.Tensor(("n",), "float32"),
        y: R.Tensor(("n",), "float32"),
        z: R.Tensor(("n",), "float32"),
    ):
        with R.dataflow():
            u = R.add(R.add(x, y), z)
            v = R.multiply(x, y)
            R.output(u, v)
        return (u, v)
"""


class Tensor:
    """An array as a tensor of another library."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        """See `numpy.ndarray.__dlpack__`."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device: the processor."""
        return self._array.__dlpack_device__()


def dispatch_figures(seconds: float) -> list[Figure]:
    """Kernels of 8 elements, with the overhead between them."""
    steps = partial(_steps, seconds=seconds)
    static, symbolic = (rx.build(chains.chain(COUNT, symbolic=s)) for s in (False, True))
    return [
        *steps("kernel", static, bars=STATIC, beside=_kernels(static)),
        *steps("kernel, n symbolic", symbolic, bars=SYMBOLIC, beside=_kernels(symbolic)),
        *steps("branch, kernel", rx.build(chains.branches(COUNT)), args=[np.array(True)]),
        *steps("turn of a loop, 3 kernels", rx.build(chains.loop(COUNT))),
        *steps("function of Python, kernel", rx.build(chains.packed_between(COUNT))),
    ]


def entry_figures(seconds: float) -> list[Figure]:
    """Whole calls from Python, with 8 elements in each array."""
    x, y, z = (np.arange(chains.WIDTH, dtype=np.float32) + k for k in range(3))
    tensor = Tensor(x)
    exe = rx.build(rx.parse(_ENTRIES))
    vms = {name: _machine(exe, engine) for name, engine in _ENGINES.items()}
    cases: Mapping[str, tuple[Callable[[VirtualMachine], Run], Run]] = {
        "one input": (lambda vm: partial(vm["one"], x), lambda: np.negative(x)),
        "one input, by name": (lambda vm: partial(vm["one"], x=x), lambda: np.negative(x)),
        'one input, vm["one"](x)': (lambda vm: lambda: vm["one"](x), lambda: np.negative(x)),
        "one input, DLPack": (
            lambda vm: partial(vm["one"], tensor),
            lambda: np.negative(np.from_dlpack(tensor)),
        ),
        "3 inputs, 2 outputs": (
            lambda vm: partial(vm["more"], x, y, z),
            lambda: (x + y + z, x * y),
        ),
    }
    figures: list[Figure] = []
    for name, (ours, numpy) in cases.items():
        runs = {engine: ours(vm) for engine, vm in vms.items()}
        for run in runs.values():
            np.testing.assert_array_equal(run(), numpy())
        times = least({**runs, "numpy": numpy}, seconds)
        figures += _by_engine(name, times, ENTRY if name == "one input" else {})
    return figures


def digits_figures(seconds: float) -> list[Figure]:
    """The digit classifier on one image, at least as fast as numpy's own code for it."""
    digits = Digits.load()
    x = np.ascontiguousarray(digits.images[:1])
    module = build_model(digits.weights)
    main = _machine(rx.build(rx.optimize(module)))["main"]
    np.testing.assert_allclose(main(x), digits.logits(x), rtol=1e-4, atol=1e-4)
    runs: dict[str, Run] = {"native": partial(main, x), "numpy": partial(digits.logits, x)}
    if "onnxruntime" in peers.installed():
        runs["onnxruntime"] = peers.peer("onnxruntime")(module, 1)([x]).run
    times = least(runs, seconds)
    return _by_engine("digits, one image", times, {"native": times["numpy"] * 1e9})


def making_figures(seconds: float) -> list[Figure]:
    """The time before the first call of a chain and of the classifier."""
    figures: list[Figure] = []
    modules = {
        f"{COUNT} kernels": chains.chain(COUNT, symbolic=False),
        "digits": rx.optimize(build_model(Digits.load().weights)),
    }
    for name, module in modules.items():
        exe = rx.build(module)
        runs: dict[str, Run] = {"build, code from the cache": partial(rx.build, module)}
        for engine, named in _ENGINES.items():
            runs[f"create, {engine}"] = lambda named=named, exe=exe: _machine(exe, named)["main"]
        times = least(runs, seconds)
        figures += [Figure(f"{name}: {what}", time * 1e6) for what, time in times.items()]
    return figures


def _steps(
    name: str,
    executable: Executable,
    seconds: float,
    *,
    args: Sequence[Array] = (),
    bars: Mapping[str, float] | None = None,
    beside: Mapping[str, Run] | None = None,
) -> list[Figure]:
    """Both engines on `COUNT` steps, each of which adds 1 to its operand."""
    x = np.zeros(chains.WIDTH, np.float32)
    runs: dict[str, Run] = {
        name: partial(_machine(executable, engine)["main"], x, *args)
        for name, engine in _ENGINES.items()
    }
    for run in runs.values():
        np.testing.assert_array_equal(run(), x + COUNT)
    return _by_engine(name, least({**runs, **(beside or {})}, seconds), bars or {}, COUNT)


def _kernels(executable: Executable) -> dict[str, Run]:
    """Calls of a chain's kernel without a machine, and onnxruntime's own chain."""
    assert executable.linker is not None
    x, y = empty(chains.WIDTH), empty(chains.WIDTH)
    x[:] = 0
    runs = {"kernel alone": direct_calls(executable.linker(executable, 1)["one"], x, y, COUNT)}
    runs["kernel alone"]()
    np.testing.assert_array_equal(x, np.full(chains.WIDTH, COUNT))
    if compiled := peers.operator_by_operator():
        runs["onnxruntime"] = compiled(chains.additions(COUNT), 1)([x]).run
    return runs


def _by_engine(
    name: str, times: Mapping[str, float], bars: Mapping[str, float], steps: int = 1
) -> list[Figure]:
    """A line for each engine with a time, for one of `steps` steps."""
    each = {system: time * 1e9 / steps for system, time in times.items()}
    beside = {system: time for system, time in each.items() if system not in _ENGINES}
    return [
        Figure(f"{name}: {engine}", each[engine], bars.get(engine), beside)
        for engine in _ENGINES
        if engine in each
    ]


def _machine(executable: Executable, engine: Engine = "auto") -> VirtualMachine:
    return VirtualMachine(executable, {chains.PACKED: _same}, engine=engine, num_threads=1)


def _same(x: Array) -> Array:
    return x
