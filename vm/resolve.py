"""What the names that code calls stand for, in one machine."""

from collections.abc import Callable, Mapping

from relax_egraph.errors import RunError
from relax_egraph.vm.arguments import convert
from relax_egraph.vm.builtins import BUILTINS, Builtin, Packed
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.registry import registered


def resolve(
    executable: Executable,
    packed: Mapping[str, Packed],
    kernels: Mapping[str, Callable[..., object]],
) -> dict[str, Packed | Builtin]:
    """Each packed name of `executable`, and what is called by it.

    Looked for in `packed`, in `kernels`, among registered functions, among builtins; `RunError`
    lists those that are nowhere.
    """
    tables = (_converting(packed.get), kernels.get, _converting(registered), BUILTINS.get)
    found: dict[str, Packed | Builtin] = {}
    missing: list[str] = []
    for name in executable.packed_names:
        chosen = next((f for f in (table(name) for table in tables) if f is not None), None)
        if chosen is None:
            missing.append(f"kernel {name}" if name in executable.kernel_names else name)
        else:
            found[name] = chosen
    if missing:
        raise RunError(
            f"no packed function {', '.join(missing)}: give it in packed=, "
            "or register it with register_func"
        )
    return found


def _converting(table: Callable[[str], Packed | None]) -> Callable[[str], Packed | None]:
    """`table` of functions that others wrote: their results become what kernels take."""

    def look_up(name: str) -> Packed | None:
        function = table(name)
        if function is None:
            return None
        return lambda *args: convert(f"the result of {name!r}", function(*args))

    return look_up
