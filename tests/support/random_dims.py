"""Random dimensions over two symbols, and values of the symbols."""

from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim, symbol

n, m = symbol("n"), symbol("m")

ATOMS = st.one_of(st.integers(0, 6), st.sampled_from([n, m]))


def _grown(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    divisors = st.integers(1, 5)
    return st.one_of(
        st.builds(dims.add, inner, inner),
        st.builds(dims.mul, inner, inner),
        st.builds(dims.sub, inner, inner),
        st.builds(dims.floordiv, inner, divisors),
        st.builds(dims.mod, inner, divisors),
        st.builds(dims.minimum, inner, inner),
        st.builds(dims.maximum, inner, inner),
    )


DIMS = st.recursive(ATOMS, _grown, max_leaves=4)
VALUES = st.fixed_dictionaries({"n": st.integers(0, 20), "m": st.integers(0, 20)})
