"""The tour of ``docs/tour.md`` is the way that its program takes."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "docs" / "tour.md").read_text("utf-8")
STOPS = re.findall(r"^\d+\. `([^`]+)` `([^`]+)`:", TOUR, re.MULTILINE)

FOLLOWED = """
import sys
from pathlib import Path

root, calls = Path(sys.argv[1]), {}

def follow(frame, event, argument):
    if event == "call":
        code = frame.f_code
        calls.setdefault((code.co_filename, code.co_qualname))

import numpy as np
import relax_egraph as rx

x, w, b = (np.full(shape, 0.5, "float32") for shape in [(3, 64), (64, 10), (10,)])
program = sys.stdin.read()
sys.setprofile(follow)
exec(program)
sys.setprofile(None)
assert np.allclose(main(x, w, b), 16.5)
for file, function in calls:
    if Path(file).resolve().is_relative_to(root):
        print(Path(file).resolve().relative_to(root), function)
"""


def test_the_program_takes_the_stops_in_order(tmp_path: Path) -> None:
    program = TOUR.partition("```python\n")[2].partition("```")[0]

    done = subprocess.run(
        [sys.executable, "-c", FOLLOWED, str(ROOT)],
        input=program,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RELAX_EGRAPH_CACHE": "off"},
    )

    assert (done.returncode, done.stderr) == (0, "")
    stops = {f"{file} {function}" for file, function in STOPS}
    assert [call for call in done.stdout.splitlines() if call in stops] == [
        f"{file} {function}" for file, function in STOPS
    ]


def test_no_stop_is_visited_twice() -> None:
    assert len(set(STOPS)) == len(STOPS) > 30
