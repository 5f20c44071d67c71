"""Resolves the names that code calls to packed functions, for one machine."""

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
    """The packed functions of `executable` by name.

    Names are looked up in `packed`, `kernels`, the registered functions, and the builtins;
    `RunError` lists the missing ones.
    """
    tables = (_converting(packed.get), kernels.get, _converting(registered), BUILTINS.get)
    resolved: dict[str, Packed | Builtin] = {}
    missing: list[str] = []
    for name in executable.packed_names:
        chosen = next((f for f in (table(name) for table in tables) if f is not None), None)
        if chosen is None:
            missing.append(f"kernel {name}" if name in executable.kernel_names else name)
        else:
            resolved[name] = chosen
    if missing:
        raise RunError(
            f"no packed function {', '.join(missing)}: pass it in packed=, "
            "or register it with register_func"
        )
    return resolved


def _converting(table: Callable[[str], Packed | None]) -> Callable[[str], Packed | None]:
    """`table` of functions of the user: their results are converted for kernels."""

    def look_up(name: str) -> Packed | None:
        function = table(name)
        if function is None:
            return None
        return lambda *args: convert(f"the result of {name!r}", function(*args))

    return look_up
