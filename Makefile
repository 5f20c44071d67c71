# make demo    run the digit classifier, from rules to machine code
# make test    run the tests
# make test-aarch64   run the tests of kernels on AArch64, which qemu emulates
# make test-avx512    run them with loops for 512-bit vectors, which LLVM splits on other processors
# make lint    ruff and pyright
# make bench   measure against numpy and whatever of `pip install -e .[bench]` is there, in one run
#              ONLY=words of names   MODELS=folder of networks as lists of layers
#              JSON=file for the figures   SVG=file for the roofline, which is beside the JSON else
#              TARGET=processor to compile for, x86-64-v3; peers are held to its vectors if they can be
# make bench-models MODELS=folder    optimize and run networks given as lists of layers
# make bench-transformers EXPORTS=folder   export models of transformers to it, once, and run them
#              ONLY=names or kinds of models   JSON=file for the figures
# make bench-depths EXPORTS=folder   export encoders of growing depth to it, once, and plan them
# make bench-extract EGRAPHS=folder   extract the e-graphs of other tools
# make bench-scripts TESTS=folder   read all modules in the sources of tests, such as TVM's
# make bench-mca   expected cycles of inner loops on AArch64 (llvm-mca)
# make conformance    run ONNX's public suite; what fails and why is in bench/onnx_conformance.json
# make conformance-torch    torch's database of operators, networks and training beside torch
# make conformance-jax    run functions of jax, and the programs it keeps, beside jax (`.[bench]`)
# make replay  all tests, with a proof of each optimization in them, replayed step by step
# make prove   prove the rule book for all extents; prints what is not proven, with the reason
# make docs    write the pages that are generated
# make site    build the documentation in build/site, without the network
# make fuzz    all tests with new random examples, and the long random runs
#
# Each makes .venv, with the project and its pinned dependencies, if it is not there.

PYTHON ?= python3
BIN := .venv/bin
# Tests start processes: these need not compile the package again.
export PYTHONDONTWRITEBYTECODE :=
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-aarch64 test-avx512 lint bench bench-mca bench-models bench-transformers bench-depths bench-extract bench-scripts conformance conformance-torch conformance-jax replay prove docs site fuzz clean

demo: .venv/installed
	$(BIN)/python -m examples.digits.demo

test: .venv/installed
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not fuzz"

AARCH64 := .venv-aarch64
TESTS_OF_KERNELS ?= tests/lower tests/ir/ops/test_operators.py

test-aarch64:
	sh tests/support/aarch64.sh $(AARCH64)
	test ! -x $(AARCH64)/python || $(AARCH64)/python -m pytest -q -n auto --dist worksteal -m "not fuzz" $(TESTS_OF_KERNELS)

test-avx512: .venv/installed
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not fuzz" -p no:cacheprovider -p tests.support.wide_vectors $(TESTS_OF_KERNELS) tests/programs/test_random_programs.py

fuzz: .venv/installed
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -q -n auto --dist worksteal

prove: .venv/installed
	$(BIN)/python -m docs.proofs

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: .venv/installed
	$(BIN)/python -m bench $(if $(ONLY),--only "$(ONLY)") $(if $(MODELS),--models "$(MODELS)") $(if $(JSON),--json "$(JSON)") $(if $(SVG),--svg "$(SVG)") $(if $(TARGET),--target "$(TARGET)")

bench-mca: .venv/installed
	$(BIN)/python -m bench.mca

bench-models: .venv/installed
	$(BIN)/python -m bench.models $(MODELS)

bench-transformers: .venv/installed
	$(BIN)/python -m bench.exports $(EXPORTS) $(ONLY) $(if $(JSON),--json "$(JSON)")

bench-depths: .venv/installed
	$(BIN)/python -m bench.exports.depths $(EXPORTS)

bench-scripts: .venv/installed
	$(BIN)/python -m bench.tvm_scripts $(TESTS)

bench-extract: .venv/installed
	$(BIN)/python -m bench.extract $(EGRAPHS)

conformance: .venv/installed
	$(BIN)/python -m bench.onnx_conformance --json bench/onnx_conformance.json

conformance-torch: .venv/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .[torch] --group conformance-torch
	$(BIN)/python -m pytest -q -n auto tests/frontends/torch tests/frontends/torch_backend
	$(BIN)/python -W ignore -m bench.torch.operators --json bench/torch/operators.json
	$(BIN)/python -W ignore -m bench.torch.models
	$(BIN)/python -W ignore -m bench.torch.training
	$(BIN)/python -W ignore -m bench.torch.calls

conformance-jax: .venv/installed
	$(BIN)/python -W ignore -m bench.jax
	$(BIN)/python -W ignore -m bench.jax.compatibility
	$(BIN)/python -W ignore -m bench.jax.calls

replay: .venv/installed
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not fuzz" --replay

docs: .venv/installed
	$(BIN)/python -m docs.operators
	$(BIN)/python -m docs.builtins
	$(BIN)/python -m docs.examples

site: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group test
	touch $@

.venv/lint: .venv/installed
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

.venv/docs: .venv/installed
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

clean:
	rm -rf .venv .venv-aarch64 build dist *.egg-info
