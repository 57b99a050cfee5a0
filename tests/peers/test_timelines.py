"""Clearance and torques of timelines beside dense samples by coal and Pinocchio."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.programs.steps import PTP, Drive, Grip, Linear, Release, Wait
from belt_cell import HEIGHT, READY, SIDE, TOOL, above, belt_cell, place

pytestmark = pytest.mark.peers

Array = npt.NDArray[np.float64]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SAMPLES = 100
"""In each span in which nothing is gripped or released."""


def seam() -> arm.Timeline:
    """Two arms at a positioner, of which one welds; the other stands."""
    found = runpy.run_path(str(EXAMPLES / "seam_program.py"))
    return found["cell"].run(found["program"](), acceleration=found["ACCELERATION"])


def pick() -> arm.Timeline:
    """An arm moves a box of 4 kg across a conveyor that moves."""
    cell = belt_cell()
    heavy = arm.SpatialInertia(
        4.0, (0.0, 0.0, 0.08), ((0.05, 0.0, 0.0), (0.0, 0.06, 0.0), (0.0, 0.0, 0.04))
    )
    (box,) = (each for each in cell.manipulators if each.name == "box")
    (body,) = box.links
    loaded = box.replace(links=[body.replace(inertia=heavy)])
    cell = cell.replace(
        manipulators=[loaded if m is box else m for m in cell.manipulators]
    )
    high = HEIGHT + SIDE + 0.001
    start = cell.home.place("box", place(0.9, -0.2)).place("other", place(0.9, 0.5))
    steps = [
        PTP(to=READY),
        PTP(to=above(0.9, -0.2, high + 0.2), frame=TOOL),
        Linear(to=above(0.9, -0.2, high), frame=TOOL, speed=0.5),
        Grip(part="box", by=TOOL),
        Linear(to=above(0.9, 0.2, high + 0.2), frame=TOOL),
        Release(part="box"),
        PTP(to=READY),
    ]
    belt = [Wait(seconds=1.0), Drive(joint="belt/carrier", speed=0.1)]
    program = arm.Program({"irb2400": steps, "belt": belt})
    return cell.run(program, start, acceleration=8.0)


class Placed(NamedTuple):
    """What is fixed to a joint of Pinocchio: number, and pose there."""

    joint: int
    pose: Any


class Peer(NamedTuple):
    """A cell in a state, built of axes, masses and shapes.

    Attributes:
        model: Of Pinocchio.
        order: The place of each joint of the cell in its vectors.
        shapes: Those of coal, by the names of links.
    """

    model: Any
    order: list[int]
    shapes: dict[str, list[tuple[Placed, Any]]]

    @classmethod
    def of(cls, cell: arm.Cell, state: arm.State) -> Peer:
        pin, coal = pytest.importorskip("pinocchio"), pytest.importorskip("coal")
        model, at = pin.Model(), {-1: Placed(0, pin.SE3.Identity())}
        order: list[int] = []
        shapes: dict[str, list[tuple[Placed, Any]]] = {}
        starts = dict(cell_starts(cell))
        # A part may hang on a robot that comes later.
        waiting = list(cell.manipulators)
        while waiting:
            m = waiting.pop(0)
            on = state.parent(m.name)
            where = cell.frame(on)
            if where.link not in at:
                waiting.append(m)
                continue
            names = [link.name for link in m.links]
            root = np.asarray(cell.pose(f"{m.name}/{names[m.base]}", state))
            X = np.eye(4) if on == "world" else np.asarray(cell.pose(on, state))
            base = pin.SE3(where.pose.matrix()) * pin.SE3(np.linalg.solve(X, root))
            for k, link in enumerate(m.links):
                number = starts[m.name] + k
                if link.parent is None:
                    carrier, X_CL = at[where.link], base
                else:
                    carrier = at[starts[m.name] + names.index(link.parent)]
                    X_CL = pin.SE3.Identity()
                placed = Placed(carrier.joint, carrier.pose * X_CL)
                if isinstance(link.joint, arm.joints.Revolute | arm.joints.Prismatic):
                    turns = isinstance(link.joint, arm.joints.Revolute)
                    kinds = (
                        pin.JointModelPrismaticUnaligned,
                        pin.JointModelRevoluteUnaligned,
                    )
                    joint = kinds[turns](np.array(link.joint.axis))
                    X_J = placed.pose * pin.SE3(link.joint.precursor.matrix())
                    of = model.addJoint(
                        placed.joint, joint, X_J, f"{m.name}/{link.name}"
                    )
                    order.append(of)
                    placed = Placed(of, pin.SE3.Identity())
                at[number] = placed
                if link.inertia is not None:
                    body = inertia(pin, link.inertia)
                    model.appendBodyToJoint(placed.joint, body, placed.pose)
                shapes[f"{m.name}/{link.name}"] = [
                    (
                        placed._replace(pose=placed.pose * pin.SE3(each.pose.matrix())),
                        of_coal,
                    )
                    for each in link.collisions
                    for of_coal in [coal_shape(coal, each)]
                ]
        return cls(model, [model.joints[k].idx_q for k in order], shapes)

    def vector(self, values: Array) -> Array:
        """Return numbers of joints in Pinocchio's order."""
        found = np.zeros(len(values))
        found[self.order] = values
        return found

    def torques(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return torques in the order of the cell."""
        pin = pytest.importorskip("pinocchio")
        given = map(self.vector, (q, qd, qdd))
        return pin.rnea(self.model, self.model.createData(), *given)[self.order]

    def distances(self, q: Array, pairs: Any, within: float) -> Array:
        """Return distances of pairs of links, infinite where they are farther."""
        pin, coal = pytest.importorskip("pinocchio"), pytest.importorskip("coal")
        data = self.model.createData()
        pin.forwardKinematics(self.model, data, self.vector(q))
        request = coal.DistanceRequest()
        request.gjk_tolerance = request.epa_tolerance = 1e-12
        request.gjk_max_iterations = 2000
        found = np.full(len(pairs), np.inf)
        for k, names in enumerate(pairs):
            for (a, one), (b, other) in product(*(self.shapes[name] for name in names)):
                X_A, X_B = (data.oMi[each.joint] * each.pose for each in (a, b))
                apart = np.linalg.norm(X_A.translation - X_B.translation)
                if apart - one.aabb_radius - other.aabb_radius > within:
                    continue
                placed = (
                    coal.Transform3s(X.rotation, X.translation) for X in (X_A, X_B)
                )
                X, Y = placed
                result = coal.DistanceResult()
                d = coal.distance(one, X, other, Y, request, result)
                found[k] = min(found[k], d)
        return found


def cell_starts(cell: arm.Cell) -> Iterator[tuple[str, int]]:
    """Yield the number of the first link of each manipulator."""
    first = 0
    for m in cell.manipulators:
        yield m.name, first
        first += len(m.links)


def inertia(pin: Any, given: arm.SpatialInertia) -> Any:
    """Return an inertia about the centre of mass."""
    mass, about = given.mass, np.array(given.rotational)
    centre = np.array(given.first_moment) / mass if mass else np.zeros(3)
    about = about - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    return pin.Inertia(mass, centre, about)


def coal_shape(coal: Any, shape: Any) -> Any:
    match shape:
        case arm.shapes.Box():
            made = coal.Box(*shape.size)
        case arm.shapes.Cylinder():
            made = coal.Cylinder(shape.radius, shape.length)
        case arm.shapes.Capsule():
            made = coal.Capsule(shape.radius, shape.length)
        case arm.shapes.Sphere():
            made = coal.Sphere(shape.radius)
        case _:
            raise NotImplementedError(type(shape).__name__)
    made.computeLocalAABB()
    return made


@pytest.mark.parametrize("make", [seam, pick])
def test_no_lesser_clearance_and_no_greater_torque_is_found(make: Any):
    timeline = make()
    assert timeline.success, timeline.failure
    cell, recording = arm.Cell.of(timeline.cell), timeline.recording
    clearance, loads = timeline.clearance(), timeline.loads()
    least, nearest, peak = np.inf, np.inf, np.zeros(len(cell.joint_names))
    for a, b in recording.attached_spans():
        if b <= a:
            continue
        peer, pairs = Peer.of(cell, timeline.state(a)), recording.check(a).pairs
        inner = np.linspace(a, b, SAMPLES + 2)[1:-1]
        around = clearance.time + np.linspace(-2e-3, 2e-3, 21)
        own = [t for t in (*around, *loads.when) if a < t < b]
        values = timeline.at(np.array([*inner, *own]))
        ours = cell.inverse_dynamics(state=timeline.state(a))(*values)
        for k, row in enumerate(zip(*values, strict=True)):
            torque = peer.torques(*row)
            np.testing.assert_allclose(ours[k], torque, rtol=1e-11, atol=1e-9)
            peak = np.maximum(peak, np.abs(torque))
            # All that could be nearer than what was found; links far apart are not.
            d = peer.distances(row[0], pairs, clearance.distance + 1e-6)
            least = min(least, float(d.min()))
        if a <= clearance.time <= b and clearance.pair in pairs:
            there = timeline.at(clearance.time).q
            d = peer.distances(there, [clearance.pair], clearance.distance + 1e-3)
            nearest = min(nearest, float(d[0]))
    # At its instant the pair is as near as it says; nothing else ever is nearer.
    assert nearest == pytest.approx(clearance.distance, abs=1e-9)
    assert least >= clearance.distance - 1e-9
    assert least >= clearance.proven
    assert (peak <= loads.peak + 1e-9).all()
    np.testing.assert_allclose(peak, loads.peak, rtol=1e-9, atol=1e-9)
