"""Random bits, by counters."""

from collections.abc import Sequence

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo import tensors
from relax_egraph.frontends.stablehlo.node import Node, like
from relax_egraph.frontends.stablehlo.operators.indices import limit
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Tuple

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_ROUNDS = 5


@converts("@cu_threefry2x32_ffi", "@hip_threefry2x32_ffi", "@cu_threefry2x32")
def threefry(node: Node) -> list[Expr]:
    """The cipher Threefry-2x32: two words of a key, two of a counter, all of one shape."""
    return list(threefry2x32(node, (node[0], node[1]), (node[2], node[3])))


def threefry2x32(
    node: Node, key: tuple[Expr, Expr], counter: tuple[Expr, Expr]
) -> tuple[Expr, Expr]:
    """The cipher of `counter`, of 20 rounds."""
    parity = node.emit("bitwise_xor", node.emit("bitwise_xor", *key), like(_PARITY, key[0]))
    keys = (*key, parity)
    x, y = (node.emit("add", word, k) for word, k in zip(counter, key, strict=True))
    for number in range(_ROUNDS):
        x, y = _mixed(node, x, y, _ROTATIONS[number % 2])
        x = node.emit("add", x, keys[(number + 1) % 3])
        y = node.emit("add", y, keys[(number + 2) % 3])
        y = node.emit("add", y, like(number + 1, y))
    return x, y


def _mixed(node: Node, x: Expr, y: Expr, rotations: Sequence[int]) -> tuple[Expr, Expr]:
    for distance in rotations:
        x = node.emit("add", x, y)
        high = node.emit("left_shift", y, like(distance, y))
        low = node.emit("right_shift", y, like(32 - distance, y))
        y = node.emit("bitwise_xor", node.emit("bitwise_or", high, low), x)
    return x, y


@converts("stablehlo.rng_bit_generator")
def random_bits(node: Node) -> list[Expr]:
    """The next bits of a generator, and its new state."""
    shape = tensors.shape_of(node.operation.results[1].type)
    known = tuple(n for n in shape if n is not None)
    if len(known) < len(shape):
        raise ModelError("the shape of its bits is not known")
    return _philox(node, known)


@converts("@stablehlo.dynamic_rng_bit_generator")
def dynamic_random_bits(node: Node) -> list[Expr]:
    """The same, of a shape that is an operand."""
    return _philox(node, node.sizes(1))


def _philox(node: Node, shape: Sequence[Dim]) -> list[Expr]:
    """Bits by the cipher Philox-4x32 of a counter of 128 bits; four words for each count."""
    algorithm = "THREE_FRY" if "THREE_FRY" in str(node.attribute("rng_algorithm")) else "PHILOX"
    state, words = node[0], node.shape(0)
    dtype = tensors.dtype_of(node.operation.results[1].type)
    if algorithm != "PHILOX" or dtype_of(state) != "uint64" or dtype not in ("uint32", "int32"):
        raise ModelError("needs the algorithm PHILOX, a state of uint64, and bits of 32")
    count = dims.product(shape)
    blocks = dims.floordiv(dims.add(count, 3), 4)
    parts = [node.sliced(state, (k,), (k + 1,)) for k in range(int(str(words[0])))]
    key, low, high = parts[0], parts[1], parts[2] if len(parts) > 2 else parts[0]
    at = node.emit("add", low, node.iota(blocks, "uint64"))
    carried = node.cast(node.emit("less", at, low), "uint64")
    high_at = node.emit("add", high, carried)
    counter = [*_halves(node, at), *_halves(node, high_at)]
    mixed = philox4x32(node, _halves(node, key), counter)
    table = node.emit("stack", Tuple(tuple(mixed)), axis=1)
    flat = node.reshaped(table, (dims.mul(blocks, 4),))
    bits = node.cast(node.reshaped(node.sliced(flat, (0,), (count,)), shape), dtype)
    after = node.emit("add", low, limit(node, blocks, low))
    following = [key, after]
    if len(parts) > 2:
        carry = node.cast(node.emit("less", after, low), "uint64")
        following.append(node.emit("add", high, carry))
    return [node.emit("concat", Tuple(tuple(following)), axis=0), bits]


_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def philox4x32(node: Node, key: Sequence[Expr], counter: Sequence[Expr]) -> list[Expr]:
    """The cipher of the four words of `counter`, of 10 rounds."""
    words, keys = list(counter), list(key)
    for number in range(10):
        if number:
            pairs = zip(keys, _KEY_STEPS, strict=True)
            keys = [node.emit("add", k, like(step, k)) for k, step in pairs]
        products = [
            _halves(node, node.emit("multiply", wide, like(factor, wide)))
            for word, factor in zip(words[::2], _MULTIPLIERS, strict=True)
            for wide in [node.cast(word, "uint64")]
        ]
        (low0, high0), (low1, high1) = products
        first = node.emit("bitwise_xor", node.emit("bitwise_xor", high1, words[1]), keys[0])
        third = node.emit("bitwise_xor", node.emit("bitwise_xor", high0, words[3]), keys[1])
        words = [first, low1, third, low0]
    return words


def _halves(node: Node, value: Expr) -> tuple[Expr, Expr]:
    """The low and the high word of `value`, of uint64."""
    high = node.emit("right_shift", value, like(32, value))
    return node.cast(value, "uint32"), node.cast(high, "uint32")
