"""One cluster of this machine for the tests of a file."""

from collections.abc import Iterator

import pytest

from relax_egraph.ray.cluster import LOCAL, connected


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster of three processors: two for actors, one to read and write."""
    with connected(LOCAL, num_cpus=3):
        yield
