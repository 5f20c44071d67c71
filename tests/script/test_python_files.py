"""Scripts in files of users: their symbols, what is taken over, and where mistakes are shown."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import ScriptError
from relax_egraph.ir import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.script import parse

HEAD = "from relax_egraph.script import ir as I, relax as R, tir as T\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a text as the file ``user.py`` of `tmp_path`."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(text: str) -> ModuleType:
        path = tmp_path / "user.py"
        path.write_text(text, "utf-8")
        spec = importlib.util.spec_from_file_location("user", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


SYMBOLS = {
    "strings": ("", '("n", 4)', "n = T.int64()"),
    "nothing but a string": ("", '("n", 4)', "pass"),
    "a symbol of the file": ("n = T.int64()", "(n, 4)", "pass"),
    "a symbol of an older script": ('n = T.var("n")', "(n, 4)", "pass"),
    "a type variable": ('from typing import TypeVar\nn = TypeVar("n")', "(n, 4)", "pass"),
}


@pytest.mark.parametrize("way", SYMBOLS)
def test_symbols_are_known_to_python_or_quoted(load: Any, way: str) -> None:
    around, shape, first = SYMBOLS[way]
    text = f"""{HEAD}
{around}
@R.function
def main(x: R.Tensor({shape}, "float32")):
    {first}
    y = R.reshape(x, (n * 4,))
    return y
"""

    main = load(text).main

    assert str(main.struct_info) == (
        'R.Callable((R.Tensor((n, 4), "float32"),), R.Tensor((n * 4,), "float32"), True)'
    )


def test_a_whole_annotation_may_be_a_string(load: Any) -> None:
    text = f"""{HEAD}
@R.function
def main(x: "R.Tensor((n, 4), 'float32')") -> "R.Tensor((n, 4), 'float32')":
    return x
"""

    main = load(text).main

    assert str(main.ret_struct_info) == 'R.Tensor((n, 4), "float32")'


@pytest.mark.parametrize("declared", ["n = T.int64()", "pass"])
def test_annotations_that_are_not_evaluated_need_nothing_known(load: Any, declared: str) -> None:
    text = f"""from __future__ import annotations
{HEAD}
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), "float32"), y: R.Tensor[(n, m), "f32"]):
        {declared}
        return R.matmul(R.permute_dims(x), y)
"""

    main = load(text).Module["main"]

    assert str(main.ret_struct_info) == 'R.Tensor((4, m), "float32")'


def test_any_name_of_the_script_modules_may_be_used(load: Any) -> None:
    text = """
import numpy as np
import relax_egraph.script.relax as relax
from relax_egraph import script
from relax_egraph.script import tir as loops
from relax_egraph.script.ir import ir_module
from relax_egraph.script.relax import Tensor, function, nn

DTYPE = np.float32

@ir_module
class Module:
    k = loops.int64()

    @loops.prim_func
    def f(A: loops.Buffer((2,), "float32"), B: loops.Buffer((2,), DTYPE)):
        for i in loops.grid(2):
            B[i] = loops.exp(A[i])

    @function(pure=True)
    def main(x: Tensor((2,), "float32"), z: Tensor((k, 2))):
        y = nn.relu(relax.exp(x))
        return script.relax.astype(y, np.dtype("int32"))
"""

    read = load(text).Module

    assert_structural_equal(
        read,
        parse("""
        @T.prim_func
        def f(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
            for i in T.grid(2):
                B[i] = T.exp(A[i])

        @R.function
        def main(x: R.Tensor((2,), "float32"), z: R.Tensor(("k", 2))):
            y = R.nn.relu(R.exp(x))
            return R.astype(y, "int32")
        """),
    )


def test_values_of_python_are_taken_over(load: Any) -> None:
    text = f"""{HEAD}
import numpy as np
AXES, EPS, ROWS = (1, 0), np.float32(0.25), [np.ones(2, np.float32), np.zeros(2, np.float32)]

class config:
    heads = 2
    name = "log"

@R.function(pure=False)
def main(x: R.Tensor((2, config.heads), "float32")):
    a = R.permute_dims(x, axes=AXES)
    b = R.add(a, ROWS[0])
    c = R.maximum(b, -EPS)
    d = R.reshape(c, (config.heads * len(AXES), 1))
    e = R.add(d, R.const(ROWS[1][0] + max(1, 2)))
    f = R.const(ROWS[0], "int64")
    R.call_packed(config.name + "_it", f, config.heads > 1)
    return e
"""

    read = IRModule({"main": load(text).main})

    assert_structural_equal(
        read,
        parse(
            """
        @R.function(pure=False)
        def main(x: R.Tensor((2, 2), "float32")):
            a = R.permute_dims(x, axes=[1, 0])
            b = R.add(a, metadata["relax.expr.Constant"][0])
            c = R.maximum(b, -0.25)
            d = R.reshape(c, (4, 1))
            e = R.add(d, R.const(2.0))
            f = R.const([1, 1], "int64")
            R.call_packed("log_it", f, True)
            return e
        """,
            constants=[np.ones(2, np.float32)],
        ),
    )


MISTAKES = {
    "an operator that does not exist": (
        "@R.function\ndef main(x: R.Tensor((3,), 'float32')):\n    y = R.exq(x)\n    return y\n",
        "4:9: unknown operator R.exq\n        y = R.exq(x)\n            ^\ndid you mean R.exp?",
    ),
    "a method": (
        "@I.ir_module\nclass M:\n    @R.function\n    def f(é: R.Object):\n        return (é, z)\n",
        "6:20: undefined variable z\n            return (é, z)\n                       ^",
    ),
    "what Python cannot compute": (
        "N = 0\n@R.function\ndef f(x: R.Tensor((3,), 'f32')):\n    return R.add(x, 1 / N)\n",
        "5:21: `1 / N`: ZeroDivisionError: division by zero\n"
        "        return R.add(x, 1 / N)\n                        ^",
    ),
    "a function outside of a module": (
        "@T.prim_func\ndef f(A: T.Buffer((3,), 'float32')):\n    pass\n"
        "@R.function\ndef main(x: R.Object):\n    f(x)\n    return x\n",
        "6:1: main refers to the function f, which is no part of it\n"
        "    def main(x: R.Object):\n    ^\n"
        "put both into a class with @I.ir_module",
    ),
    "an annotation that stands elsewhere": (
        "Row = R.Tensor((3,), 'float32')\n@R.function\ndef main(x: Row):\n    return x\n",
        "4:13: `Row` is an annotation that stands elsewhere\n"
        "    def main(x: Row):\n                ^\n"
        "write R.Tensor(…) in place",
    ),
    "a dimension that stands elsewhere": (
        "n = T.int64()\nm = n * 2\n@R.function\ndef main(x: R.Tensor((m,))):\n    return x\n",
        "5:23: `m` is computed of symbols: write it in place\n"
        "    def main(x: R.Tensor((m,))):\n                          ^",
    ),
    "an array that is no tensor": (
        "import numpy as np\nw = np.array(['a'])\n@R.function\ndef main(x: R.Object):\n"
        "    return (x, w)\n",
        "6:16: `w` is an array of <U1, needs one of bool, int8, int16, int32, int64, uint8, "
        "uint16, uint32, uint64, float16, bfloat16, float32, float64\n"
        "        return (x, w)\n                   ^",
    ),
    "an object that means nothing": (
        "w = object()\n@R.function\ndef main(x: R.Object):\n    return (x, w)\n",
        "5:16: undefined variable w\n        return (x, w)\n                   ^",
    ),
    "a name that is called outside": (
        "y = 1\nx = R.exp(y)\n",
        "3:5: R.exp has no meaning outside of a script\n    x = R.exp(y)\n        ^\n"
        "it is read, not run, in the body of what @R.function or @T.prim_func decorates",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_shown_in_the_file(load: Any, tmp_path: Path, mistake: str) -> None:
    text, expected = MISTAKES[mistake]

    with pytest.raises(ScriptError) as raised:
        load(HEAD + text)

    assert str(raised.value) == f"{tmp_path / 'user.py'}:{expected}"


def test_a_definition_without_a_source_is_refused() -> None:
    text = f"{HEAD}@R.function\ndef main(x: R.Object):\n    return x\n"

    with pytest.raises(ScriptError) as raised:
        exec(compile(text, "<typed>", "exec"), {})

    assert raised.value.message == (
        "the source of main is not to be had, a script is read from its source"
    )
