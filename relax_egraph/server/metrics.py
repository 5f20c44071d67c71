"""What a server counts, for Prometheus."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

__all__ = ["CONTENT_TYPE", "Metrics", "merged"]

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counts of inference requests and batches, in a registry of their own, with `labels`."""

    def __init__(
        self, labels: Mapping[str, str], bounds: Sequence[int], waiting: Callable[[], int]
    ) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Inference requests, by status.", labels, "code")
        self._refused = self._counter(
            "refused", "Requests refused because too many were there.", labels
        )
        self._seconds = self._histogram(
            "request_seconds", "Seconds from a request to its answer.", labels, _SECONDS
        )
        sizes = sorted({*_ROWS, *bounds})
        self._rows = self._histogram("batch_rows", "Rows of a batch.", labels, sizes)
        self._run = self._histogram("batch_seconds", "Seconds of a batch.", labels, _SECONDS)
        queue = Gauge(
            "relax_egraph_waiting",
            "Requests that wait for a batch.",
            [*labels],
            registry=self._registry,
        )
        queue.labels(**labels).set_function(waiting)
        self._labels = labels

    def _counter(self, name: str, text: str, labels: Mapping[str, str], *free: str) -> Counter:
        names = [*labels, *free]
        counter = Counter(f"relax_egraph_{name}", text, names, registry=self._registry)
        return counter if free else counter.labels(**labels)

    def _histogram(
        self, name: str, text: str, labels: Mapping[str, str], buckets: Sequence[float]
    ) -> Histogram:
        made = Histogram(
            f"relax_egraph_{name}", text, [*labels], buckets=buckets, registry=self._registry
        )
        return made.labels(**labels)

    def answered(self, status: int, seconds: float) -> None:
        """Count an inference request."""
        self._requests.labels(**self._labels, code=str(status)).inc()
        self._seconds.observe(seconds)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self._refused.inc()

    def ran(self, rows: int, seconds: float) -> None:
        """Count a batch."""
        self._rows.observe(rows)
        self._run.observe(seconds)

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def merged(texts: Iterable[bytes]) -> bytes:
    """One text of several, whose labels differ."""
    families = dict[str, Metric]()
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            families.setdefault(family.name, family)
            if families[family.name] is not family:
                families[family.name].samples += family.samples
    registry = CollectorRegistry()
    registry.register(_Families(families.values()))
    return generate_latest(registry)
