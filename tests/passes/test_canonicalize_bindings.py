"""Bindings that say nothing new: before and after."""

from relax_egraph.passes import Sequential, canonicalize_bindings, dead_code_elimination
from relax_egraph.script import parse
from tests.support.transformed import becomes, floats, same_value, stays

HEAD = """
@R.function
def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("n", 2), "float32")):
"""


def function(body: str, head: str = HEAD) -> str:
    return head + "\n".join(f"    {line}" for line in body.strip().splitlines())


def canonical(before: str, after: str) -> None:
    changed = becomes(canonicalize_bindings, function(before), function(after))
    same_value(parse(function(before)), changed, floats(3, 2), floats(3, 2))


def test_another_name_of_a_value_is_the_value() -> None:
    canonical(
        """
a = x
b = a
d = R.const(1.0, "float32")
e = R.add(b, d)
f = e
return (f, a)
""",
        """
e = R.add(x, R.const(1.0, "float32"))
return (e, x)
""",
    )


def test_a_name_that_is_declared_to_be_more_stays() -> None:
    stays(
        canonicalize_bindings,
        """
        @R.function
        def main(x: R.Tensor("float32", ndim=1)):
            a: R.Tensor((3,), "float32") = x
            return a
        """,
    )


def test_a_name_that_is_declared_to_be_less_goes() -> None:
    becomes(
        canonicalize_bindings,
        function('a: R.Tensor("float32", ndim=2) = x\nb = R.exp(a)\nreturn b'),
        function("b = R.exp(x)\nreturn b"),
    )


def test_what_a_result_is_declared_to_be_stays() -> None:
    head = HEAD.replace("):", ') -> R.Tensor("float32"):')

    becomes(
        canonicalize_bindings,
        function("a = x\nb = R.exp(a)\nreturn b", head),
        function("b = R.exp(x)\nreturn b", head),
    )


def test_an_output_that_is_a_local_variable_is_bound_to_its_value() -> None:
    canonical(
        """
with R.dataflow():
    a = R.exp(x)
    b = R.log(a)
    gv = b
    gv1 = a
    gv2 = a
    R.output(gv, gv1, gv2)
return (gv, gv1, gv2)
""",
        """
with R.dataflow():
    gv1 = R.exp(x)
    gv = R.log(gv1)
    R.output(gv, gv1)
return (gv, gv1, gv1)
""",
    )


def test_an_output_that_nothing_outside_reads_is_local() -> None:
    canonical(
        """
with R.dataflow():
    a = R.exp(x)
    b = R.log(a)
    R.output(a, b)
return b
""",
        """
with R.dataflow():
    a = R.exp(x)
    b = R.log(a)
    R.output(b)
return b
""",
    )


def test_a_field_of_a_known_tuple_is_the_field() -> None:
    both = Sequential([canonicalize_bindings, dead_code_elimination()], name="both").as_pass()

    becomes(
        both,
        function(
            """
with R.dataflow():
    t = (x, (y, x))
    u = t[1]
    a = u[0]
    b = R.exp(a)
    gv = t[0]
    gv1 = R.add(b, gv)
    R.output(gv, gv1)
return (gv, gv1)
"""
        ),
        function(
            """
with R.dataflow():
    b = R.exp(y)
    gv1 = R.add(b, x)
    R.output(gv1)
return (x, gv1)
"""
        ),
    )


def test_a_field_that_is_local_to_another_block_is_still_taken_from_the_tuple() -> None:
    stays(
        canonicalize_bindings,
        function(
            """
with R.dataflow():
    a = R.exp(x)
    t = (a, x)
    R.output(t)
b = t[0]
d = R.exp(b)
return d
"""
        ),
    )


def test_the_tuple_of_all_fields_of_a_tuple_is_that_tuple() -> None:
    head = HEAD.replace("x: ", 'p: R.Tuple(R.Tensor((2,), "float32"), R.Tensor), x: ')

    becomes(
        canonicalize_bindings,
        function("a = p[0]\nb = p[1]\nd = (a, b)\ne = (b, a)\nreturn (d, e)", head),
        function("a = p[0]\nb = p[1]\ne = (b, a)\nreturn (p, e)", head),
    )


def test_a_cast_to_what_is_known_goes_and_a_check_stays() -> None:
    becomes(
        canonicalize_bindings,
        function(
            """
a = R.exp(x)
b = R.match_cast(a, R.Tensor((n, 2), "float32"))
d = R.match_cast(b, R.Tensor("float32", ndim=2))
e = R.exp(d)
f = R.unique(e)
g = R.match_cast(f, R.Tensor((n * 2,), "float32"))
return (b, e, g)
""",
        ),
        function(
            """
a = R.exp(x)
e = R.exp(a)
f = R.unique(e)
g = R.match_cast(f, R.Tensor((n * 2,), "float32"))
return (a, e, g)
""",
        ),
    )


def test_a_symbol_that_is_bound_to_a_known_dimension_is_that_dimension() -> None:
    head = HEAD.rstrip() + "\n    m = T.int64()\n    k = T.int64()\n"

    becomes(
        canonicalize_bindings,
        function(
            """
with R.dataflow():
    a = R.concat((x, y), axis=0)
    b = R.match_cast(a, R.Tensor((m, k), "float32"))
    d = R.zeros(R.shape([m, k * 2]), dtype="float32")
    gv = (b, d)
    R.output(gv)
return gv
""",
            head,
        ),
        function(
            """
with R.dataflow():
    a = R.concat((x, y), axis=0)
    d = R.zeros(R.shape([n * 2, 4]), dtype="float32")
    gv = (a, d)
    R.output(gv)
return gv
"""
        ),
    )


def test_a_symbol_that_two_branches_bind_stays() -> None:
    head = HEAD.replace("y:", 'c: R.Tensor((), "bool"), y:').rstrip() + "\n    m = T.int64()\n"

    stays(
        canonicalize_bindings,
        function(
            """
if c:
    a = R.match_cast(x, R.Tensor((m, 2), "float32"))
    d = R.exp(a)
else:
    b = R.concat((x, y), axis=0)
    e = R.match_cast(b, R.Tensor((m, 2), "float32"))
    d = R.exp(e)
return d
""",
            head,
        ),
    )


def test_a_variable_that_holds_the_shape_of_another_keeps_its_name() -> None:
    stays(
        canonicalize_bindings,
        """
        @R.function
        def main(x: R.Tensor, s: R.Shape(ndim=2)):
            t = s
            a = R.call_pure_packed("f", x, sinfo_args=(R.Tensor(t, "float32"),))
            return a
        """,
    )


def test_branches_and_local_functions_are_canonical_inside() -> None:
    head = HEAD.replace("y:", 'c: R.Tensor((), "bool"), y:')

    becomes(
        canonicalize_bindings,
        function(
            """
@R.function
def f(z: R.Tensor((n, 2), "float32")) -> R.Tensor((n, 2), "float32"):
    a = z
    b = R.exp(a)
    return b
if c:
    d = x
    e = f(d)
else:
    e = y
g = e
return g
""",
            head,
        ),
        function(
            """
@R.function
def f(z: R.Tensor((n, 2), "float32")) -> R.Tensor((n, 2), "float32"):
    b = R.exp(z)
    return b
if c:
    e = f(x)
else:
    e = y
return e
""",
            head,
        ),
    )
