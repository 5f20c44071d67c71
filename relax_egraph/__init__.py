"""Optimize Relax-like tensor programs with rewrite rules on e-graphs.

    import relax_egraph as rx

    best = rx.optimize(rx.parse(text), rules=["my.egg"])
    rx.VirtualMachine(rx.build(best))["main"](x)

* programs: `parse`, `load_module`, `save_module`, `from_onnx`, `from_torch`, `from_jax`,
  `from_stablehlo`, `BlockBuilder`, `te`, `IRModule`
* operators of users: `operator`, `operators`, `register_operators`
* rules: `rules` (``rules.load``), `optimize`
* reasons: `explain`, `picture`, `why_not`, `gains`, `bisect`, `diff`, `replay`
* machines to optimize for: `Profile`, `Prices`, `calibrated`
* several devices and machines: `sharded`, `Link`, `ray`
* kernels: `lower_module`, `plan_memory`, `build`, `load`
* running: `VirtualMachine`, `register_func`, `ExecBuilder`, `jax_call`
* on clusters, and over HTTP: `ray`, `serve`
* reports of errors: `show_versions`

All else is reached through its room, such as ``relax_egraph.extract``.
"""

from typing import TYPE_CHECKING

from relax_egraph.base import forks as forks  # it remembers in forks what is loaded here
from relax_egraph.base import shown as shown  # it shows the log if the environment asks for it
from relax_egraph.base.lazy import load_lazily

__version__ = "0.1.0"

if TYPE_CHECKING:
    from relax_egraph import ray as ray
    from relax_egraph import rules as rules
    from relax_egraph import serve as serve
    from relax_egraph.build import build as build
    from relax_egraph.calibrate import calibrated as calibrated
    from relax_egraph.diff import diff as diff
    from relax_egraph.extract import Prices as Prices
    from relax_egraph.extract import Profile as Profile
    from relax_egraph.frontends import from_jax as from_jax
    from relax_egraph.frontends import from_onnx as from_onnx
    from relax_egraph.frontends import from_stablehlo as from_stablehlo
    from relax_egraph.frontends import from_torch as from_torch
    from relax_egraph.frontends import jax_call as jax_call
    from relax_egraph.ir import IRModule as IRModule
    from relax_egraph.ir.operators import operators as operators
    from relax_egraph.ir.operators import register_operators as register_operators
    from relax_egraph.ir.own_operator import operator as operator
    from relax_egraph.loading import load as load
    from relax_egraph.lower.memory import plan_memory as plan_memory
    from relax_egraph.lower.pipeline import lower_module as lower_module
    from relax_egraph.optimize import optimize as optimize
    from relax_egraph.pictures.picture import picture as picture
    from relax_egraph.proof.replay import replay as replay
    from relax_egraph.reasons.bisect import bisect as bisect
    from relax_egraph.reasons.explain import explain as explain
    from relax_egraph.reasons.gains import gains as gains
    from relax_egraph.reasons.why_not import why_not as why_not
    from relax_egraph.script import load_module as load_module
    from relax_egraph.script import parse as parse
    from relax_egraph.script import save_module as save_module
    from relax_egraph.shards import Link as Link
    from relax_egraph.shards import sharded as sharded
    from relax_egraph.tir import te as te
    from relax_egraph.tir.block_builder import BlockBuilder as BlockBuilder
    from relax_egraph.versions import show_versions as show_versions
    from relax_egraph.vm.exec_builder import ExecBuilder as ExecBuilder
    from relax_egraph.vm.machine import VirtualMachine as VirtualMachine
    from relax_egraph.vm.registry import register_func as register_func

load_lazily(
    __name__,
    {
        "relax_egraph.build": ["build"],
        "relax_egraph.calibrate": ["calibrated"],
        "relax_egraph.diff": ["diff"],
        "relax_egraph.extract": ["Prices", "Profile"],
        "relax_egraph.frontends": [
            "from_jax",
            "from_onnx",
            "from_stablehlo",
            "from_torch",
            "jax_call",
        ],
        "relax_egraph.ir": ["IRModule"],
        "relax_egraph.ir.operators": ["operators", "register_operators"],
        "relax_egraph.ir.own_operator": ["operator"],
        "relax_egraph.loading": ["load"],
        "relax_egraph.lower.memory": ["plan_memory"],
        "relax_egraph.lower.pipeline": ["lower_module"],
        "relax_egraph.optimize": ["optimize"],
        "relax_egraph.pictures.picture": ["picture"],
        "relax_egraph.proof.replay": ["replay"],
        "relax_egraph.reasons.bisect": ["bisect"],
        "relax_egraph.reasons.explain": ["explain"],
        "relax_egraph.reasons.gains": ["gains"],
        "relax_egraph.reasons.why_not": ["why_not"],
        "relax_egraph.script": ["load_module", "parse", "save_module"],
        "relax_egraph.shards": ["Link", "sharded"],
        "relax_egraph.tir.block_builder": ["BlockBuilder"],
        "relax_egraph.versions": ["show_versions"],
        "relax_egraph.vm.exec_builder": ["ExecBuilder"],
        "relax_egraph.vm.machine": ["VirtualMachine"],
        "relax_egraph.vm.registry": ["register_func"],
    },
    modules=["relax_egraph.ray", "relax_egraph.rules", "relax_egraph.serve", "relax_egraph.tir.te"],
)
