"""Bindings gathered into dataflow blocks."""

import numpy as np

from relax_egraph.passes import convert_to_dataflow
from relax_egraph.script import parse
from tests.support.transformed import becomes, floats, same_value, stays

HEAD = """
@R.function(pure=False)
def main(x: R.Tensor(("n", 2), "float32"), c: R.Tensor((), "bool")):
"""


def function(body: str) -> str:
    return HEAD + "\n".join(f"    {line}" for line in body.strip().splitlines())


def test_runs_become_blocks_and_what_is_read_outside_their_outputs() -> None:
    before = """
a = R.exp(x)
b = R.log(a)
d = R.add(a, b)
p = R.call_packed("f", d, sinfo_args=(R.Tensor,))
e = R.negative(b)
g = (e, d)
h = g[0]
return (h, p)
"""
    after = """
with R.dataflow():
    a = R.exp(x)
    b = R.log(a)
    d = R.add(a, b)
    R.output(b, d)
p = R.call_packed("f", d, sinfo_args=(R.Tensor,))
with R.dataflow():
    e = R.negative(b)
    g = (e, d)
    h = g[0]
    R.output(h)
return (h, p)
"""

    changed = becomes(convert_to_dataflow(), function(before), function(after))

    packed = {"f": np.array}
    same_value(parse(function(before)), changed, floats(3, 2), np.bool_(True), packed=packed)


def test_runs_that_are_too_short_stay() -> None:
    body = """
a = R.exp(x)
b = R.log(a)
p = R.call_packed("f", b, sinfo_args=(R.Tensor,))
d = R.exp(x)
return (d, p)
"""

    stays(convert_to_dataflow(min_size=3), function(body))
    becomes(
        convert_to_dataflow(min_size=2),
        function(body),
        function(
            """
with R.dataflow():
    a = R.exp(x)
    b = R.log(a)
    R.output(b)
p = R.call_packed("f", b, sinfo_args=(R.Tensor,))
d = R.exp(x)
return (d, p)
"""
        ),
    )


def test_branches_and_local_functions_are_converted_inside_and_stay_outside() -> None:
    becomes(
        convert_to_dataflow(),
        function(
            """
a = R.exp(x)
b = R.exp(a)
if c:
    d = R.exp(b)
    e = R.exp(d)
    r = R.exp(e)
else:
    r = b
@R.function
def f(y: R.Tensor((n, 2), "float32")) -> R.Tensor((n, 2), "float32"):
    u = R.exp(y)
    v = R.add(u, b)
    return v
g = f(r)
h = R.exp(g)
return h
"""
        ),
        function(
            """
with R.dataflow():
    a = R.exp(x)
    b = R.exp(a)
    R.output(b)
if c:
    with R.dataflow():
        d = R.exp(b)
        e = R.exp(d)
        r0 = R.exp(e)
        R.output(r0)
    r = r0
else:
    r = b
@R.function
def f(y: R.Tensor((n, 2), "float32")) -> R.Tensor((n, 2), "float32"):
    with R.dataflow():
        u = R.exp(y)
        v = R.add(u, b)
        R.output(v)
    return v
with R.dataflow():
    g = f(r)
    h = R.exp(g)
    R.output(h)
return h
"""
        ),
    )


def test_casts_are_gathered_and_a_variable_that_holds_a_shape_is_seen() -> None:
    becomes(
        convert_to_dataflow(),
        """
@R.function
def main(x: R.Tensor("float32", ndim=1)):
    m = T.int64()
    s = R.shape_of(x)
    y = R.match_cast(x, R.Tensor((m,), "float32"))
    z = R.call_pure_packed("f", y, sinfo_args=(R.Tensor(s, "float32"),))
    return z
""",
        """
@R.function
def main(x: R.Tensor("float32", ndim=1)):
    m = T.int64()
    with R.dataflow():
        s = R.shape_of(x)
        y = R.match_cast(x, R.Tensor((m,), "float32"))
        z = R.call_pure_packed("f", y, sinfo_args=(R.Tensor(s, "float32"),))
        R.output(s, z)
    return z
""",
    )


def test_dataflow_blocks_that_are_there_stay() -> None:
    stays(
        convert_to_dataflow(),
        function(
            """
with R.dataflow():
    a = R.exp(x)
    b = R.exp(a)
    R.output(a, b)
return b
"""
        ),
    )
