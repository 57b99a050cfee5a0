"""Run the benchmarks: `python -m benchmarks [kinematics joints inverse arms ...]`.

Several groups run one after the other, each in a process of its own: one that fails
ends no other, and a summary says how each ended. All figures use one thread, unless
`ARMILLARY_THREADS` is set; sweeps use two workers. Each table begins with the rows
where a peer is ahead, the worst first.
"""

from __future__ import annotations

import argparse
import ast
import logging
import os
import platform
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from benchmarks.measure import QUICK

GROUPS = {
    "kinematics": "kinematics",
    "joints": "joints",
    "costs": "costs",
    "inverse": "inverse",
    "closed": "closed",
    "six-axes": "six_axes",
    "parameters": "parameters",
    "learning": "learning",
    "cells": "cells",
    "loops": "loops",
    "distances": "distances",
    "clouds": "clouds",
    "collisions": "collisions",
    "rules": "learned_rules",
    "dynamics": "dynamics",
    "control": "control",
    "paths": "paths",
    "lines": "lines",
    "planning": "planning",
    "programs": "programs",
    "pipelines": "pipelines",
    "scripted": "scripted",
    "seams": "seams",
    "sizes": "sizes",
    "sweeps": "sweeps",
    "targets": "targets",
    "gpu": "gpu",
    "viewer": "viewer",
}
REPORTS = {
    "arms": "arms",
    "arm-table": "arm_table",
    "servo": "servo",
    "agreement": "agreement",
    "distance-agreement": "distance_agreement",
    "files": "files",
    "sweep-kills": "sweep_kills",
}
"""Names on the command line, and the modules of this package."""


def main() -> None:
    """Measure the groups named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = {**GROUPS, **REPORTS}
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(every))
    parser.add_argument("--list", action="store_true", help="what the groups measure")
    parser.add_argument(
        "--quick", action="store_true", help="one turn each: to see that groups run"
    )
    parser.add_argument(
        "--minutes", type=float, help="end a group that takes longer; of several"
    )
    options = parser.parse_args()
    if unknown := [name for name in options.groups if name not in every]:
        parser.error(f"no group {unknown[0]!r}; there are {', '.join(every)}")
    names = options.groups or list(every)
    if options.quick:
        os.environ[QUICK] = "1"
    if options.list:
        for name in names:
            print(f"{name:<20}{subject(every[name])}")
            if peers := ", ".join(sorted(modules_of(every[name]))):
                print(f"{'':<20}uses {peers}")
    elif len(names) == 1:
        measure(names[0])
    elif failed := measure_each(names, options.minutes):
        sys.exit(f"{len(failed)} of {len(names)} failed: {', '.join(failed)}")


def measure(name: str) -> None:
    """Print the table of a group that has figures, or the report of another."""
    from armillary.kernel.host import host
    from benchmarks.measure import Figure, table

    os.environ.setdefault("ARMILLARY_THREADS", "1")
    # Drafts are for first answers, of which some figures are; others are of the code
    # that users have in the long run.
    os.environ.setdefault("ARMILLARY_BACKGROUND", "off")
    logging.getLogger("armillary").setLevel(logging.ERROR)  # robots' files have doubts
    target = host()
    print(f"{platform.machine()} {target.cpu}, {target.vector_bits}-bit vectors, load")
    print(f"{', '.join(f'{load:.1f}' for load in os.getloadavg())} at the beginning\n")
    if name in GROUPS:
        figures: list[Figure] = []
        for figure in import_module(f"benchmarks.{GROUPS[name]}").figures():
            print(f"{figure.what}: {figure.got}", file=sys.stderr, flush=True)
            figures.append(figure)
        print(table(figures))
    else:
        for line in import_module(f"benchmarks.{REPORTS[name]}").report():
            print(line, flush=True)


def measure_each(names: list[str], minutes: float | None) -> list[str]:
    """Measure groups in processes of their own; return the names of those that fail."""
    ends: dict[str, str] = {}
    for name in names:
        print(f"# {name}\n", flush=True)
        start = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks", name]
        try:
            code = subprocess.run(
                command, check=False, timeout=minutes and 60.0 * minutes
            ).returncode
            end = f"failed with status {code}" if code else "done"
        except subprocess.TimeoutExpired:
            end = "failed: not done in time"
        ends[name] = f"{end}, {time.perf_counter() - start:.0f} s"
        print(flush=True)
    print("# All groups\n")
    for name, end in ends.items():
        print(f"{name:<20}{end}")
    return [name for name, end in ends.items() if end.startswith("failed")]


def modules_of(module: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Return the other libraries that a module of this package imports, or may."""
    path = Path(__file__).parent / f"{module}.py"
    if module in seen or not path.exists():
        return set()
    found: set[str] = set()
    for name in imported(ast.parse(path.read_text("utf-8"))):
        package, _, rest = name.partition(".")
        if package == "benchmarks":
            found |= modules_of(rest.partition(".")[0], seen | {module})
        elif package not in {"armillary", "numpy", *sys.stdlib_module_names}:
            found.add(package)
    return found


def imported(tree: ast.Module) -> set[str]:
    """Return the modules that a text imports, or finds by name, functions included."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(str(module), aliases):
                names |= {f"{module}.{alias.name}" for alias in aliases}  # or a name
            case ast.Call(
                ast.Name("beside" | "find_spec" | "import_module"),
                [ast.Constant(str(module)), *_],
            ):
                names.add(module)
            case _:
                pass
    return names


def subject(module: str) -> str:
    """Return the first line of a module's docstring, without importing it."""
    tree = ast.parse((Path(__file__).parent / f"{module}.py").read_text("utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


if __name__ == "__main__":
    main()
