"""Executables with kernels for several processors, and with texts to make others of."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from relax_egraph import ir
from relax_egraph.errors import ExecutableError
from relax_egraph.ir.expr import Tuple
from relax_egraph.lower.emit.target import ANY, NOT_IN_KERNELS, Target, host, this_architecture
from relax_egraph.lower.jit import kernel_sets, rebuild
from relax_egraph.lower.jit.kernel_sets import compiled_kernels, fitting_kernels, head_of
from relax_egraph.lower.jit.objects import symbols_of
from relax_egraph.lower.jit.processors import processor
from relax_egraph.vm import Executable, KernelSet, VirtualMachine

pytestmark = pytest.mark.skipif(
    this_architecture() != "x86_64", reason="names processors of x86-64"
)

OTHERS = """
@R.function
def main(
    x: R.Tensor(("n", 12), "float32"), h: R.Tensor(("n", 12), "float16")
) -> R.Tuple(
    R.Tensor(("n", 12), "float32"),
    R.Tensor(("n", 12), "float16"),
    R.Tensor((12,), "float32"),
    R.Tensor(("n", 12), "int32"),
):
    with R.dataflow():
        y = R.nn.softmax(R.sin(x), axis=-1)
        g = R.nn.gelu(h)
        s = R.sum(R.multiply(x, x), axis=[0])
        i = R.astype(R.floor(R.multiply(x, R.const(100.0, "float32"))), "int32")
        R.output(y, g, s, i)
    return (y, g, s, i)
"""
TARGETS = ("native", "x86-64-v3", "generic", "aarch64")


@cache
def built() -> Executable:
    return rx.build(rx.parse(OTHERS), TARGETS, portable=True)


def inputs(rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, 12)).astype(np.float32) * 3
    return x, x.astype(np.float16)


def only(executable: Executable, *targets: str) -> Executable:
    """`executable` with the kernels for `targets` alone."""
    kept = tuple(k for k in executable.kernels if k.target in targets)
    return replace(executable, kernels=kept)


def runnable() -> list[str]:
    names = [name for name in TARGETS[:3] if not host().lacks(processor(name))]
    return [processor(name).cpu for name in names] + ["portable"]


# --- the same results -----------------------------------------------------------------


def test_all_kernel_sets_compute_the_same() -> None:
    for rows in (1, 5, 33):
        expected = VirtualMachine(built())["main"](*inputs(rows))
        for target in runnable():
            found = VirtualMachine(only(built(), target))["main"](*inputs(rows))
            for a, b in zip(expected, found, strict=True):
                ulps = 2.0**-9 if a.dtype == np.float16 else 2.0**-21
                np.testing.assert_allclose(a, b, rtol=ulps, atol=ulps, err_msg=target)


def test_an_encoder_runs_without_avx_and_rebuilt() -> None:
    executable = rx.build(encoder(Sizes(1)), ("native", "generic"), portable=True)
    x = np.random.default_rng(0).standard_normal((2, 9, 64)).astype(np.float32)
    mask = (np.arange(18).reshape(2, 9) % 5 != 3).astype(np.int64)
    expected = VirtualMachine(executable)["main"](x, mask)

    for target in ("x86-64", "portable"):
        found = VirtualMachine(only(executable, target))["main"](x, mask)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("targets", [("native", "x86-64-v3"), ("x86-64-v3", "native", "generic")])
def test_weights_packed_for_the_first_target_are_read_by_all(targets: tuple[str, ...]) -> None:
    executable = rx.build(products(), targets, portable=True)
    rng = np.random.default_rng(0)
    x, image = (rng.standard_normal(s).astype(np.float32) for s in ((13, 40), (1, 72, 9, 11)))
    expected = VirtualMachine(executable)["main"](x, image)

    for target in [k.target for k in executable.kernels]:
        found = VirtualMachine(only(executable, target))["main"](x, image)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=target)


def products() -> rx.IRModule:
    """Products with constants of three dtypes, and convolutions by tiles, rows and bands."""
    rng = np.random.default_rng(1)

    def drawn(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    x, image = (
        ir.Var("x", ir.tensor((13, 40), "float32")),
        ir.Var("image", ir.tensor((1, 72, 9, 11), "float32")),
    )
    bb = ir.BlockBuilder()
    with bb.function("main", [x, image]):
        with bb.dataflow():
            weights = [drawn(40, 150), (9 * drawn(40, 150)).astype(np.int8)]
            weights.append(drawn(40, 150).astype("bfloat16"))
            wide = [bb.emit(ir.call("astype", ir.const(w), dtype="float32")) for w in weights]
            results = [bb.emit_output(ir.call("matmul", x, w)) for w in wide]
            filters = [(80, 3, 1), (80, 1, 1), (130, 3, 2), (64, 5, 1), (20, 3, 1)]
            results += [
                bb.emit_output(
                    ir.call(
                        *("nn.conv2d", image, ir.const(drawn(n, 72, size, size))),
                        strides=(stride, stride),
                    )
                )
                for n, size, stride in filters
            ]
        bb.emit_func_output(Tuple(tuple(results)))
    return bb.get()


# --- names ----------------------------------------------------------------------------


def test_processors_are_those_that_llvm_knows() -> None:
    v3, v4 = processor("x86-64-v3"), processor("x86-64-v4")

    assert processor("native") == host()
    assert processor("generic") == Target("x86-64", processor("x86-64").features, 128)
    assert {"avx2", "fma", "bmi2", "f16c"} <= v3.features < v4.features
    assert (v3.vector_bits, v4.vector_bits) == (256, 512)
    assert "fma" not in processor("generic").features
    assert processor("aarch64:neoverse-n1").has_fma


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("haswel", "LLVM knows no processor 'haswel'; did you mean 'haswell'?"),
        ("nativ", "LLVM knows no processor 'nativ'; did you mean 'native'?"),
        (
            "",
            "LLVM knows no processor ''; a target is a processor, such as \"native\", "
            '"generic" or "x86-64-v3"; LLVM compiles for each',
        ),
        ("vax:780", "no code for 'vax', only for x86_64, aarch64"),
    ],
)
def test_a_name_that_llvm_does_not_know_is_refused(name: str, message: str) -> None:
    whole = re.escape(f"target {name!r}: {message}")

    with pytest.raises(ValueError, match=f"^{whole}$"):
        rx.build(rx.parse(OTHERS), [name])


def test_the_same_processor_twice_is_one_set() -> None:
    executable = rx.build(rx.parse(OTHERS), ("native", host().cpu, "native"))

    assert len(executable.kernels) <= 2
    assert next(k.target for k in executable.kernels) == host().cpu


# --- which set ------------------------------------------------------------------------


def test_the_set_that_fits_best_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = built().kernels
    assert fitting_kernels(sets).target == host()

    for cpu, chosen in (("x86-64-v4", "x86-64-v3"), ("x86-64-v2", "x86-64")):
        monkeypatch.setattr(kernel_sets, "host", lambda cpu=cpu: processor(cpu))
        assert fitting_kernels(sets).target.cpu == chosen


def test_what_no_set_fits_is_refused_or_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    old = processor("core2")
    monkeypatch.setattr(kernel_sets, "host", lambda: old)

    rebuilt = fitting_kernels(only(built(), "x86-64-v3", "portable").kernels)

    assert rebuilt.target == old
    assert set(rebuilt.kernels) == set(built().kernels[0].symbols)
    with pytest.raises(ExecutableError) as error:
        fitting_kernels(only(built(), "x86-64-v3", "generic", "aarch64").kernels[:1])
    assert str(error.value).startswith(
        "no kernels for this processor, core2: x86-64-v3 needs avx, avx2, bmi, bmi2, crc32, f16c"
    )


def test_code_of_another_architecture_is_refused() -> None:
    foreign = only(built(), "generic")

    with pytest.raises(ExecutableError, match="generic needs linux on aarch64"):
        VirtualMachine(foreign)


def test_what_systems_hide_is_not_needed() -> None:
    hidden = replace(host(), features=host().features | NOT_IN_KERNELS)

    assert host().lacks(hidden) == set()
    assert host().lacks(replace(host(), features=host().features | {"amx-new"})) == {"amx-new"}


def test_objects_for_another_architecture_are_of_it() -> None:
    (foreign,) = only(built(), "generic").kernels

    compiled = compiled_kernels(foreign)

    assert compiled.target == processor("aarch64")
    for name, data in compiled.objects.items():
        assert name in symbols_of(data, processor("aarch64")).defined
        with pytest.raises(ExecutableError, match="no ELF object for x86_64"):
            symbols_of(data, host())


# --- what is rebuilt ------------------------------------------------------------------


def test_texts_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", str(tmp_path))
    texts = only(built(), "portable").kernels
    first = fitting_kernels(texts)

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("these were to be found in the cache")

    monkeypatch.setattr(rebuild, "TiedProcess", refuse)

    assert fitting_kernels(texts) == first


def test_texts_name_no_instruction_of_a_processor() -> None:
    texts = compiled_kernels(only(built(), "portable").kernels[0])

    assert texts.target == ANY
    for text in texts.objects.values():
        assert b"llvm.x86" not in text
        assert b"@llvm.fma." not in text


def rewritten(old: bytes, new: bytes) -> KernelSet:
    """The texts with another word in them, of which a set is made as if they were ours."""
    compiled = compiled_kernels(only(built(), "portable").kernels[0])
    objects = {name: text.replace(old, new) for name, text in compiled.objects.items()}
    return kernel_sets.kernel_set(replace(compiled, objects=objects))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"define", b"defile", "expected top-level entity"),
        (b"ret void", b"ret i64 0", "value doesn't match function result type"),
        (b"@kernel_", b"@cornel_", "no text defines kernel_"),
        (b"define", b"d\xe9fine", "'ascii' codec can't decode"),
    ],
)
def test_a_text_that_does_not_compile_is_refused(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(ExecutableError) as error:
        fitting_kernels([rewritten(old, new)])

    assert str(error.value).startswith("section objects: LLVM text")
    assert message in str(error.value)


def test_a_text_at_which_llvm_ends_the_process_is_refused() -> None:
    line = b'entry:\n  call void asm "no instruction", ""()\n'

    with pytest.raises(ExecutableError, match="the process ended with "):
        fitting_kernels([rewritten(b"entry:\n", line)])


def test_a_text_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "PATIENCE", 0.01)

    with pytest.raises(ExecutableError, match=r"it takes more than 0\.01 s"):
        fitting_kernels([rewritten(b"entry:", b"entry: ")])


# --- in the file ----------------------------------------------------------------------


def test_all_sets_come_back_from_a_file(tmp_path: Path) -> None:
    built().save(tmp_path / "model.rxe")

    loaded = rx.load(tmp_path / "model.rxe")

    assert loaded == built()
    assert [k.target for k in loaded.kernels] == [
        *(host().cpu, "x86-64-v3", "x86-64", "generic", "portable")
    ]
    assert {frozenset(k.symbols) for k in loaded.kernels} == {loaded.kernel_names}


def test_objects_that_sets_share_are_saved_once() -> None:
    one = rx.build(rx.parse(OTHERS), ("x86-64-v3",))
    size = len(one.to_bytes())
    several = replace(one, kernels=one.kernels * 3)

    assert len(several.to_bytes()) < size + 1000


def test_statistics_say_what_each_set_takes() -> None:
    last = built().stats().splitlines()[-1]

    assert last.startswith(f"  kernels: {len(built().kernels[0].symbols)} in ")
    sizes = ", ".join(f"{k.target} {k.size}" for k in built().kernels)
    assert last.endswith(f": {sizes}")


def test_heads_that_lie_are_refused() -> None:
    (kernels,) = rx.build(rx.parse(OTHERS), ("generic",)).kernels
    name = next(iter(kernels.symbols))
    lies: Mapping[str, KernelSet] = {
        "the head is invalid": replace(kernels, code=b"{}"),
        "the symbols differ from the head": replace(
            kernels, symbols={**kernels.symbols, name: "main"}
        ),
        "the sizes of objects differ from the head": replace(kernels, objects=kernels.objects[:-1]),
    }

    for what, lie in lies.items():
        with pytest.raises(ExecutableError) as error:
            compiled_kernels(lie)
        assert str(error.value) == f"section kernels: kernels for 'x86-64': {what}"
    assert head_of(kernels).target == processor("generic")
