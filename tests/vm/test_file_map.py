"""Files of executables in memory: tensors in a map of the file, and what becomes of that file."""

import copy
import hashlib
import mmap
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph.errors import ExecutableError
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine

PRODUCT = """
@R.function
def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((3, 4), "float32")):
    with R.dataflow():
        y = R.matmul(x, w)
        R.output(y)
    return y
"""


def with_weight(value: float) -> Executable:
    """``main() = weight``, of so many elements that they fill pages."""
    ib = ExecBuilder()
    with ib.function("main", 0):
        ib.emit_call("vm.builtin.copy", [np.full(5000, value, np.float32)], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    return ib.get()


def weight_of(executable: Executable) -> npt.NDArray[np.float32]:
    (weight,) = (c for c in executable.constants if isinstance(c, np.ndarray))
    return weight


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with_weight(1.0).save(tmp_path / "model.rxe")
    return tmp_path / "model.rxe"


def owner(array: Any) -> object:
    """What the memory of `array` is of, at last."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array


def test_tensors_lie_in_a_map_of_the_file(path: Path) -> None:
    weight = weight_of(Executable.load(path))

    assert isinstance(owner(weight), mmap.mmap)
    assert weight.ctypes.data % 64 == 0
    with pytest.raises(ValueError, match="read-only"):
        weight[0] = 2
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        weight.setflags(write=True)


def test_a_file_that_is_not_mapped_is_read(path: Path) -> None:
    weight = weight_of(Executable.load(path, mapped=False))

    path.write_bytes(b"")

    assert owner(weight) is None
    assert weight.tolist() == [1.0] * 5000


def test_what_cannot_be_mapped_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no such device")

    monkeypatch.setattr(mmap, "mmap", refuse)

    weight = weight_of(Executable.load(path))

    assert owner(weight) is None
    assert weight.tolist() == [1.0] * 5000


def test_an_empty_file_is_refused(path: Path) -> None:
    path.write_bytes(b"")

    with pytest.raises(ExecutableError, match=r"^header: this is no executable of relax-egraph$"):
        Executable.load(path)


def test_saving_anew_leaves_what_is_loaded(path: Path) -> None:
    old = Executable.load(path)

    with_weight(2.0).save(path)

    assert weight_of(old)[0] == 1
    assert weight_of(Executable.load(path))[0] == 2


def test_an_executable_is_saved_over_the_file_that_it_was_loaded_from(path: Path) -> None:
    loaded = Executable.load(path)

    loaded.save(path)

    assert Executable.load(path) == loaded == with_weight(1.0)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux's account of maps")
def test_pages_are_shared_with_other_processes_and_never_written(path: Path) -> None:
    loaded = Executable.load(path)

    account = Path("/proc/self/smaps").read_text().partition(str(path))
    _, _, rights = account[0].rpartition("\n")
    fields = dict(line.split(":", 1) for line in account[2].splitlines()[1:20])

    assert weight_of(loaded)[0] == 1
    assert rights.split()[1] == "r--s"
    assert fields["Anonymous"].split() == ["0", "kB"]
    assert fields["Private_Dirty"].split() == ["0", "kB"]


def test_machines_run_on_maps(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    rx.build(rx.parse(PRODUCT)).save(tmp_path / "model.rxe")

    for mapped in (True, False):
        machine = VirtualMachine(rx.load(tmp_path / "model.rxe", mapped=mapped))
        np.testing.assert_allclose(machine["main"](x, w), x @ w, rtol=1e-6)


# --- trust ----------------------------------------------------------------------------


def test_a_digest_is_that_of_the_file(path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    assert Executable.load(path, digest) == Executable.load(path, digest.upper())
    with pytest.raises(ExecutableError) as error:
        rx.load(path, "0" * 64)
    assert str(error.value) == f"{path}: the SHA-256 digest is {digest}, needs {'0' * 64}"


# --- copies ---------------------------------------------------------------------------


def pickled(executable: Executable) -> Executable:
    return pickle.loads(pickle.dumps(executable))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_is_equal_and_runs(copied: Callable[[Executable], Executable]) -> None:
    x, w = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    built = rx.build(rx.parse(PRODUCT))

    made = copied(built)

    assert made == built
    assert VirtualMachine(made, engine="native")["main"](x, w).tolist() == [[3.0] * 4] * 2


def test_a_pickled_tensor_is_aligned_and_read_only() -> None:
    weight = weight_of(pickled(with_weight(3.0)))

    assert weight.ctypes.data % 64 == 0
    assert not weight.flags.writeable


def test_executables_are_equal_if_their_bytes_are() -> None:
    one, other, nan = with_weight(1.0), with_weight(2.0), with_weight(float("nan"))

    assert one == with_weight(1.0)
    assert one != other
    assert nan == with_weight(float("nan"))
    assert one != "executable"
    named = with_weight(1.0)
    named.origins = ("weight", "")
    assert one != named


def test_a_text_that_is_no_unicode_is_not_saved(tmp_path: Path) -> None:
    executable = with_weight(1.0)
    executable.metadata = {"by": "\ud800"}

    with pytest.raises(ExecutableError, match=r"^section metadata: '\\ud800' is no character$"):
        executable.save(tmp_path / "model.rxe")

    assert os.listdir(tmp_path) == []
