"""Run the benchmarks: `python -m benchmarks [kinematics joints inverse arms ...]`.

All figures use one thread, unless `ARMILLARY_THREADS` is set; sweeps use two workers.
The table begins with the rows where a peer is ahead, the worst first.
"""

from __future__ import annotations

import argparse
import ast
import logging
import os
import platform
from importlib import import_module
from pathlib import Path

GROUPS = {
    "kinematics": "kinematics",
    "joints": "joints",
    "costs": "costs",
    "inverse": "inverse",
    "closed": "closed",
    "six-axes": "six_axes",
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
    "pipelines": "pipelines",
    "scripted": "scripted",
    "seams": "seams",
    "sizes": "sizes",
    "sweeps": "sweeps",
    "viewer": "viewer",
}
REPORTS = {
    "arms": "arms",
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
    options = parser.parse_args()
    if unknown := [name for name in options.groups if name not in every]:
        parser.error(f"no group {unknown[0]!r}; there are {', '.join(every)}")
    names = options.groups or list(every)
    if options.list:
        for name in names:
            print(f"{name:<20}{subject(every[name])}")
    else:
        measure(names)


def measure(names: list[str]) -> None:
    """Print the table of all groups that have figures, then the reports of others."""
    from armillary.kernel.jit import host
    from benchmarks.measure import table

    os.environ.setdefault("ARMILLARY_THREADS", "1")
    logging.getLogger("armillary").setLevel(logging.ERROR)  # robots' files have doubts
    target = host()
    print(f"{platform.machine()} {target.cpu}, {target.vector_bits}-bit vectors, load")
    print(f"{', '.join(f'{load:.1f}' for load in os.getloadavg())} at the beginning\n")
    figures = [
        figure
        for name in names
        if name in GROUPS
        for figure in import_module(f"benchmarks.{GROUPS[name]}").figures()
    ]
    if figures:
        print(table(figures))
    for name in names:
        if name in REPORTS:
            for line in import_module(f"benchmarks.{REPORTS[name]}").report():
                print(line, flush=True)


def subject(module: str) -> str:
    """Return the first line of a module's docstring, without importing it."""
    tree = ast.parse((Path(__file__).parent / f"{module}.py").read_text("utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


if __name__ == "__main__":
    main()
