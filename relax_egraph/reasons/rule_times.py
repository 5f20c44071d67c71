"""The times of rules in an optimization, as plain data."""

from typing import Any

from relax_egraph.egraph.recording.rule_times import rule_times
from relax_egraph.optimize.explanation import Explanation


def time_figures(explanation: Explanation) -> dict[str, Any]:
    """The times of rules, the slowest first, and of saturation and extraction, in seconds.

    Saturations are repeated; equal regions count once.
    """
    regions = list({id(region.view): region for region in explanation.regions}.values())
    runs = [done for region in regions for done in region.runs]
    family = {
        name: rule.ruleset
        for done in runs
        for rule in done.book().rewrites
        for name in rule.reported
    }
    times = rule_times(runs)
    return {
        "rules": [
            {
                "rule": name,
                "family": family.get(name, "lower"),
                "seconds": time.seconds,
                "matches": time.matches,
                "iterations": time.iterations,
            }
            for name, time in sorted(times.items(), key=lambda item: -item[1].seconds)
        ],
        "saturation": sum(region.saturation.seconds for region in regions),
        "extraction": sum(region.extraction.seconds for region in regions),
    }
