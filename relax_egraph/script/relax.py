"""``from relax_egraph.script import relax as R``: the graph level, in Python files.

`function` reads the function that it decorates.  All other names are for readers and tools:
they have a meaning in a decorated body, which Python never runs.
Python does evaluate annotations: `Tensor` and its like accept any arguments, but a symbol must be
known to Python.  Any of these will do::

    def main(x: R.Tensor(("n", 4), "float32")): ...     # a string

    n = T.int64()                                       # a symbol of the file, or a TypeVar
    def main(x: R.Tensor((n, 4), "float32")): ...

    from __future__ import annotations                  # annotations are not evaluated at all
    def main(x: R.Tensor((n, 4), "float32")): ...       # n may be declared in the body

Nothing here has a type for type checkers, which therefore accept scripts.
"""

import inspect
import sys
from collections import abc
from typing import Any

from relax_egraph.errors import nearest
from relax_egraph.ir.operators import find, in_force
from relax_egraph.script.decorators import SPOKEN, decorated
from relax_egraph.script.eager_names import check_annotations
from relax_egraph.script.placeholders import Annotation, Name
from relax_egraph.script.spellings import today

Tensor: Any = Annotation("R.Tensor")
Shape: Any = Annotation("R.Shape")
Tuple: Any = Annotation("R.Tuple")
Prim: Any = Annotation("R.Prim")
Object: Any = Annotation("R.Object")
Callable: Any = Annotation("R.Callable")

_WORDS = (
    *("const", "shape", "tuple", "prim_value", "str", "ExternFunc", "emit", "func_attr"),
    *("dataflow", "output", "outputs", "match_cast", "match_shape", "shape_vars", "call_dps"),
)


def _function(
    definition: abc.Callable[..., Any] | None = None,
    /,
    *,
    private: bool = False,
    pure: bool = True,
    check_well_formed: bool = True,
) -> Any:
    """Read the decorated function as a `Function` of the graph level; in a class the class does.

    Its options are read from the source too.  Raises `ScriptError` at the place in the file.
    """
    del private, pure, check_well_formed
    frame = inspect.currentframe()
    return decorated(definition, "R.function", frame and frame.f_back)


def __getattr__(name: str) -> Any:
    if name in ("function", "func"):
        here = inspect.currentframe()
        check_annotations(here and here.f_back)
        return _function
    if name == "Any":
        return Object
    known = today(f"R.{name}").removeprefix("R.")
    operator, every = find(known), [*in_force()]
    if operator is not None or name in _WORDS or any(o.startswith(f"{name}.") for o in every):
        return Name(f"R.{name}", operator.meaning if operator else "")
    if name.startswith("__"):
        raise AttributeError(name)
    close = nearest(f"R.{name}", [f"R.{o}" for o in (*every, *_WORDS)])
    raise AttributeError(f"no name R.{name} in scripts{close and f', {close}'}")


def __dir__() -> list[str]:
    return sorted({*globals(), "function", *_WORDS, *(o.partition(".")[0] for o in in_force())})


SPOKEN[id(sys.modules[__name__])] = "R"
SPOKEN[id(_function)] = "R.function"
