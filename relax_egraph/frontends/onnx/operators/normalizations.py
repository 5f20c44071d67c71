"""Normalisations and softmax."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of, info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr


@converts("BatchNormalization")
def batch_norm(node: Node) -> tuple[Expr, ...]:
    """Batch norm by moving statistics, or in training by those of the batch."""
    training = bool(node.attrs.schema_default("training_mode"))
    x = node[0]
    dtype = dtype_of(x)
    parameters = [node.cast(node[place], dtype) for place in range(1, 5)]
    out = node.emit(
        "nn.batch_norm",
        x,
        *parameters,
        axis=min(1, node.rank(0) - 1),
        epsilon=node.attrs.number("epsilon"),
        momentum=1 - node.attrs.number("momentum"),
        training=training,
    )
    y, *moving = node.fields(out)
    return (y, *(node.cast(m, node.dtype(3)) for m in moving)) if training else (y,)


@converts("InstanceNormalization")
def instance_norm(node: Node) -> Expr:
    """Each channel of each image normalised by its own mean and variance."""
    axes = tuple(range(2, node.rank(0)))
    epsilon = node.attrs.number("epsilon")
    return node.emit("nn.instance_norm", *node.all(), channel_axis=1, axes=axes, epsilon=epsilon)


@converts("GroupNormalization")
def group_norm(node: Node) -> Expr:
    """Groups of channels normalised by mean and variance; up to opset 20 scaled by group."""
    x, scale, bias = node.all()
    groups, channels = node.attrs.integer("num_groups"), node.shape(0)[1]
    if node.version < 21:
        each = dims.floordiv(channels, groups)
        if not isinstance(each, int):
            raise ModelError("how many channels a group has is known only at run time")
        scale, bias = (node.emit("repeat", p, repeats=each, axis=0) for p in (scale, bias))
    return _normalized(
        node,
        "nn.group_norm",
        x,
        [scale, bias],
        num_groups=groups,
        channel_axis=1,
        axes=tuple(range(2, node.rank(0))),
    )


@converts("LayerNormalization")
def layer_norm(node: Node) -> tuple[Expr, ...]:
    """The layer norm over trailing axes; mean and reciprocal deviation are optional outputs."""
    axis = node.axis()
    axes = tuple(range(axis, node.rank(0)))
    x, scale = node[0], node[1]
    if info_of(scale).ndim != len(axes):
        scale = _over(node, scale, axis)
    bias = node.get(2)
    if bias is None:
        bias = node.emit("zeros_like", scale)
    elif info_of(bias).ndim != len(axes):
        bias = _over(node, bias, axis)
    out = _normalized(node, "nn.layer_norm", x, [scale, bias], axes=axes)
    if not any(node.outputs[1:]):
        return (out,)
    wide = node.cast(x, "float32")
    mean = node.emit("mean", wide, axis=axes, keepdims=True)
    variance = node.emit("variance", wide, axis=axes, keepdims=True)
    epsilon = node.scalar(node.attrs.number("epsilon"), "float32")
    return out, mean, node.emit("rsqrt", node.emit("add", variance, epsilon))


@converts("RMSNormalization")
def rms_norm(node: Node) -> Expr:
    """The RMS norm over trailing axes."""
    axis = node.axis()
    axes = tuple(range(axis, node.rank(0)))
    scale = node[1]
    if info_of(scale).ndim != len(axes):
        scale = _over(node, scale, axis)
    return _normalized(node, "nn.rms_norm", node[0], [scale], axes=axes)


def _over(node: Node, parameter: Expr, axis: int) -> Expr:
    """`parameter`, broadcast to the extents of the axes from `axis` on."""
    return node.emit("broadcast_to", parameter, ShapeExpr(node.shape(0)[axis:]))


def _normalized(
    node: Node, name: str, x: Expr, parameters: list[Expr], **attrs: int | tuple[int, ...]
) -> Expr:
    """The norm `name`, with all operands in the dtype of the first."""
    epsilon, own = node.attrs.number("epsilon"), dtype_of(x)
    operands = [node.cast(p, own) for p in (x, *parameters)]
    return node.emit(name, *operands, epsilon=epsilon, **attrs)


@converts("LRN")
def local_response(node: Node) -> Expr:
    """``x / (bias + alpha/size · Σ x²)^beta``, with the sum over neighbouring channels."""
    x, size = node[0], node.attrs.integer("size")
    dtype = dtype_of(x)
    before = (size - 1) // 2
    widths = [0] * (2 * node.rank(0))
    widths[2:4] = before, size - 1 - before
    squares = node.emit("nn.pad", node.emit("square", x), pad_width=tuple(widths))
    channels = node.shape(0)[1]
    total: Expr | None = None
    for k in range(size):
        begin, end = ShapeExpr((k,)), ShapeExpr((dims.add(channels, k),))
        part = node.emit("strided_slice", squares, begin, end, axes=(1,))
        total = part if total is None else node.emit("add", total, part)
    if total is None:
        raise ModelError("its size is 0, needs 1 or more")
    alpha = node.scalar(node.attrs.number("alpha") / size, dtype)
    bias, beta = (node.scalar(node.attrs.number(n), dtype) for n in ("bias", "beta"))
    scale = node.emit("add", node.emit("multiply", total, alpha), bias)
    return node.emit("divide", x, node.emit("power", scale, beta))


@converts("LpNormalization")
def lp_norm(node: Node) -> Expr:
    """``x / (Σ |x|^p)^(1/p)`` along an axis; 0 if all elements are 0."""
    x, axis = node[0], node.axis()
    dtype = dtype_of(x)
    if node.attrs.integer("p") == 1:
        norm = node.emit("sum", node.emit("abs", x), axis=axis, keepdims=True)
    else:
        norm = node.emit("sqrt", node.emit("sum", node.emit("square", x), axis=axis, keepdims=True))
    zero, one = node.scalar(0, dtype), node.scalar(1, dtype)
    is_zero = node.emit("equal", norm, zero)
    return node.emit("divide", x, node.emit("where", is_zero, one, norm))


@converts("Softmax", "LogSoftmax", "Hardmax")
def softmax(node: Node) -> Expr:
    """Softmax along an axis; up to opset 12 over all trailing axes at once."""
    x, axis, rank = node[0], node.axis(), node.rank(0)
    if node.version >= 13 or axis == rank - 1:
        return _softmax(node, x, axis)
    shape = node.shape(0)
    flat = (dims.product(shape[:axis]), dims.product(shape[axis:]))
    result = _softmax(node, node.emit("reshape", x, ShapeExpr(flat)), 1)
    return node.emit("reshape", result, ShapeExpr(shape))


def _softmax(node: Node, x: Expr, axis: int) -> Expr:
    if node.op != "Hardmax":
        return node.emit(f"nn.{'log_' * (node.op == 'LogSoftmax')}softmax", x, axis=axis)
    place = node.emit("argmax", x, axis=axis, keepdims=True)
    shape = info_of(x).dims
    if shape is None:
        raise ModelError("the shape of its operand is not known")
    places = node.emit("arange", PrimValue(shape[axis]), dtype="int64")
    behind = tuple(range(1, len(shape) - axis))
    along = node.emit("expand_dims", places, axis=behind) if behind else places
    return node.cast(node.emit("equal", place, along), dtype_of(x))


@converts("Dropout")
def dropout(node: Node) -> tuple[Expr, ...]:
    """The operand itself and a mask of ones; training is not supported."""
    elements = node.elements(2)
    if node.has(2) and (elements is None or True in elements.dims):
        ratio = node.constant(1)
        if ratio is None or float(ratio.data.item()) != 0:
            raise ModelError("it drops elements at random, as in training")
    return node[0], node.emit("ones_like", node[0], dtype="bool")
