"""An arm on a rail welds a seam that a positioner turns; a clamp is in the way.

The target of the torch is given relative to the seam, which the positioner moves: rail,
arm and positioner share the motion. The clamp is a capsule that no file knows of.
`python weld_seam.py seam.html` writes a page that shows it.
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm
from armillary import tasks

RATE, MARGIN, ACCELERATION = 250.0, 0.01, 15.0  # [1/s], [m], [rad/s^2]
SPEED, LENGTH = 0.04, 0.2  # along the seam [m/s], [m]

beam = arm.Link(name="beam", collisions=[arm.shapes.Box(size=(0.3, 1.8, 0.04))])
carriage = arm.Link(
    name="carriage",
    parent="beam",
    joint=arm.joints.Prismatic(axis=(0, 1, 0)),
    limits=arm.Limits(lower=-0.6, upper=0.6, velocity=0.5),
    collisions=[
        arm.shapes.Box(size=(0.3, 0.3, 0.02), pose=arm.Pose.translation(0, 0, 0.05))
    ],
)
rail = arm.Manipulator(name="rail", links=[beam, carriage])
cell = arm.example("two_arms_positioner")
cell = cell.add(rail, pose=arm.Pose.translation(0.9, 0.0, -0.07))
turned = arm.Pose.translation(0.0, 0.0, 0.07) @ arm.Pose.rotation_z(np.pi)
cell = cell.mount("left", on="carriage", pose=turned)
fk = cell.fk("left/tcp", relative_to="seam")
start = cell.home.q
POSITIONER = [cell.joint(name) for name in ("tilt", "turn", "rail/carriage")]
moving = [name for name in cell.joint_names if not name.startswith("right/")]
control = cell.controller(
    [
        tasks.Frame(
            "left/tcp", relative_to="seam", rotation="xy", axes="left/tcp", speed=0.2
        ),
        tasks.Posture(),
    ],
    avoid=cell.collision(margin=MARGIN),
    acceleration=ACCELERATION,
    rate=RATE,
    joints=moving,
)


def torch(time: float) -> np.ndarray:
    """Return the pose of the torch in the seam: two seconds to approach, then along."""
    target = fk(start).copy()
    along = np.clip(SPEED * (time - 2.0), 0.0, LENGTH) - LENGTH / 2
    target[:3, 3] = [0.08, along, 0.08]
    return target


# For the controller a capsule; for the judge, a cell that knows of it, a part.
at, radius, length = np.array([0.35, 0.1, 0.825]), 0.02, 0.25
half = [0.0, 0.0, length / 2]
clamp = arm.Obstacles(ends=[[at - half, at + half]], radii=radius)
rod = arm.shapes.Capsule(radius=radius, length=length)
fixture = arm.Manipulator(name="clamp", links=[arm.Link(name="rod", collisions=[rod])])
clearance = cell.add(fixture, pose=arm.Pose.translation(*at)).collision().clearance

steps = int(RATE * (2.0 + LENGTH / SPEED + 1.0))
found = {}
for name, obstacles in {"without": None, "with": clamp}.items():
    motion = control.simulate(start, [torch, None], steps, obstacles=obstacles)
    wanted = np.array([torch(t) for t in motion.time])
    off = np.linalg.norm((fk(motion.q) - wanted)[:, :3, 3], axis=1)
    welding = motion.time > 2.0
    tilted, turned, slid = np.ptp(motion.q[:, POSITIONER], axis=0)
    print(f"{name} the clamp: {motion.summary()}")
    print(f"    torch at most {1e3 * off[welding].max():.2f} mm behind on the seam")
    least = 1e3 * clearance(motion.q).min()
    print(f"    least distance of all links and the clamp {least:.2f} mm")
    print(f"    the positioner tilts by {np.degrees(tilted):.1f} degrees and turns by")
    print(f"    {np.degrees(turned):.1f}, the rail moves {slid:.3f} m")
    found[name] = motion, off[welding].max()

for motion, lag in found.values():
    assert motion.distance.min() > MARGIN - 5e-4
    assert lag < 1.01 * SPEED / 10.0  # an error fades as exp(-10 t)
    assert np.abs(fk(motion.q[-1])[:3, 3] - wanted[-1, :3, 3]).max() < 1e-4
alone, beside = (motion for motion, _ in found.values())
assert clearance(alone.q).min() < 0.0
assert clearance(beside.q).min() > MARGIN - 5e-4
assert arm.RateReason.AVOIDING not in alone.reason
assert arm.RateReason.AVOIDING in beside.reason
assert (np.ptp(beside.q[:, POSITIONER], axis=0)[1:] > [0.2, 0.05]).all()
for page in sys.argv[1:]:
    cell.export(page, motion=beside)
