"""What a joint of the user's own costs beside a built-in one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import armillary as arm
from benchmarks.measure import Figure, best_times, cheaper

BATCH = 100_000


class OwnRevolute(arm.Joint):
    """Turn about z, written as a user would."""

    def pose(self, q):
        """Return the rotation by q about z."""
        c, s = np.cos(q), np.sin(q)
        return [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def figures() -> Iterator[Figure]:
    """Yield the figures of own joints."""
    built_in, own = six_axes(arm.joints.Revolute), six_axes(OwnRevolute)
    yield ratio("own revolute in place of the built-in one", own, built_in, 1.05)
    on_oval = arm.example("oval_track_cell")  # that of the demo
    rail = on_oval.manipulators[0]
    slide = rail.link("cart").replace(joint=arm.joints.Prismatic(axis=(1, 0, 0)))
    on_slide = on_oval.exchange(rail.exchange(slide))
    yield ratio("oval track in place of a prismatic joint", on_oval, on_slide, 1.6)


def ratio(what: str, cell: arm.Cell, other: arm.Cell, at_most: float) -> Figure:
    """Return the line for the cost of one cell's FK beside another's."""
    size = len(cell.joint_names)
    Q = np.random.default_rng(0).uniform(-3.0, 3.0, (BATCH, size))
    X = np.empty((BATCH, 4, 4))
    fk, rival = cell.fk("tool0"), other.fk("tool0")
    ours, peer = best_times(
        lambda: fk(Q, out=X, threads=1), lambda: rival(Q, out=X, threads=1), turns=40
    )
    return cheaper(what, ours / BATCH, peer / BATCH, at_most=at_most)


def six_axes(kind: type[arm.Joint]) -> arm.Cell:
    """Return a UR5e made of one kind of revolute joint."""
    return arm.Cell(manipulators=(arm_of(kind),))


def arm_of(kind: type[arm.Joint]) -> arm.Manipulator:
    """Return a UR5e from its published Denavit-Hartenberg parameters."""
    a = (0.0, -0.425, -0.3922, 0.0, 0.0, 0.0)
    d = (0.1625, 0.0, 0.0, 0.1333, 0.0997, 0.0996)
    alpha = (np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0)
    behind = arm.Pose.identity()
    links = [arm.Link(name="base")]
    for k in range(6):
        joint = kind(precursor=behind)
        parent = links[-1].name
        links.append(arm.Link(name=f"link{k + 1}", parent=parent, joint=joint))
        lift = arm.Pose.translation(0.0, 0.0, d[k])
        behind = lift @ arm.Pose.translation(a[k], 0, 0) @ arm.Pose.rotation_x(alpha[k])
    tool = arm.joints.Fixed(precursor=behind)
    links.append(arm.Link(name="tool0", parent="link6", joint=tool))
    return arm.Manipulator(name="ur5e", links=tuple(links))
