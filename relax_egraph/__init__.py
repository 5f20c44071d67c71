"""Optimize Relax-like tensor programs with rewrite rules on e-graphs.

import relax_egraph as rx

best = rx.optimize(rx.parse(text), rules=["my.egg"])
rx.VirtualMachine(rx.build(best))["main"](x)
"""

from relax_egraph import rules as rules
from relax_egraph.build import assembly_text as assembly_text
from relax_egraph.build import build as build
from relax_egraph.build import llvm_text as llvm_text
from relax_egraph.build import load as load
from relax_egraph.build import lower_module as lower_module
from relax_egraph.calibrate import calibrate as calibrate
from relax_egraph.calibrate import calibrated as calibrated
from relax_egraph.egraph.rulebook import RuleBook as RuleBook
from relax_egraph.egraph.scope import vocabulary as vocabulary
from relax_egraph.extract import Prices as Prices
from relax_egraph.extract import Profile as Profile
from relax_egraph.frontends import from_onnx as from_onnx
from relax_egraph.ir import IRModule as IRModule
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
