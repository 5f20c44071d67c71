"""Packages that load their names on first use."""

import cloudpickle

import relax_egraph as rx


def test_a_function_that_refers_to_a_package_can_be_sent_to_another_process() -> None:
    sent: dict[str, object] = {"__name__": "__main__", "rx": rx}
    exec("def version():\n    return rx.__version__", sent)

    received = cloudpickle.loads(cloudpickle.dumps(sent["version"]))

    assert received() == rx.__version__
    assert cloudpickle.loads(cloudpickle.dumps(rx)) is rx
