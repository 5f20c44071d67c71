"""A driver of `map_batches` for tests to kill: ``killed_driver.py MODEL TABLE OUT CHECKPOINTS``."""

import sys
import time

import ray.data
from ray.data.checkpoint import CheckpointConfig

import relax_egraph as rx
from relax_egraph.ray.cluster import LOCAL, connected
from tests.ray.squares import Array


def slowly(batch: dict[str, Array]) -> dict[str, Array]:
    """A batch, after a while: so that there is a middle to be killed in."""
    time.sleep(0.4)
    return batch


def main(model: str, table: str, out: str, kept: str) -> None:
    """Map the Parquet files of `table` and write those of `out`; go on from what is `kept`."""
    with connected(LOCAL, num_cpus=3):
        context = ray.data.DataContext.get_current()
        context.checkpoint_config = CheckpointConfig(
            "key", kept, delete_checkpoint_on_success=False
        )
        read = ray.data.read_parquet(table).map_batches(slowly)
        mapped = rx.ray.map_batches(
            read, model, columns={"x": "image"}, outputs=["square", "sum"], actors=1
        )
        mapped.write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
