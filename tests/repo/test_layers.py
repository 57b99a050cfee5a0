"""Imports point down the table of ARCHITECTURE.md, and never in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "armillary"

# From the bottom up; names in one row do not see each other.
LAYERS = (
    ("paused_collector",),
    (
        "errors",
        "forks",
        "replaced_file",
        "user_folder",
        "confined_process",
        "limits",
        "csv_text",
        "digests",
    ),
    ("late_names",),
    ("trace", "plugins", "disk_cache", "file_start", "zip_archive"),
    ("spatial", "kernel"),
    ("model",),
    ("kinematics", "scripts"),
    ("ik", "collision", "dynamics"),
    ("control", "trajectories", "sweeps"),
    ("planning",),
    ("view", "portable"),
    ("programs",),
    ("cell", "formats", "shapes"),
    ("calibration", "testing"),
    ("cli",),
)
INDENTED = re.compile(r"^[ \t]+from armillary\b", re.MULTILINE)
HEIGHT = {name: row for row, names in enumerate(LAYERS) for name in names}


class Import(NamedTuple):
    source: str  # the module that imports, its full dotted name
    target: str  # the module that is imported
    place: str  # file:line


def modules(package: Path) -> dict[str, Path]:
    """Every module of a package by its dotted name."""
    found: dict[str, Path] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path
    return found


@cache
def imports(package: Path) -> list[Import]:
    """Every import of a module of the package by another, wherever it stands."""
    known = modules(package)
    return [
        Import(source, target, f"{path.relative_to(package.parent)}:{line}")
        for source, path in known.items()
        for name, line in imported_names(source, path)
        if (target := nearest(name, known)) is not None and target != source
    ]


@cache
def imported_names(source: str, path: Path) -> list[tuple[str, int]]:
    """The dotted names that a module imports, ``from a import b`` being ``a.b``."""
    package = source if path.name == "__init__.py" else source.rpartition(".")[0]
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found += ((alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.split(".")[: len(package.split(".")) - level + 1]
                base = [*(above if level else []), *([module] if module else [])]
                found += ((".".join([*base, a.name]), node.lineno) for a in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                found.append((name, node.lineno))
    return found


def unlocked(path: Path) -> Iterator[str]:
    """The imports of ours inside functions of a module that no lock is held for."""

    def visit(node: ast.AST, *, inside: bool, locked: bool) -> Iterator[str]:
        inside |= isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.With):
            held = ast.unparse(node.items[0])
            locked |= held in {"IMPORT_LOCK", "forks.IMPORT_LOCK", "_import_lock()"}
        is_ours = isinstance(node, ast.ImportFrom) and (
            (node.module or "").partition(".")[0] == "armillary"
        )
        if is_ours and inside and not locked:
            yield f"{path}: {ast.unparse(node)}"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside=inside, locked=locked)

    text = path.read_text(encoding="utf-8")
    if not INDENTED.search(text):
        return iter(())
    return visit(ast.parse(text), inside=False, locked=False)


def nearest(name: str, known: dict[str, Path]) -> str | None:
    """The module that an imported name belongs to, if it is one of ours."""
    while name:
        if name in known:
            return name
        name = name.rpartition(".")[0]
    return None


def layer(module: str) -> str | None:
    """The layer of a module; None for the package itself, the public face of all."""
    if module == "armillary.__main__":  # what `python -m armillary` runs
        return "cli"
    return module.split(".")[1] if "." in module else None


def upward(package: Path) -> list[str]:
    """What is wrong with each import that does not point down."""
    return [
        f"{found.place}: {found.source} imports {found.target}"
        for found in imports(package)
        if not allowed(layer(found.source), layer(found.target))
    ]


def allowed(source: str | None, target: str | None) -> bool:
    """Whether one layer may import from another."""
    if source is None or source == target:
        return True
    if target is None:  # the public face: only the command line stands above it
        return source == "cli"
    return HEIGHT.get(target, len(LAYERS)) < HEIGHT.get(source, -1)


def cycle(package: Path) -> list[str]:
    """The modules of one import cycle, or none."""
    graph: dict[str, set[str]] = {}
    for found in imports(package):
        graph.setdefault(found.source, set()).add(found.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def documented() -> list[tuple[str, ...]]:
    """The rows of the table of layers in ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("| layer |")
    assert rest, "ARCHITECTURE.md has no table that starts with '| layer |'"
    table = rest.split("\n\n")[0].splitlines()[2:]
    return [tuple(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table]


def test_every_module_has_a_layer():
    names = {layer(name) for name in modules(PACKAGE)} - {None}
    assert names, f"no modules under {PACKAGE}"
    assert names <= HEIGHT.keys(), "give it a row in ARCHITECTURE.md and in LAYERS"


def test_imports_point_down():
    assert upward(PACKAGE) == []


def test_no_import_cycles():
    assert cycle(PACKAGE) == []


def test_only_kernel_knows_llvm():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for source, path in modules(PACKAGE).items()
        for name, line in imported_names(source, path)
        if name.split(".")[0] == "llvmlite" and layer(source) != "kernel"
    ]
    assert found == []


def test_architecture_names_the_layers():
    assert documented() == list(LAYERS)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("trace/ops", "import armillary.kernel.jit"),
        ("trace/ops", "def late():\n    from armillary import model"),
        ("trace/ops", "from ..spatial import pose"),
        ("spatial/pose", "from armillary.kernel.jit import compile"),
        ("model/joint", "if TYPE_CHECKING:\n    from armillary.cell.cell import Cell"),
        (
            "formats/urdf",
            "from importlib import import_module\nimport_module('armillary.cli.main')",
        ),
        ("cell/cell", "import armillary as arm"),
        ("trace/ops", "import armillary.elsewhere"),
    ],
)
def test_the_rule_sees(tmp_path: Path, module: str, text: str):
    package = example(tmp_path, {module: text})
    assert len(upward(package)) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("kernel/jit", "from armillary.trace.ops import add"),
        ("trace/ops", "from .. import errors"),
        ("model/joint", "from armillary import errors"),
        ("cli/main", "import armillary"),
        ("__init__", "from armillary.cell.cell import Cell"),
    ],
)
def test_the_rule_allows(tmp_path: Path, module: str, text: str):
    package = example(tmp_path, {module: text})
    assert len(imports(package)) == 1
    assert upward(package) == []


def test_the_rule_sees_cycles(tmp_path: Path):
    ops = "def late():\n    from armillary.trace import show"
    show = "from armillary.trace.ops import add"
    package = example(tmp_path, {"trace/ops": ops, "trace/show": show})
    assert upward(package) == []
    assert set(cycle(package)) == {"armillary.trace.ops", "armillary.trace.show"}


def example(folder: Path, texts: dict[str, str]) -> Path:
    """A small package with a module in each layer, and the texts given."""
    package = folder / "armillary"
    empty = (
        "__init__ errors elsewhere trace/__init__ trace/ops trace/show "
        "spatial/__init__ spatial/pose kernel/__init__ kernel/jit "
        "model/__init__ model/joint formats/__init__ formats/urdf "
        "cell/__init__ cell/cell cli/__init__ cli/main"
    )
    for name in [*empty.split(), *texts]:
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.get(name, ""))
    return package


@pytest.mark.parametrize("room", sorted({layer for row in LAYERS for layer in row}))
def test_imports_inside_functions_hold_the_lock_of_imports(room: str):
    """A fork would copy the lock of a module that another thread imports."""
    # A verb of the command line has its process for itself.
    if room in {"cli", "forks"}:
        return
    paths = [*PACKAGE.glob(f"{room}.py"), *(PACKAGE / room).rglob("*.py")]
    assert paths
    assert [each for path in paths for each in unlocked(path)] == []
