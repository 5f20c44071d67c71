"""The cluster that a process uses."""

import inspect

import pytest

from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ray.cluster import LOCAL, connected, require_ray

ray = pytest.importorskip("ray", reason="needs the extra [ray]")


def _tripled(number: int) -> int:
    return 3 * number


def test_a_cluster_of_this_machine_is_started_and_ended() -> None:
    with connected(LOCAL, num_cpus=1):
        assert ray.get(ray.remote(_tripled).remote(-3)) == -9

    assert not ray.is_initialized()
    assert inspect.isbuiltin(print)


def test_a_connection_that_there_is_stays_open() -> None:
    with connected(LOCAL, num_cpus=1):
        with connected("no-such-host:1"):
            assert ray.is_initialized()
        assert ray.is_initialized()


def test_an_address_where_no_cluster_answers_is_an_error() -> None:
    needed = pytest.raises(RelaxEgraphError, match="no Ray cluster answers at 'nonsense'")
    with needed, connected("nonsense"):
        pass


def test_ray_that_is_not_installed_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("relax_egraph.ray.cluster.find_spec", {}.get)

    with pytest.raises(ImportError, match=r"a chair needs .* pip install 'relax-egraph\[ray\]'"):
        require_ray("a chair")
