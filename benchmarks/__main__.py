"""Run the benchmarks: `python -m benchmarks [kinematics joints inverse arms ...]`.

All figures use one thread, unless `ARMILLARY_THREADS` is set; sweeps use two workers.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform

from armillary.kernel.jit import host
from benchmarks import (
    agreement,
    arms,
    cells,
    closed,
    collisions,
    control,
    costs,
    distance_agreement,
    distances,
    dynamics,
    files,
    inverse,
    joints,
    kinematics,
    learned_rules,
    loops,
    paths,
    pipelines,
    scripted,
    seams,
    sweep_kills,
    sweeps,
    viewer,
)
from benchmarks.measure import table

GROUPS = {
    "kinematics": kinematics,
    "joints": joints,
    "costs": costs,
    "inverse": inverse,
    "closed": closed,
    "cells": cells,
    "loops": loops,
    "distances": distances,
    "collisions": collisions,
    "rules": learned_rules,
    "dynamics": dynamics,
    "control": control,
    "paths": paths,
    "pipelines": pipelines,
    "scripted": scripted,
    "seams": seams,
    "sweeps": sweeps,
    "viewer": viewer,
}
REPORTS = {
    "arms": arms,
    "agreement": agreement,
    "distance-agreement": distance_agreement,
    "files": files,
    "sweep-kills": sweep_kills,
}


def main() -> None:
    """Measure the groups named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*GROUPS, *REPORTS]
    parser.add_argument("groups", nargs="*", choices=[[], *names], default=names)
    groups = parser.parse_args().groups
    os.environ.setdefault("ARMILLARY_THREADS", "1")
    logging.getLogger("armillary").setLevel(logging.ERROR)  # robots' files have doubts
    target = host()
    print(f"{platform.machine()} {target.cpu}, {target.vector_bits}-bit vectors\n")
    figures = [f for name in groups if name in GROUPS for f in GROUPS[name].figures()]
    if figures:
        print(table(figures))
    for name in groups:
        for line in REPORTS[name].report() if name in REPORTS else ():
            print(line, flush=True)


if __name__ == "__main__":
    main()
