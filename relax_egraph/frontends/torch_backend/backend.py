"""``torch.compile(model, backend="relax_egraph")``: AOTAutograd's graphs, compiled by us.

It is an entry point of the group ``torch_dynamo_backends``, so that torch finds it by its name.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from relax_egraph.frontends.torch.decompositions import decompositions
from relax_egraph.frontends.torch_backend.compiling import compiled
from relax_egraph.frontends.torch_backend.frozen import weights_in
from relax_egraph.frontends.torch_backend.options import Options, options_of


def relax_egraph(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    **_: Any,
) -> Callable[..., Any]:
    """The backend of ``torch.compile``; see `Options` for `options`."""
    wanted = options_of(options)
    weights = weights_in(dict(enumerate(inputs))) if wanted.freeze else {}
    compile_ = partial(_compiled, weights={}, options=wanted)
    return aot_autograd(
        fw_compiler=compile_,
        bw_compiler=compile_,
        inference_compiler=partial(_compiled, weights=weights, options=wanted),
        decompositions=dict(decompositions()),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=False,
    )(graph, inputs)


def _compiled(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    weights: Mapping[int, torch.Tensor],
    options: Options,
) -> Callable[..., Any]:
    return compiled(graph, weights, options)
