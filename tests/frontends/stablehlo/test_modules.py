"""StableHLO as text, bytecode and files, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import ModelError

pytest.importorskip("jaxlib")

TEXT = """module {
  func.func @main(%x: tensor<?x3xf32> loc("x"), %y: tensor<3xf32> loc("y")) -> tensor<?x3xf32> {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %c = stablehlo.constant dense<3> : tensor<1xi32>
    %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %s = stablehlo.concatenate %r, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %b = stablehlo.dynamic_broadcast_in_dim %y, %s, dims = [1]
      : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %z = stablehlo.add %x, %b : tensor<?x3xf32>
    return %z : tensor<?x3xf32>
  }
}
"""


def body(line: str, kind: str = "tensor<4xf32>") -> str:
    """A module whose main is the operation `line` on ``%x``."""
    return f"func.func @main(%x: {kind}) -> {kind} {{\n  {line}\n  return %r : {kind}\n}}\n"


def test_text_and_files_are_read_and_unknown_sizes_are_symbols(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    x, y = np.ones((2, 3), "float32"), np.arange(3, dtype="float32")

    modules = [rx.from_stablehlo(TEXT), rx.from_stablehlo(TEXT.encode()), rx.from_stablehlo(path)]

    scripts = {module.script() for module in modules}
    assert len(scripts) == 1
    assert 'x: R.Tensor(("x_0", 3), "float32")' in scripts.pop()
    main = rx.VirtualMachine(rx.build(rx.optimize(modules[0])))["main"]
    np.testing.assert_array_equal(main(x, y), x + y)


def test_bytecode_has_the_names_of_jax() -> None:
    jax = pytest.importorskip("jax")
    export = pytest.importorskip("jax.export")
    specs = [
        jax.ShapeDtypeStruct(export.symbolic_shape(names, scope=scope), "float32")
        for scope in [export.SymbolicScope()]
        for names in ("b, 4", "b, c")
    ]
    exported = export.export(jax.jit(lambda x, y: x.sum() + y))(*specs)

    module = rx.from_stablehlo(exported.mlir_module_serialized)

    main = dict(module.relax_functions())["main"]
    infos = [str(p.struct_info) for p in main.params]
    assert infos == ['R.Tensor((b, 4), "float32")', 'R.Tensor((b, c), "float32")']


def test_operations_that_jax_seldom_writes() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>, %i: tensor<i32>)
        -> (tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %sum = "stablehlo.reduce"(%x, %zero) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %t = stablehlo.tanh %a : tensor<f32>
          %u = stablehlo.subtract %b, %t : tensor<f32>
          stablehlo.return %u : tensor<f32>
      }) {dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
      %case = "stablehlo.case"(%i) ({
        %t = stablehlo.tanh %x : tensor<2x3xf32>
        stablehlo.return %t : tensor<2x3xf32>
      }, {
        stablehlo.return %x : tensor<2x3xf32>
      }) : (tensor<i32>) -> tensor<2x3xf32>
      %inf = chlo.erf_inv %x : tensor<2x3xf32> -> tensor<2x3xf32>
      return %sum, %case, %inf : tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>
    }
    """
    main = rx.VirtualMachine(rx.build(rx.optimize(rx.from_stablehlo(text))))["main"]
    x = np.linspace(-0.9, 0.9, 6, dtype="float32").reshape(2, 3)

    total, chosen, inverse = main(x, np.int32(0))

    want = np.zeros(2)
    for k in range(3):
        want = x[:, k] - np.tanh(want)
    np.testing.assert_allclose(total, want, rtol=1e-5)
    np.testing.assert_allclose(chosen, np.tanh(x), rtol=1e-5)
    np.testing.assert_array_equal(main(x, np.int32(7))[1], x)
    assert inverse[1, 2] == pytest.approx(1.163087, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            body("%r = stablehlo.cholesky %x, lower = true : tensor<2x2xf32>", "tensor<2x2xf32>"),
            "stablehlo.cholesky: the operation is not supported: line 2, column 8",
        ),
        (
            body("%r = stablehlo.custom_call @mine(%x) : (tensor<4xf32>) -> tensor<4xf32>"),
            "stablehlo.custom_call: the custom call mine is not supported: line 2, column 8",
        ),
        (
            body("%r = stablehlo.add %x, %x : tensor<4xcomplex<f32>>", "tensor<4xcomplex<f32>>"),
            "input 'arg0': tensors of complex<f32> are not supported",
        ),
        (
            body("%r = stablehlo.add %x, : tensor<4xf32>"),
            "the StableHLO module is malformed: line 2, column 25: expected SSA operand",
        ),
        ("module {\n}", "the module has no function"),
        ("missing.mlir", "no file missing.mlir"),
    ],
)
def test_what_cannot_be_imported_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ModelError) as refusal:
        rx.from_stablehlo(text)

    assert str(refusal.value).splitlines()[-1].strip() == message
