"""A torch follows a seam round a corner on a part that a positioner turns.

The seam is given on the part: two lines and an arc about a corner, blended. Arm and
positioner share the motion. It is checked against collision, and timed at a constant
speed of the torch. `python seam_on_positioner.py seam.html` writes a page that shows
it, and `seam.png` a picture.
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm

SPEED = 0.05  # of the torch along the seam [m/s]

cell = arm.example("two_arms_positioner")
joints = [name for name in cell.joint_names if not name.startswith("right/")]
chosen = [cell.joint(name) for name in joints]
start = cell.home.q[chosen]
fk = cell.fk("left/tcp", relative_to="seam", joints=joints)

# On the part: down to the seam, along it, round its corner, and away.
above = fk(start)
onto = above.copy()
onto[:3, 3] += [0.0, 0.0, -0.05]
ways = [[0.0, 0.15, 0.0], [0.05, 0.15, 0.0], [0.15, 0.2, 0.0], [0.15, 0.2, 0.1]]
corner, centre, end, away = onto[:3, 3] + np.array(ways)
segments = [
    arm.Line(onto, blend=0.01),
    arm.Line(corner),  # the arc goes on in its direction: no corner
    arm.Arc(axis=(0, 0, 1), centre=centre, angle=-np.pi / 2, orientation="fixed"),
    arm.Line(end, blend=0.01),
    arm.Line(away),
]
path = cell.line(
    "left/tcp",
    segments,
    start=start,
    relative_to="seam",
    joints=joints,
    check=cell.collision(),
)
print(path)
motion = path.timed(speed=SPEED, tool_acceleration=0.5, acceleration=10.0)
print(f"{motion.duration:.2f} s at {SPEED} m/s")

# Judged by forward kinematics at 1 kHz, and by geometry.
samples = motion.sampled(rate=1000)
torch = fk(samples.q)[:, :3, 3]
speeds = np.linalg.norm(np.diff(torch, axis=0), axis=1) * 1000
curve = path.poses(np.linspace(0.0, path.length, 40001))[:, :3, 3]
off = max(np.linalg.norm(curve - p, axis=1).min() for p in torch[::20])
tilted, turned = np.degrees(np.ptp(samples.q[:, -2:], axis=0))
print(f"the positioner tilts by {tilted:.1f} degrees and turns by {turned:.1f}")
print(f"the torch is at most {1e6 * off:.0f} um off the seam")

assert path.success
assert path.proven
assert path.deviation[0] < 1e-5
assert abs(np.median(speeds) - SPEED) < 1e-3 * SPEED
assert speeds[:-1].max() < 1.01 * SPEED
assert off < 2e-5
assert joints[-2:] == ["positioner/tilt", "positioner/turn"]
whole = np.tile(cell.home.q, (len(samples.q), 1))
whole[:, chosen] = samples.q
assert not cell.collision()(whole).any()

# To look at: the curve as beads on the part.
beads = [
    arm.shapes.Sphere(radius=0.004, pose=arm.Pose.translation(*p))
    for p in curve[::400].tolist()
]
link = arm.Link(name="curve", visuals=beads)
shown = cell.add(arm.Manipulator(name="curve", links=[link]), on="seam")
for name in sys.argv[1:]:
    if name.endswith(".png"):
        state = shown.home.replace(q=whole[len(whole) // 2])
        shown.shot(
            name,
            state,
            look_from=(0.9, -0.9, 1.4),
            look_at=(0.25, 0.0, 0.75),
            size=(960, 640),
            show=["visuals", "collisions"],
        )
    else:
        moved = samples._replace(q=whole, qd=0.0 * whole, qdd=0.0 * whole)
        shown.export(name, motion=moved)
