"""A driver of `map_batches` for tests to kill: ``killed_driver.py MODEL OUT CHECKPOINTS``."""

import sys
import time

import relax_egraph as rx
from relax_egraph.ray.cluster import LOCAL, connected, ray_module
from tests.ray.squares import Array, rows

COUNT = 100_000
BLOCKS = 40


def slowly(batch: dict[str, Array]) -> dict[str, Array]:
    """The rows of a batch, after a while: so that there is a middle to be killed in."""
    time.sleep(0.4)
    return {"id": batch["id"], "image": rows(batch)["image"]}


def main(model: str, out: str, kept: str) -> None:
    """Map the table of `COUNT` rows, and write files to `out`; go on from what is `kept`."""
    with connected(LOCAL, num_cpus=3):
        data = ray_module("ray.data")
        config = ray_module("ray.data.checkpoint").CheckpointConfig
        context = data.DataContext.get_current()
        context.checkpoint_config = config("id", kept, delete_checkpoint_on_success=False)
        table = data.range(COUNT, override_num_blocks=BLOCKS)
        slow = table.map_batches(slowly, batch_size=COUNT // BLOCKS)
        mapped = rx.ray.map_batches(
            slow, model, columns={"x": "image"}, outputs=["square", "sum"], actors=1
        )
        mapped.write_parquet(out, min_rows_per_file=COUNT // BLOCKS)


if __name__ == "__main__":
    main(*sys.argv[1:])
