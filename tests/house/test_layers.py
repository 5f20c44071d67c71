"""The layering, as a table, and that the code keeps to it."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import relax_egraph
from relax_egraph.extract.components import components

MAY_IMPORT = {
    "__init__": {
        *("build", "calibrate", "diff", "extract", "frontends", "ir", "loading", "lower"),
        *(
            "optimize",
            "passes",
            "pictures",
            "proof",
            "ray",
            "reasons",
            "rules",
            "script",
            "serve",
            "shards",
            "tir",
            "versions",
            "vm",
        ),
    },
    "__main__": {"cli"},
    "cli": {
        *("prove", "verify", "ir.dims", "ir.dtypes", "ir.syntax"),
        *("", "build", "calibrate", "diff", "discover", "egraph.rulebook", "extract"),
        "frontends",
        *("inference", "lower.memory", "lsp", "pictures", "play", "ray", "reasons", "server"),
        "workers",
        *("rules", "optimize.explanation", "optimize.sizes", "versions"),
        "lower.jit.processors",
    },
    "serve": {"ray.serving", "server"},
    "ray": {"", "inference", "loading", "server", "shards", "vm", "workers"},
    "server": {"", "inference", "ir.dtypes"},
    "shards": {
        *("build", "egraph", "extract", "ir", "lower.library", "optimize", "passes", "vm"),
    },
    "inference": {"ir.dtypes", "ir.syntax", "loading", "vm"},
    "play": {
        *("", "authoring", "build", "egraph", "ir", "optimize.explanation", "reasons", "rules"),
        *("script", "workers"),
    },
    "lsp": {
        *("authoring", "egraph.encoding.attributes", "egraph.rulebook", "ir", "rules", "workers"),
        *("lsprotocol", "pygls"),
    },
    "authoring": {"", "egraph.rulebook", "ir", "prove", "rules", "verify"},
    "versions": {"lower.emit"},
    "diff": {"frontends", "optimize.session", "reasons", "rules"},
    "pictures": {"egraph", "ir", "optimize.explanation", "reasons", "igraph"},
    "reasons.accuracy": {"build", "ir", "lower", "tir", "vm"},
    "reasons": {
        *("build", "egraph", "extract", "ir", "lower.library", "optimize", "passes", "proof"),
        *("rules", "verify", "vm", "workers"),
    },
    "proof": {"egraph", "optimize.explanation", "extract", "ir", "verify"},
    "discover": {"egraph", "extract", "ir", "prove", "rules", "verify", "workers"},
    "frontends.jax_functions": {"", "frontends", "ir", "jax"},
    "frontends.onnx_backend": {"", "frontends", "onnx"},
    "frontends.torch_backend": {"", "frontends", "passes", "ir", "vm.executable", "torch"},
    "frontends": {"passes", "ir", "jax", "jaxlib", "onnx", "torch"},
    "calibrate": {"build", "extract", "ir", "lower", "tir", "vm"},
    "optimize": {
        *("egraph", "extract", "lower.library", "lower.jit.object_cache", "passes", "ir"),
        *("raising", "rules"),
    },
    "raising": {"lower.legalize", "passes", "tir", "ir"},
    "build": {"loading", "lower", "vm", "passes", "tir", "ir"},
    "loading": {"lower.jit", "lower.runtime", "vm", "ir.operators", "ir.run_time"},
    "prove": {
        *("egraph", "ir", "lower.jit.object_cache", "lower.legalize", "rules", "tir", "verify"),
        *("workers", "cvc5", "z3"),
    },
    "lower": {"passes", "tir", "ir", "vm", "llvmlite"},
    "verify": {"egraph", "rules", "ir", "vm.registry", "workers"},
    "vm": {"ir.dtypes", "ir.form", "ir.message", "ir.syntax"},
    "extract": {"egraph.binders", "egraph.node", "egraph.view", "ir", "highspy"},
    "egraph.bindings": {"egglog"},
    "egraph": {"rules", "ir", "workers"},
    "script": {"tir", "ir"},
    "passes": {"tir", "ir"},
    "tir": {"ir"},
    "rules": set[str](),
    "ir": {"ml_dtypes"},
    "workers": set[str](),
    "errors": set[str](),
    "base": set[str](),
}
"""What each part may import besides itself and what is public to all; from the top down."""

PARTS = set(MAY_IMPORT) - {"__init__"}
LIBRARIES = {
    *(
        "cvc5",
        "egglog",
        "highspy",
        "igraph",
        "jax",
        "jaxlib",
        "llvmlite",
        "lsprotocol",
        "ml_dtypes",
        "onnx",
    ),
    *("pygls", "ray", "torch", "z3"),
}
"""The third parties that are entered by one door each."""

PUBLIC_TO_ALL = {"errors", "base"}
ROOT = Path(relax_egraph.__file__).parent


EXAMPLES = {
    "scipy": "kernels/dgemm.py",
    "numba": "kernels/running_products.py",
    "onnxruntime": "kernels/mlp.py",
}
"""The libraries that examples call, and the one file that imports each."""


def files_of(part: str) -> list[Path]:
    """The files of `part`, without those that are a part of their own."""
    own = [p for p in MAY_IMPORT if p.startswith(f"{part}.")]
    return sorted(_all_files(part).difference(*map(_all_files, own)))


def _all_files(part: str) -> set[Path]:
    path = part.replace(".", "/")
    return {*(ROOT / path).rglob("*.py"), *ROOT.glob(f"{path}.py")}


def names_imported(file: Path) -> Iterator[str]:
    """The modules that `file` imports, with those that it imports from."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def imports_of(file: Path) -> Iterator[str]:
    """What `file` imports of this package, as ``part.module``, and of the doored libraries."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(level=0):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            case _:
                continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "relax_egraph":
                yield rest if rest.split(".")[0] in PARTS else ""
            elif first in LIBRARIES:
                yield first


def allowed(target: str, may: set[str]) -> bool:
    return any(target == m or (m and target.startswith(f"{m}.")) for m in may)


def test_the_table_has_no_cycle() -> None:
    parts = list(MAY_IMPORT)

    for part, below in MAY_IMPORT.items():
        above = set(parts[: parts.index(part) + 1])
        assert not {name.split(".")[0] for name in below} & above, part


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_keep_to_the_table(part: str) -> None:
    may = MAY_IMPORT[part] | PUBLIC_TO_ALL | {part}

    strays = [
        f"{file.relative_to(ROOT)} imports {target or 'the facade'}"
        for file in files_of(part)
        for target in imports_of(file)
        if not allowed(target, may)
    ]

    assert not strays


def test_ray_is_imported_in_one_file() -> None:
    written = re.compile(r'import_module\("ray|^\s*(import|from) ray\b', re.MULTILINE)
    files = {f: f.read_text("utf-8") for f in ROOT.rglob("*.py")}

    assert [f for f, text in files.items() if written.search(text)] == []
    assert {f.name for f in files if "ray" in f.parts and "import_module" in files[f]} == {
        "cluster.py"
    }


CIRCLES = {
    frozenset(
        {
            *("ir.agreement", "ir.arithmetic", "ir.attributes", "ir.expr", "ir.op"),
            *("ir.operators", "ir.struct_info"),
        }
    ),
    frozenset({"vm.analysis", "vm.binary", "vm.executable", "vm.printing", "vm.reading"}),
}
"""Files that import each other, some within functions.

Struct info holds expressions, an expression its struct info, and a call its operator, which is
pickled by its name in the set that is in force; arithmetic on expressions makes calls.  An
executable is an object whose methods save, load and print it.
"""


@pytest.mark.parametrize("library", EXAMPLES)
def test_examples_import_each_library_in_one_place(library: str) -> None:
    folder = ROOT.parent / "examples"

    importing = [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if f'import_module("{library}' in path.read_text("utf-8")
        or any(target.partition(".")[0] == library for target in names_imported(path))
    ]

    assert importing == [EXAMPLES[library]]


def test_no_other_files_import_each_other() -> None:
    files = [*ROOT.rglob("*.py"), *(f for link in ROOT.iterdir() for f in _linked_files(link))]
    modules = {_module_of(file): file for file in files}
    imports = {
        name: {
            module
            for target in imports_of(file)
            if target not in LIBRARIES and (module := _module_in(target, modules))
        }
        for name, file in modules.items()
    }

    circles = {frozenset(group) for group in components(imports) if len(group) > 1}

    assert circles == CIRCLES


def _linked_files(path: Path) -> list[Path]:
    return [*path.rglob("*.py")] if path.is_symlink() else []


def _module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _module_in(target: str, modules: Mapping[str, Path]) -> str | None:
    """The module that an import of `target` reads: itself, or the one that defines this name."""
    return next((m for m in (target, target.rpartition(".")[0]) if m in modules), None)


def test_every_part_is_in_the_table() -> None:
    folders = {p.parent.name for p in ROOT.glob("*/__init__.py")}
    files = {p.stem for p in ROOT.glob("*.py")}

    assert folders | files == {part for part in MAY_IMPORT if "." not in part}


def test_kernels_are_priced_without_llvm() -> None:
    files = [*(ROOT / "lower" / "library").glob("*.py")]
    targets = {target for file in files for target in imports_of(file)}

    assert "lower.library.operators.schedule_of_operator" in targets
    assert "llvmlite" not in targets
