"""Optimize Relax-like tensor programs with rewrite rules on e-graphs.

import relax_egraph as rx

best = rx.optimize(rx.parse(text), rules=["my.egg"])
rx.VirtualMachine(rx.build(best))["main"](x)
"""

from typing import TYPE_CHECKING

from relax_egraph.base import forks as forks  # it remembers in forks what is loaded here
from relax_egraph.base.lazy import load_lazily

__version__ = "0.1.0"

if TYPE_CHECKING:
    from relax_egraph import rules as rules
    from relax_egraph.build import assembly_text as assembly_text
    from relax_egraph.build import build as build
    from relax_egraph.build import llvm_text as llvm_text
    from relax_egraph.build import lower_module as lower_module
    from relax_egraph.calibrate import calibrate as calibrate
    from relax_egraph.calibrate import calibrated as calibrated
    from relax_egraph.egraph.rulebook.book import RuleBook as RuleBook
    from relax_egraph.egraph.rulebook.scope import vocabulary as vocabulary
    from relax_egraph.extract import Prices as Prices
    from relax_egraph.extract import Profile as Profile
    from relax_egraph.frontends import from_onnx as from_onnx
    from relax_egraph.ir import IRModule as IRModule
    from relax_egraph.loading import load as load
    from relax_egraph.memory import MemoryPlan as MemoryPlan
    from relax_egraph.memory import plan_memory as plan_memory
    from relax_egraph.optimize import Explanation as Explanation
    from relax_egraph.optimize import optimize as optimize
    from relax_egraph.proof.replay import replay as replay
    from relax_egraph.reasons.bisect import bisect as bisect
    from relax_egraph.reasons.explain import Reasons as Reasons
    from relax_egraph.reasons.explain import explain as explain
    from relax_egraph.reasons.gains import bisect_cost as bisect_cost
    from relax_egraph.reasons.gains import gains as gains
    from relax_egraph.reasons.why_not import WhyNot as WhyNot
    from relax_egraph.reasons.why_not import why_not as why_not
    from relax_egraph.script import load_module as load_module
    from relax_egraph.script import parse as parse
    from relax_egraph.script import save_module as save_module
    from relax_egraph.tir import te as te
    from relax_egraph.tir.block_builder import BlockBuilder as BlockBuilder
    from relax_egraph.tir.block_builder import te_tensor as te_tensor
    from relax_egraph.verify.given import Verdict as Verdict
    from relax_egraph.vm.machine import VirtualMachine as VirtualMachine
    from relax_egraph.vm.registry import register_func as register_func

load_lazily(
    __name__,
    {
        "relax_egraph.build": ["assembly_text", "build", "llvm_text", "lower_module"],
        "relax_egraph.calibrate": ["calibrate", "calibrated"],
        "relax_egraph.egraph.rulebook.book": ["RuleBook"],
        "relax_egraph.egraph.rulebook.scope": ["vocabulary"],
        "relax_egraph.extract": ["Prices", "Profile"],
        "relax_egraph.frontends": ["from_onnx"],
        "relax_egraph.ir": ["IRModule"],
        "relax_egraph.loading": ["load"],
        "relax_egraph.memory": ["MemoryPlan", "plan_memory"],
        "relax_egraph.optimize": ["Explanation", "optimize"],
        "relax_egraph.proof.replay": ["replay"],
        "relax_egraph.reasons.bisect": ["bisect"],
        "relax_egraph.reasons.explain": ["Reasons", "explain"],
        "relax_egraph.reasons.gains": ["bisect_cost", "gains"],
        "relax_egraph.reasons.why_not": ["WhyNot", "why_not"],
        "relax_egraph.script": ["load_module", "parse", "save_module"],
        "relax_egraph.tir.block_builder": ["BlockBuilder", "te_tensor"],
        "relax_egraph.verify.given": ["Verdict"],
        "relax_egraph.vm.machine": ["VirtualMachine"],
        "relax_egraph.vm.registry": ["register_func"],
    },
    modules=["relax_egraph.rules", "relax_egraph.tir.te"],
)
