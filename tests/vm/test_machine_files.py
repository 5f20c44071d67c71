"""What is saved runs in a process of its own and gives the same bits."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from examples.decoder.model import build_model as build_decoder
from examples.decoder.model import weights
from examples.digits.model import Digits, build_model
from relax_egraph.ir.module import IRModule
from tests.support.rounding import leaves

RUN = """
import pickle, sys
from pathlib import Path
import relax_egraph as rx

file, function, engine, num_threads = sys.argv[1:]
given = pickle.loads(Path(file + ".in").read_bytes())
vm = rx.VirtualMachine(rx.load(file), engine=engine, num_threads=int(num_threads))
Path(file + ".out").write_bytes(pickle.dumps(vm[function](*given)))
"""

LOOP = """
@I.ir_module
class Module:
    @R.function(private=True)
    def loop(i: R.Tensor((), "int64"), x: R.Tensor(("n", "m"), "float32")):
        cls = Module
        more = R.greater(i, R.const(0, "int64"))
        if more:
            r = cls.loop(R.subtract(i, R.const(1, "int64")), R.sin(R.add(x, R.const(1, "float32"))))
        else:
            r = x
        return r

    @R.function
    def main(i: R.Tensor((), "int64"), x: R.Tensor(("n", "m"), "float32")):
        cls = Module
        n = T.int64()
        m = T.int64()
        y = cls.loop(i, x)
        z = R.match_cast(y, R.Tensor((n, m), "float32"))
        return (z, R.shape_of(z), R.reshape(z, R.shape([n * m])))
"""


def case(name: str) -> tuple[IRModule, str, list[object]]:
    """A module, the function of it to call, and with what."""
    random = np.random.default_rng(0)
    match name:
        case "digits":
            digits = Digits.load()
            return build_model(digits.weights), "main", [digits.images[:7]]
        case "encoder":
            x = random.standard_normal((2, 9, 64), np.float32)
            return rx.optimize(encoder(Sizes(1))), "main", [x, np.ones((2, 9), np.int64)]
        case "decoder":
            return build_decoder(weights()), "generate", [np.array([5]), np.array(20), 3]
        case _:
            x = random.standard_normal((3, 5), np.float32)
            return rx.parse(LOOP), "main", [np.array(9), x]


@pytest.mark.parametrize(
    ("name", "engine", "num_threads"),
    [
        ("digits", "auto", 2),
        ("encoder", "auto", 1),
        ("decoder", "auto", 1),
        ("loop", "interpreter", 1),
    ],
)
def test_another_process_gives_the_same_bits(
    name: str, engine: str, num_threads: int, tmp_path: Path
) -> None:
    module, function, given = case(name)
    exe, file = rx.build(module), tmp_path / "model.rxe"
    exe.save(file)
    Path(f"{file}.in").write_bytes(pickle.dumps(given))
    expected = rx.VirtualMachine(exe)[function](*given)

    command = [sys.executable, "-c", RUN, file, function, engine, str(num_threads)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    found = pickle.loads(Path(f"{file}.out").read_bytes())
    for result, wanted in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_array_equal(result, wanted, strict=True)


def test_the_file_may_go_while_its_machine_runs(tmp_path: Path) -> None:
    digits, file = Digits.load(), tmp_path / "digits.rxe"
    rx.build(build_model(digits.weights)).save(file)
    main = rx.VirtualMachine(rx.load(file))["main"]
    expected = main(digits.images)

    rx.build(build_model({k: 2 * w for k, w in digits.weights.items()})).save(file)
    np.testing.assert_array_equal(main(digits.images), expected)
    file.unlink()

    np.testing.assert_array_equal(main(digits.images), expected)
