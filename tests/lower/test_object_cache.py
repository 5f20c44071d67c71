"""Objects on disk: found again, never half, never in the way."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from relax_egraph.base import sources
from relax_egraph.lower import jit
from relax_egraph.lower.emit.module_text import Module
from relax_egraph.lower.emit.target import Target, host, portable
from relax_egraph.lower.intrinsics import INTRINSICS, gemm
from relax_egraph.lower.jit import compile_kernels, compiling, link, machine_code, object_cache
from relax_egraph.lower.jit import version as versions
from relax_egraph.lower.jit.object_cache import ObjectCache, default_cache, default_folder, digest
from relax_egraph.lower.jit.version import compiler_version
from relax_egraph.tir.expr import Imm, TirVar
from relax_egraph.tir.stmt import PrimFunc, Store, TensorIntrinsic
from tests.support.kernels import buffer, loop, n


def test_what_was_put_is_found_again(tmp_path: Path) -> None:
    ObjectCache(tmp_path / "a" / "b").put("key", b"code")

    found = ObjectCache(tmp_path / "a" / "b").get("key")

    assert found == b"code"
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["key.o"]


def test_what_was_not_put_is_not_found(tmp_path: Path) -> None:
    assert ObjectCache(tmp_path).get("key") is None
    assert ObjectCache(tmp_path / "nowhere").get("key") is None


def test_without_a_folder_nothing_is_kept() -> None:
    cache = ObjectCache(None)

    cache.put("key", b"code")
    cache.trim()

    assert cache.get("key") is None


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 200])
def test_a_damaged_entry_is_not_found_and_is_replaced(tmp_path: Path, damage: bytes) -> None:
    cache = ObjectCache(tmp_path)
    cache.put("key", b"code")
    (tmp_path / "key.o").write_bytes(damage)

    found = cache.get("key")
    cache.put("key", b"code")

    assert found is None
    assert cache.get("key") == b"code"


def test_one_changed_bit_is_noticed(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    cache.put("key", b"code")
    stored = bytearray((tmp_path / "key.o").read_bytes())
    stored[-1] ^= 1
    (tmp_path / "key.o").write_bytes(stored)

    assert cache.get("key") is None


def test_the_entries_not_used_for_longest_are_removed(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit=3 * 132)
    for age, key in enumerate("abcde"):
        cache.put(key, bytes(100))
        os.utime(tmp_path / f"{key}.o", (1000 + age, 1000 + age))
    cache.get("a")

    cache.trim()

    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.o", "d.o", "e.o"]


def test_what_a_killed_writer_left_is_removed_with_the_rest(tmp_path: Path) -> None:
    (tmp_path / ".x.aside").write_bytes(bytes(1000))
    os.utime(tmp_path / ".x.aside", (1000, 1000))
    cache = ObjectCache(tmp_path, limit=500)
    cache.put("key", b"code")

    cache.trim()

    assert [p.name for p in tmp_path.iterdir()] == ["key.o"]


def test_the_folder_is_looked_through_again_when_enough_was_put(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit=64 * 200)
    cache.put("a", bytes(100))
    cache.trim()
    (tmp_path / "old.o").write_bytes(bytes(64 * 200))
    os.utime(tmp_path / "old.o", (1000, 1000))

    cache.put("b", bytes(100))
    cache.trim()
    after_little = sorted(p.name for p in tmp_path.iterdir())
    cache.put("c", bytes(100))
    cache.trim()

    assert after_little == ["a.o", "b.o", "old.o"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.o", "b.o", "c.o"]


def test_all_that_is_compiled_knows_what_was_put(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", str(tmp_path))

    assert default_cache() is default_cache()


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_bytes(bytes(1000))
    cache = ObjectCache(tmp_path, limit=0)
    cache.put("key", b"code")

    cache.trim()

    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = ObjectCache(tmp_path / "file" / "folder")

    cache.put("key", b"code")
    cache.trim()

    assert cache.get("key") is None


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(object_cache.os, "replace", refuse)

    ObjectCache(tmp_path).put("key", b"code")

    assert list(tmp_path.iterdir()) == []


def test_names_differ_where_parts_are_cut_elsewhere() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab", b"c") == digest("ab", b"c")


def test_the_folder_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", str(tmp_path))
    assert default_folder() == tmp_path

    monkeypatch.setenv("RELAX_EGRAPH_CACHE", "off")
    assert default_folder() is None

    monkeypatch.delenv("RELAX_EGRAPH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert default_folder() == tmp_path / "relax-egraph" / "objects"


def scaled() -> PrimFunc:
    i, x, out = TirVar("i"), buffer("x", "float32", n), buffer("out", "float32", n)
    return PrimFunc((x, out), loop(i, n, Store(out, (i,), x[i] * 3.0)))


def version_is(version: str | None) -> Callable[[Target], str | None]:
    return lambda target: version


@pytest.fixture(params=["by its code", "by its loops"])
def cache(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ObjectCache:
    """A cache that finds kernels one way: the second needs sources that nobody edits."""
    version = "1" if request.param == "by its loops" else None
    monkeypatch.setattr(compiling, "compiler_version", version_is(version))
    return ObjectCache(tmp_path)


def run(compiled: jit.CompiledKernels) -> list[float]:
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    link(compiled)["f"](x, out, 4)
    return out.tolist()


def test_a_kernel_is_compiled_once(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_kernels({"f": scaled()}, cache=cache)
    monkeypatch.setattr(machine_code, "compiled_object", refuse)

    second = compile_kernels({"f": scaled()}, cache=cache)

    assert second == first
    assert run(second) == [3, 3, 3, 3]


def test_a_damaged_object_is_compiled_anew(cache: ObjectCache) -> None:
    compile_kernels({"f": scaled()}, cache=cache)
    assert cache.folder is not None
    (entry,) = cache.folder.iterdir()
    entry.write_bytes(b"\x7fELF nonsense")

    assert run(compile_kernels({"f": scaled()}, cache=cache)) == [3, 3, 3, 3]


def refuse(*args: object, **options: object) -> NoReturn:
    raise AssertionError("this was to be found in the cache")


def tile() -> PrimFunc:
    """A call of the micro-kernel, of no rows."""
    x, out, zero = buffer("x", "float32", n), buffer("out", "float32", n), Imm(0, "int64")
    places = tuple((b, (zero,)) for b in (x, x, out))
    return PrimFunc(
        (x, out), TensorIntrinsic("gemm_tile", places, (zero,) * (len(gemm.PARAMS) - 3))
    )


@pytest.mark.parametrize("function", [scaled, tile])
def test_of_a_known_kernel_no_text_is_written(
    function: Callable[[], PrimFunc], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "compiler_version", version_is("1"))
    first = compile_kernels({"f": function()}, intrinsics=INTRINSICS, cache=ObjectCache(tmp_path))
    monkeypatch.setattr(compiling, "generate", refuse)
    monkeypatch.setattr(compiling, "_emitted", refuse)

    second = compile_kernels({"f": function()}, intrinsics=INTRINSICS, cache=ObjectCache(tmp_path))

    assert second == first


def test_another_version_of_the_compiler_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1", "2"):
        monkeypatch.setattr(compiling, "compiler_version", version_is(version))
        compile_kernels({"f": scaled()}, cache=ObjectCache(tmp_path))

    assert len(list(tmp_path.iterdir())) == 2


def test_an_intrinsic_from_elsewhere_is_known_by_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells whether the function that writes it has changed."""
    monkeypatch.setattr(compiling, "compiler_version", version_is("1"))

    def define(module: Module, target: Target) -> None:
        gemm.define_gemm_tile(module, target)

    given = {"gemm_tile": define}
    compile_kernels({"f": tile()}, intrinsics=given, cache=ObjectCache(tmp_path))
    monkeypatch.setattr(compiling, "generate", refuse)

    with pytest.raises(AssertionError, match="to be found"):
        compile_kernels({"f": tile()}, intrinsics=given, cache=ObjectCache(tmp_path))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the sources had been imported long after they were written."""
    monkeypatch.setattr(sources, "_imported", time.time() + 1000)
    forget()
    yield
    forget()


def forget() -> None:
    versions.compiler_version.cache_clear()
    sources.sources_in.cache_clear()


@pytest.mark.usefixtures("settled")
def test_the_version_names_the_target() -> None:
    names = {compiler_version(target) for target in (host(), portable(), portable("avx2", "fma"))}

    assert len(names) == 3
    assert None not in names


@pytest.mark.usefixtures("settled")
def test_while_sources_are_edited_there_is_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_imported", 0.0)

    assert compiler_version(host()) is None


def test_targets_have_entries_of_their_own(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)

    compile_kernels({"f": scaled()}, portable("avx2", "fma"), cache=cache)
    compile_kernels({"f": scaled()}, portable(), cache=cache)

    assert len(list(tmp_path.iterdir())) == 2
