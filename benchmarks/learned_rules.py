"""Rules learned for a Panda in hulls, beside Pinocchio with coal: one thread.

The peer does what MoveIt's setup assistant does: all pairs at one joint position after
the other, by `computeCollisions` without an end at the first contact, whose loop over
pairs is in C++. It gets the same hulls, and leaves out links that share a joint.
"""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import armillary as arm
from armillary.model.rules import Rules
from armillary.shapes import Mesh
from benchmarks.distances import peer_shape
from benchmarks.measure import Figure, best_times, faster, within
from benchmarks.peer_checks import PeerChecks

COUNT = 10_000
FEW = 500


def figures() -> Iterator[Figure]:
    """Yield the figures of learned rules."""
    path = panda_urdf()
    cell = arm.load(path)
    start = time.process_time()
    for link in cell.manipulators[0].links:
        for shape in link.collision_shapes:
            if isinstance(shape, Mesh):
                cell.meshes.hull(shape)
    read = time.process_time() - start
    start = time.process_time()
    rules = cell.learn_rules(samples=COUNT)
    first = time.process_time() - start
    peer = Pinocchio(cell, str(path))
    Q = cell.samples(COUNT).rows(0, COUNT)
    assert peer.untested(Q[:FEW]) >= _untested(cell.learn_rules(samples=FEW))

    def ours() -> None:
        cell.learn_rules(samples=COUNT)

    def theirs() -> None:
        peer.touching(Q[:FEW])

    times = best_times(ours, theirs, turns=6, clock=time.process_time)
    title = f"rules of a Panda in hulls, {COUNT:,} samples"
    assert _untested(rules)
    yield within(f"{title}, first in a process", first, at_most=1.0)
    yield within(f"{title}, then", times[0], at_most=1.0)
    yield within("reading its meshes and making hulls", read, at_most=10.0)
    each = times[0] / COUNT, times[1] / FEW
    yield faster(f"{title}, a sample; Pinocchio and coal", *each, at_least=3)


def _untested(rules: Rules) -> set[frozenset[str]]:
    """Return the pairs that never touch."""
    return {frozenset((r.a, r.b)) for r in rules.rules if r.reason == "never"}


def panda_urdf() -> Path:
    """Return the URDF of a Panda in example-robot-data."""
    for file in importlib.metadata.files("example-robot-data") or ():
        if str(file).endswith("panda_description/urdf/panda.urdf"):
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError("example-robot-data is not installed")


class Pinocchio:
    """All pairs of links of a robot that may meet, by Pinocchio and coal."""

    def __init__(
        self,
        cell: arm.Cell,
        path: str,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """Make the same robot with the same hulls.

        Args:
            cell: Ours.
            path: Of its URDF.
            pairs: The pairs of links; by default all but those that share a joint.
        """
        pin: Any = import_module("pinocchio")
        self._pin = pin
        self.model = model = pin.buildModelFromUrdf(path)
        self.geometry = geometry = pin.GeometryModel()
        apart = arm.Rules().include("panda/*", "panda/*").rules
        joined = cell.rules.rules[3:4]  # links that share a joint
        every = cell.pairs(cell.home, rules=Rules(rules=(*apart, *joined)))
        self.pairs = list(every if pairs is None else pairs)
        numbers: dict[str, list[int]] = {}
        for link in cell.manipulators[0].links:
            frame = model.frames[model.getFrameId(link.name)]
            for k, shape in enumerate(link.collision_shapes):
                solid: Any = shape
                if isinstance(shape, Mesh):
                    solid = cell.meshes.hull(shape)
                at = frame.placement * pin.SE3(shape.pose.matrix())
                made = pin.GeometryObject(
                    f"{link.name}{k}", frame.parentJoint, at, peer_shape(solid)
                )
                number = geometry.addGeometryObject(made)
                numbers.setdefault(f"panda/{link.name}", []).append(number)
        owners: list[int] = []
        for k, (a, b) in enumerate(self.pairs):
            for i in numbers[a]:
                for j in numbers[b]:
                    geometry.addCollisionPair(pin.CollisionPair(i, j))
                    owners.append(k)
        self._owners = np.array(owners)
        self.checks = PeerChecks(model, geometry)
        self.data, self.found = self.checks.data, self.checks.found

    def touching(self, Q: np.ndarray) -> np.ndarray:
        """Return which pairs of links touch: (n, joints) -> (n, pairs)."""
        found = np.zeros((len(Q), len(self.pairs)), np.bool_)
        compute, results = self._pin.computeCollisions, self.found.collisionResults
        given = self.model, self.data, self.geometry, self.found
        for row, q in enumerate(Q):
            compute(*given, self.joints(q), False)
            hits = [k for k, each in enumerate(results) if each.isCollision()]
            found[row, self._owners[hits]] = True
        return found

    def distances(self, q: np.ndarray) -> np.ndarray:
        """Return the distance of each pair of links, shape (pairs,)."""
        found = np.full(len(self.pairs), np.inf)
        results = self.checks.distances(self.joints(q))
        values = [each.min_distance for each in results]
        np.minimum.at(found, self._owners, values)
        return found

    def joints(self, q: np.ndarray) -> np.ndarray:
        """Return the joints of its model, where a finger follows the other."""
        return np.concatenate((q, q[..., -1:]), axis=-1)

    def untested(self, Q: np.ndarray) -> set[frozenset[str]]:
        """Return the pairs that touch in no sample."""
        never = ~self.touching(Q).any(axis=0)
        return {frozenset(self.pairs[k]) for k in np.flatnonzero(never).tolist()}
