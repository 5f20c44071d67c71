"""Each table that is keyed by operator has an entry for every operator, and for nothing else."""

from relax_egraph.ir.op import OPS
from relax_egraph.ir.reference import REFERENCE


def test_every_operator_but_the_intrinsics_has_a_reference() -> None:
    assert set(REFERENCE) == {name for name, op in OPS.items() if not op.intrinsic}
