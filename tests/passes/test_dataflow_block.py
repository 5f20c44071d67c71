"""Passes that rewrite one dataflow block at a time, and options of passes."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from relax_egraph.errors import IllFormed
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import DataflowBlock, DataflowVar, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import (
    PassContext,
    dataflowblock_pass,
    declare_option,
    module_pass,
)
from relax_egraph.passes.options import OPTIONS
from relax_egraph.script import parse

TEXT = """
@R.function
def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")):
    with R.dataflow():
        lv = R.exp(x)
        gv = R.negative(lv)
        R.output(gv)
    if c:
        with R.dataflow():
            lv1 = R.exp(gv)
            gv1 = R.negative(lv1)
            R.output(gv1)
        gv2 = R.log(gv1)
    else:
        gv2 = gv
    return gv2
"""


def doubled(block: DataflowBlock) -> DataflowBlock:
    """The block with ``lv = y + y`` for its first binding ``lv = y``, of new variables."""
    first, *rest = block.bindings
    assert isinstance(first, VarBinding)
    inner = DataflowVar("lv", first.var.struct_info)
    return DataflowBlock(
        (VarBinding(inner, first.value), replace(first, value=call("add", inner, inner)), *rest)
    )


def test_each_block_is_rewritten_with_names_that_differ() -> None:
    seen: list[tuple[int, int]] = []

    @dataflowblock_pass(name="doubling", opt_level=1)
    def doubling(block: DataflowBlock, module: IRModule, context: PassContext) -> DataflowBlock:
        seen.append((len(module.functions), context.opt_level))
        return doubled(block)

    with PassContext(opt_level=3):
        after = doubling(parse(TEXT))

    expected = TEXT.replace(
        "        lv = R.exp(x)\n", "        lv2 = R.exp(x)\n        lv = R.add(lv2, lv2)\n"
    ).replace(
        "            lv1 = R.exp(gv)\n",
        "            lv3 = R.exp(gv)\n            lv1 = R.add(lv3, lv3)\n",
    )
    assert_structural_equal(after, parse(expected))
    assert_well_formed(after)
    assert seen == [(1, 3), (1, 3)]
    assert after.script().count("lv3: ") == 1
    assert doubling.opt_level == 1


def test_a_pass_that_changes_no_block_returns_the_module_itself() -> None:
    @dataflowblock_pass(name="nothing")
    def nothing(block: DataflowBlock, module: IRModule, context: PassContext) -> DataflowBlock:
        return block

    module = parse(TEXT)

    assert nothing(module) is module


def test_a_block_must_keep_what_is_read_outside_of_it() -> None:
    @dataflowblock_pass(name="dropping")
    def dropping(block: DataflowBlock, module: IRModule, context: PassContext) -> DataflowBlock:
        return DataflowBlock(block.bindings[:-1])

    with pytest.raises(IllFormed) as error:
        dropping(parse(TEXT))

    assert str(error.value) == (
        "pass dropping: main: a dataflow block no longer binds gv, which is read outside of it"
    )


# --- options ----------------------------------------------------------------------------


@pytest.fixture
def limit() -> Iterator[str]:
    """An option of this test."""
    declare_option("test.limit", int, 7, "how many")
    yield "test.limit"
    del OPTIONS["test.limit"]


def test_a_pass_reads_an_option_of_the_context(limit: str) -> None:
    read: list[int] = []

    @module_pass(name="reading")
    def reading(module: IRModule) -> IRModule:
        read.append(PassContext.current().option(limit))
        return module

    reading(IRModule())
    with PassContext(config={limit: 3}):
        reading(IRModule())

    assert read == [7, 3]


def test_an_option_that_is_not_declared_or_of_another_type_is_refused(limit: str) -> None:
    known = ", ".join(sorted(OPTIONS))

    with pytest.raises(
        ValueError, match=rf"no option 'test\.limits' of passes; there are: {known}$"
    ):
        PassContext(config={"test.limits": 3})
    with pytest.raises(ValueError, match=r"the option 'test\.limit' is '3', needs int$"):
        PassContext(config={limit: "3"})
    with pytest.raises(ValueError, match=r"the option 'test\.limit' is True, needs int$"):
        PassContext(config={limit: True})


def test_an_option_is_declared_once(limit: str) -> None:
    again = declare_option(limit, int, 7, "how many")

    assert again == OPTIONS[limit]
    with pytest.raises(
        ValueError, match=r"the option 'test\.limit' is declared twice, differently$"
    ):
        declare_option(limit, int, 8, "how many")
    with pytest.raises(ValueError, match=r"the option 'test\.other' is 1\.5, needs int$"):
        declare_option("test.other", int, 1.5, "how many")
