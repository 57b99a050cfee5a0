"""Random cells for the tests of questions and answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armillary import Cell, Link, Manipulator, Mount
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.testing.samples import random_joint, random_pose

CellMaker = Callable[[int], Cell]


@pytest.fixture
def random_cell() -> CellMaker:
    """Return a maker of cells: an arm on a cart, branches, couplings, loose parts."""
    return random_tree


def random_tree(seed: int) -> Cell:
    """Return an arm on a cart, with branches, couplings and loose parts."""
    random = np.random.default_rng(seed)
    track = _tree(random, "track", 2)
    arm = _tree(random, "arm", 6)
    parts = [
        Manipulator(
            name=name,
            links=(Link(name=f"{name}_body", frames=(_frame(random, f"{name}_top"),)),),
        )
        for name in ("part", "tray")
    ]
    mounts = (
        Mount(manipulator="track", pose=random_pose(random)),
        Mount(manipulator="arm", on="track/track1", pose=random_pose(random)),
        Mount(manipulator="tray", pose=random_pose(random), bolted=False),
    )
    return Cell(name="random", manipulators=(track, arm, *parts), mounts=mounts)


def _tree(random: np.random.Generator, name: str, size: int) -> Manipulator:
    links = [Link(name=f"{name}_base", frames=(_frame(random, f"{name}_flange"),))]
    for k in range(size):
        parent = links[int(random.integers(max(0, k - 1), k + 1))].name
        follows = k == size - 1 and size > 3
        links.append(
            Link(
                name=f"{name}{k}",
                parent=parent,
                joint=random_joint(random),
                joint_name=f"{name}_joint{k}",
                primary=random_pose(random),
                coupling=Coupling(of=f"{name}_joint0", multiplier=-0.7, offset=0.2)
                if follows
                else None,
                frames=(_frame(random, f"{name}_tool{k}"),),
            )
        )
    return Manipulator(name=name, links=tuple(links))


def _frame(random: np.random.Generator, name: str) -> Frame:
    return Frame(name=name, pose=random_pose(random))
