"""The command ``relax-egraph``: what is done with programs, e-graphs, rules and machines.

Exit status: 0 done, 1 the model or its input is wrong or a check failed, 2 wrong use.
"""

from relax_egraph.cli import (
    bench,
    bisect,
    check,
    egraphs,
    explain,
    machine,
    memory,
    optimize,
    profile,
    rule_show,
    rule_tests,
    rules,
    run,
    show,
    why_not,
)
from relax_egraph.cli.group import commands as commands
from relax_egraph.cli.show import STAGES as STAGES

SUBCOMMANDS = (
    *(show, optimize, explain, run, bench, profile, memory, egraphs, machine, why_not, bisect),
    *(rules, check, rule_show, rule_tests),
)
"""The modules whose commands belong to it, by being imported."""


def main(argv: list[str] | None = None) -> None:
    """Run the command, and exit."""
    commands.main(args=argv, prog_name="relax-egraph")
