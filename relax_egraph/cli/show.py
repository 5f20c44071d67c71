"""``relax-egraph show``: prints a model at one stage of compilation."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

import relax_egraph as rx
from relax_egraph.base.progress import step
from relax_egraph.cli import options, values
from relax_egraph.cli.group import commands
from relax_egraph.cli.model import ModelFile
from relax_egraph.cli.rules import known_rule

if TYPE_CHECKING:
    from relax_egraph.egraph.rulebook.rule import Rule

STAGES = ("relax", "egraph", "kernels", "tir", "llvm", "asm", "bytecode")

OF_TARGETS = ("tir", "llvm", "asm")
"""The stages that depend on the processor."""

PICTURES = ("egraph", "kernels")
"""The stages that can be drawn."""

LANGUAGES = {"egraph": "lisp", "llvm": "llvm", "asm": "gas"}
"""The lexers of stages that are not highlighted as Python."""


@commands.command()
@options.model
@click.option(
    "--stage", type=click.Choice(STAGES), default="relax", show_default=True, help="The stage."
)
@click.option(
    "--rule",
    metavar="NAME",
    help="Of egraph, only classes touched by this rule.",
)
@click.option("--svg", type=values.output, metavar="FILE", help="Draw egraph or kernels in FILE.")
@click.option(
    "--target",
    type=values.target,
    metavar="NAME",
    help="Of tir, llvm and asm, the processor, such as x86-64-v3; this one by default.",
)
@options.optimization
@options.as_json
def show(
    model: ModelFile,
    stage: str,
    rule: str | None,
    svg: Path | None,
    target: str | None,
    how: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Print MODEL at one stage of compilation.

    relax is the unoptimized program; egraph the saturated e-graphs; kernels the best program; tir,
    llvm and asm its kernels; bytecode the code that calls them, which executables contain, too.

    A picture of egraph has the classes that are closest to the results, and marks the chosen nodes;
    one of kernels has the price of each call, by the cost model. It needs relax-egraph[svg].

    The JSON of egraph is the format of egraph-serialize, which extract reads; costs are in seconds.
    """
    if rule is not None and (stage != "egraph" or as_json):
        raise click.UsageError("--rule needs --stage egraph, without --json")
    if svg is not None:
        if stage not in PICTURES or as_json or model.is_executable:
            raise click.UsageError(
                "--svg needs --stage egraph or kernels, a program, and no --json"
            )
        click.echo(_drawn(model, stage, rule, how, svg))
        return
    if as_json and stage == "egraph" and not model.is_executable:
        from relax_egraph.extract import REFERENCE_PROFILE

        document = model.optimized(how).egraph_document(how.get("profile", REFERENCE_PROFILE))
        click.echo(json.dumps(document))
        return
    if target is not None and stage not in OF_TARGETS:
        raise click.UsageError("--target needs --stage tir, llvm or asm")
    text = _text(model, stage, target, how) if rule is None else _touched(model, rule, how)
    if as_json:
        click.echo(json.dumps({"file": str(model), "stage": stage, "text": text}))
        return
    console = Console()
    if console.is_terminal:
        from rich.syntax import Syntax  # and pygments

        language = LANGUAGES.get(stage, "python")
        console.print(Syntax(text, language, background_color="default"), soft_wrap=True)
    else:
        click.echo(text)


def _drawn(
    model: ModelFile, stage: str, rule: str | None, how: Mapping[str, Any], svg: Path
) -> str:
    """Draw a stage in the file `svg`; returns what is in it."""
    from relax_egraph.pictures.picture import picture  # and igraph

    if rule is not None:
        rule = _rule(rule, how).name
    drawn = picture(model.optimized(how), "egraph" if stage == "egraph" else "kernels", rule)
    drawn.save(svg)
    return "\n".join(f"{svg}: {caption}" for caption in drawn.captions)


def _rule(name: str, how: Mapping[str, Any]) -> "Rule":
    from relax_egraph.egraph.rulebook.book import RuleBook

    book = RuleBook.default(how.get("rules", ()), fast_math=True, bounded=True)
    rules = {rule.name: rule for rule in book.rules}
    return rules[known_rule(name, rules)]


def _touched(model: ModelFile, name: str, how: Mapping[str, Any]) -> str:
    """The classes of the saturated e-graphs that the rule `name` touched."""
    from relax_egraph.reasons.touched import touched

    rule = _rule(name, how)
    lines: list[str] = []
    for region in model.optimized(how).plans[0].regions:
        classes, every = touched(region, rule), len(region.view.classes)
        head, *rest = region.egraph_lines(classes)
        lines += [head, f"; {name} touched {len(classes)} of {every} classes", *rest]
    return "\n".join(lines)


def _text(model: ModelFile, stage: str, target: str | None, how: Mapping[str, Any]) -> str:
    if model.is_executable:
        if stage != "bytecode" or how:
            raise click.UsageError(f"{model} is an executable: it has only --stage bytecode")
        return model.executable().as_text()
    if stage == "relax":
        if how:
            raise click.UsageError(
                "--stage relax is the unoptimized program: it takes no options of optimization"
            )
        return model.module().script()
    report = model.optimized(how)
    if stage == "egraph":
        return report.egraph_text()
    if stage == "kernels":
        return report.module.script()
    from relax_egraph.build import assembly_text, llvm_text

    with step("building"):
        match stage:
            case "tir":
                return rx.lower_module(report.module, target=target).script()
            case "llvm":
                return llvm_text(report.module, target=target)
            case "asm":
                return assembly_text(report.module, target=target)
            case _:
                return rx.build(report.module).as_text()
