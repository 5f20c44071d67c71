"""``relax-egraph why-not``: explains why a rule did not match in a model."""

import json
from collections.abc import Mapping
from typing import Any

import click

import relax_egraph as rx
from relax_egraph.base.progress import step
from relax_egraph.cli import options
from relax_egraph.cli.group import Unusable, commands
from relax_egraph.cli.model import ModelFile, warn_of_assumed
from relax_egraph.errors import RelaxEgraphError


@commands.command("why-not")
@click.argument("rule")
@options.model
@click.option(
    "--at",
    metavar="VALUE",
    help="The place of the expected match: a variable, FUNCTION.VARIABLE, the number of a value "
    "(0 is the first that is bound, -1 the last), or a kernel of the result, such as "
    "fused_add_relu.",
)
@options.optimization
@options.as_json
def print_why_not(
    rule: str, model: ModelFile, at: str | None, how: Mapping[str, Any], as_json: bool
) -> None:
    """Explain why RULE did not match in MODEL.

    Without --at, print the deepest partial matches. For a rule that did match, print where, and
    what it gains.
    """
    module = model.module()
    try:
        with step("looking for matches"):
            answer = rx.why_not(rule, module, at, **how)
    except RelaxEgraphError:
        raise
    except ValueError as error:
        raise Unusable(str(error)) from None
    warn_of_assumed(answer.assumed)
    click.echo(json.dumps({"file": str(model), **answer.as_dict()}) if as_json else str(answer))
