"""Every URDF of example-robot-data against Pinocchio."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import armillary as arm
from benchmarks.robots import ROBOTS, SHARE, frictionless, urdf_files

STATES = 100
TOLERANCE = 1e-9
OF_DYNAMICS = 1e-12


def report() -> Iterator[str]:
    """Yield a line for each file: agreement, or the reason for its refusal."""
    for path in urdf_files():
        yield f"{path.relative_to(ROBOTS)}: {verdict(path)}"


def verdict(path: Path) -> str:
    """Return how far our poses and Jacobians are from Pinocchio's, or why refused."""
    try:
        cell = arm.load(path, packages={"example-robot-data": SHARE})
    except arm.errors.FormatError as error:
        first = str(error).splitlines()[0]
        return f"refused: line {first.split('.urdf:')[-1]}"
    worst, frames = worst_difference(cell, path)
    mark = "agrees" if worst <= TOLERANCE else "DIFFERS"
    found = f"{mark}, {len(cell.joint_names)} joints, {frames} frames, {worst:.1e}"
    if not cell.joint_names:
        return found
    return f"{found}; dynamics {dynamics_verdict(cell, path)}"


def dynamics_verdict(cell: arm.Cell, path: Path) -> str:
    """Return how far our torques and mass matrices are from Pinocchio's."""
    import pinocchio as pin

    cell = cell.replace(manipulators=[frictionless(m) for m in cell.manipulators])
    try:
        inverse, mass_matrix = cell.inverse_dynamics(), cell.mass_matrix()
    except arm.errors.ModelError:
        return "without inertias"
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    rng = np.random.default_rng(0)
    Q, V, A = rng.uniform(-2.0, 2.0, (3, STATES, len(cell.joint_names)))
    worst = 0.0
    for q, v, a, torque, M in zip(
        Q, V, A, inverse(Q, V, A), mass_matrix(Q), strict=True
    ):
        q_pin, rates = as_pinocchio(cell, model, q)
        theirs = rates.T @ pin.rnea(model, data, q_pin, rates @ v, rates @ a)
        worst = max(worst, relative(torque, theirs))
        upper = np.triu(pin.crba(model, data, q_pin))
        whole = rates.T @ (upper + np.triu(upper, 1).T) @ rates
        worst = max(worst, relative(M, whole))
    mark = "agree" if worst <= OF_DYNAMICS else "DIFFER"
    return f"{mark}, {worst:.1e}"


def worst_difference(cell: arm.Cell, path: Path) -> tuple[float, int]:
    """Return the largest relative difference and the number of frames compared."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    names = [
        f.name
        for f in model.frames
        if f.type == pin.FrameType.BODY and f.name in cell.manipulators[0].frame_refs
    ]
    ids = [model.getFrameId(name, pin.FrameType.BODY) for name in names]
    rng = np.random.default_rng(0)
    Q = rng.uniform(-2.0, 2.0, (STATES, len(cell.joint_names)))
    poses = cell.fk(names)(Q)
    tip = names[-1]
    J = cell.jacobian(tip)(Q)
    worst = 0.0
    for q, X, jacobian in zip(Q, poses, J, strict=True):
        q_pin, rates = as_pinocchio(cell, model, q)
        pin.framesForwardKinematics(model, data, q_pin)
        expected = np.array([data.oMf[k].homogeneous for k in ids])
        worst = max(worst, relative(X, expected))
        frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        theirs = pin.computeFrameJacobian(model, data, q_pin, ids[-1], frame) @ rates
        worst = max(worst, relative(jacobian, theirs))
    return worst, len(names)


def as_pinocchio(
    cell: arm.Cell, model: object, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Pinocchio's q, and the rate of each of its joints per unit of ours."""
    manipulator = cell.manipulators[0]
    drives = {
        link.coordinate: several[0]
        for link, several in zip(manipulator.links, manipulator.drives, strict=True)
        if several
    }
    q_pin = np.zeros(model.nq)
    rates = np.zeros((model.nv, len(q)))
    for k, name in enumerate(model.names):
        if not k:
            continue
        joint = model.joints[k]
        drive = drives[name]
        value = drive.multiplier * q[drive.of] + drive.offset
        rates[joint.idx_v, drive.of] = drive.multiplier
        if joint.nq == 1:
            q_pin[joint.idx_q] = value
        else:
            q_pin[joint.idx_q : joint.idx_q + 2] = math.cos(value), math.sin(value)
    return q_pin, rates


def relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference, relative to the largest entry or 1."""
    if ours.size == 0:
        return 0.0
    return float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))
