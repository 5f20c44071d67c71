"""Storages come back when no tensor of them is left, and not before."""

from itertools import pairwise
from threading import Barrier, Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.vm.pool import LEAST, StoragePool
from relax_egraph.vm.storage import ALIGNMENT, Bytes, tensor_at

SIZE = 1 << 20


def address(array: Bytes) -> int:
    return array.ctypes.data


def test_a_storage_that_nobody_has_is_handed_out_again() -> None:
    pool = StoragePool()
    first = address(pool.take(SIZE))

    assert address(pool.take(SIZE)) == first


def test_a_storage_is_not_handed_out_while_a_view_of_its_tensor_is_left() -> None:
    pool = StoragePool()
    view = tensor_at(pool.take(SIZE), 0, (SIZE // 4,), np.dtype("float32"))[1::2].reshape(2, -1)
    view[...] = 7

    other = pool.take(SIZE)
    other[...] = 0

    assert (view == 7).all()


def test_a_storage_in_use_elsewhere_stays_out_of_reach_until_it_is_dropped() -> None:
    pool = StoragePool()
    held = pool.take(SIZE)
    first = address(held)
    assert address(pool.take(SIZE)) != first

    del held

    assert first in {address(s) for s in [pool.take(SIZE), pool.take(SIZE)]}


@given(st.integers(1, 1 << 22))
def test_a_storage_has_room_and_lies_on_a_line(size: int) -> None:
    storage = StoragePool().take(size)

    assert storage.size >= size
    assert storage.size <= max(LEAST, size + size // 8 + 1)
    assert address(storage) % ALIGNMENT == 0


def test_storages_begin_apart_in_their_pages() -> None:
    """Also apart from large arrays of numpy and torch, which begin at bytes 16 and 64."""
    pool = StoragePool()
    held = [pool.take(SIZE) for _ in range(4)]

    places = sorted({64, 64 + 4096, *(address(s) % 4096 for s in held)})
    assert len(places) == 6
    assert all(after - before >= 512 for before, after in pairwise(places))


@pytest.mark.parametrize("sizes", [(SIZE,) * 5, (SIZE, 2 * SIZE, 3 * SIZE, SIZE)])
def test_a_pool_keeps_no_more_than_its_limit(sizes: tuple[int, ...]) -> None:
    pool = StoragePool(limit=4 * SIZE)
    held = [pool.take(s) for s in sizes]

    del held

    kept = sum(len(owners) * size for size, owners in pool._kept.items())  # pyright: ignore[reportPrivateUsage]
    assert kept <= 4 * SIZE


def test_no_two_threads_get_the_same_storage() -> None:
    pool, barrier = StoragePool(), Barrier(4)
    clashes: list[int] = []

    def work(mark: int) -> None:
        barrier.wait()
        for _ in range(200):
            storage = pool.take(LEAST)
            storage[:64] = mark
            if not (storage[:64] == mark).all():
                clashes.append(mark)

    threads = [Thread(target=work, args=(m,)) for m in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    assert clashes == []
