"""Models as workloads: single layers, encoders, residual networks, a decoder layer with a cache."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

from bench import llama, resnet
from bench.layers import single_layers
from bench.program import Array, program_of
from bench.transformer import Sizes, encoder
from bench.work import least_bytes, operations
from bench.workloads import Task, Wanted, Workload, drawn, on_two_threads
from relax_egraph.ir.module import IRModule

LENGTHS = (1, 16, 128, 512)
"""The lengths of inputs of an encoder, all for one module."""

WIDTHS = llama.Widths()


def networks() -> dict[str, Workload]:
    """All networks, by name."""
    workloads: list[Workload] = []

    def add(name: str, wanted: Wanted, make: Callable[[], Task]) -> None:
        workloads.append(Workload(name, wanted, make))

    for layers, bars in _ENCODERS.items():
        for length in LENGTHS:
            task = partial(_encoder, layers, length)
            add(f"{named_layers(layers)}, s = {length}", bars.get(length, {}), task)
    add("ResNet basic block, 64×56²", on_two_threads({"peer": 1.2}), _basic_block)
    for batch in (1, 8):
        add(f"ResNet-50, n = {batch}", {"peer": 1.15}, partial(_resnet50, batch))
    for past, wanted in _DECODE.items():
        add(f"LLaMA decode, cache {past}", wanted, partial(_decode, past))
        add(f"LLaMA decode in place, cache {past}", wanted, partial(_decode_in_place, past))
    in_memory = partial(_decode, 2048, layers=3)
    add("LLaMA decode, cache 2048, weights in memory", {"peer": 1.0, "limit": 0.9}, in_memory)
    in_memory = partial(_decode_in_place, 2048, layers=3)
    name = "LLaMA decode in place, cache 2048, weights in memory"
    add(name, {"peer": 1.0, "limit": 0.9}, in_memory)
    add("LLaMA prefill, s = 128", {}, partial(_prefill, 128))
    return single_layers() | {workload.name: workload for workload in workloads}


def named_layers(layers: int) -> str:
    """The name of an encoder of `layers` layers."""
    return f"encoder, {layers} layer{'s' * (layers > 1)}"


@cache
def bert(layers: int, shared: bool = False) -> IRModule:
    """The encoder of BERT-base with `layers` layers; batch and length are symbolic."""
    return encoder(Sizes(layers, 768, 12, 3072, shared=shared))


_ENCODERS: Mapping[int, Mapping[int, Wanted]] = {
    1: dict.fromkeys((16, 128, 512), on_two_threads({"peer": 1.05})),
    12: {128: {"limit": 0.85}},
}
_DECODE: Mapping[int, Wanted] = dict.fromkeys((64, 512, 2048), on_two_threads({"peer": 1.0}))


def _task(module: IRModule, inputs: tuple[Array, ...], one_row: bool = False) -> Task:
    """A task that is bound by computation, or by reading if `one_row` meets the weights."""
    program = program_of(module)
    if one_row:
        return Task((module,), inputs, "read", least_bytes(program, inputs))
    return Task((module,), inputs, "arithmetic", operations(program, inputs))


def _encoder(layers: int, length: int) -> Task:
    inputs = (drawn(1, length, 768), np.ones((1, length), np.int64))
    return _task(bert(layers), inputs, one_row=length == 1)


def _basic_block() -> Task:
    return _task(resnet.basic_block(1, 64, 56), (drawn(1, 64, 56, 56),))


def _resnet50(batch: int) -> Task:
    return _task(resnet.resnet(batch), (drawn(batch, 3, 224, 224),))


@cache
def _decode_step(seed: int) -> IRModule:
    return llama.decode_step(WIDTHS, seed)


def _decode(past: int, layers: int = 1) -> Task:
    """Decoding with one layer, whose weights partly fit the last cache, or with several in turn."""
    cached = (1, WIDTHS.groups, past, WIDTHS.head)
    tokens = drawn(1, 1, WIDTHS.hidden), *llama.angles(WIDTHS, past, 1)
    caches = drawn(*cached, seed=1), drawn(*cached, seed=2)
    inputs = (*tokens, *caches)
    first, *others = (_decode_step(seed) for seed in range(layers))
    task = _task(first, inputs, one_row=True)
    return replace(task, modules=(first, *others))


@cache
def _step_in_place(seed: int) -> IRModule:
    return llama.decode_in_place(WIDTHS, seed)


def _decode_in_place(past: int, layers: int = 1) -> Task:
    """The same with caches that have a place for the token."""
    cached = (1, WIDTHS.groups, past + 1, WIDTHS.head)
    tokens = drawn(1, 1, WIDTHS.hidden), *llama.angles(WIDTHS, past, 1)
    inputs = (*tokens, drawn(*cached, seed=1), drawn(*cached, seed=2))
    first, *others = (_step_in_place(seed) for seed in range(layers))
    task = _task(first, inputs, one_row=True)
    return replace(task, modules=(first, *others))


def _prefill(length: int) -> Task:
    inputs = drawn(1, length, WIDTHS.hidden), *llama.angles(WIDTHS, 0, length)
    return _task(llama.prefill(WIDTHS, length), inputs)
