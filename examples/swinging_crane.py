# needs: examples
"""Move a load with a crane whose trolley rides a curved rail, and watch it swing.

The same motion along the rail is made with an empty hook, with a load that the state
grips, and with the load and a motion that is made in two halves, half a swing apart,
whose swings cancel each other (zero-vibration input shaping).

    python swinging_crane.py [FILE.png]
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import armillary as arm

HEIGHT, ROPE = 8.0, 5.0  # of the rail above the floor, of the rope [m]
HOOK, TROLLEY, LOAD = 60.0, 400.0, 1500.0  # masses [kg]
SIZE = (1.6, 1.0, 0.8)  # of the load [m]
WAY, DURATION = 12.0, 7.0  # of the motion along the rail [m], [s]
DT, SHOWN = 2e-3, 24.0  # [s]
INK, PAPER = "#22303c", "#ffffff"
COLOURS = {"empty hook": "#8a97a3", "load": "#d9822b", "load, in two halves": "#1f6f8b"}


def crane() -> arm.Cell:
    """Return a trolley on a rail, a rope that swings two ways, and a load below."""
    points = [(0, 0), (4, 0), (8, 0.8), (11.5, 2.8), (14, 6), (15, 10)]
    rail = arm.joints.Curve(points=[(x, y, HEIGHT) for x, y in points])
    joints = {
        "trolley": rail,
        "sideways": arm.joints.Revolute(axis=(1.0, 0.0, 0.0)),
        "rope": arm.joints.Revolute(axis=(0.0, 1.0, 0.0)),
    }
    masses = {"trolley": (TROLLEY, 0.0), "sideways": (0.0, 0.0), "rope": (HOOK, -ROPE)}
    links = [arm.Link(name="floor")]
    for name, joint in joints.items():
        mass, z = masses[name]
        inertia = arm.SpatialInertia.from_centre(mass, [0, 0, z], np.zeros((3, 3)))
        parent = links[-1].name
        links.append(arm.Link(name=name, parent=parent, joint=joint, inertia=inertia))
    hook = arm.Frame(name="hook", pose=arm.Pose.translation(0.0, 0.0, -ROPE))
    links[-1] = links[-1].replace(frames=[hook])
    x, y, z = (edge**2 for edge in SIZE)
    moments = np.diag([y + z, x + z, x + y]) * LOAD / 12.0
    centre = [0.0, 0.0, -SIZE[2] / 2.0]
    box = arm.SpatialInertia.from_centre(LOAD, centre, moments)
    load = arm.Manipulator(name="load", links=[arm.Link(name="box", inertia=box)])
    cell = arm.Cell(manipulators=[arm.Manipulator(name="crane", links=links)])
    return cell.add(load, bolted=False)


def progress(t):
    """Return the way along the rail and its two rates, from rest to rest."""
    s = np.clip(t / DURATION, 0.0, 1.0)
    way = WAY * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    rate = WAY * 30.0 * (s * (1.0 - s)) ** 2 / DURATION
    more = WAY * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / DURATION**2
    return np.array([way, rate, more])


def controller(mass, delay=0.0):
    """Return a drive that follows the motion, half of it after a delay [s]."""

    def force(t, q, qd):
        way, rate, more = 0.5 * (progress(t) + progress(t - delay))
        torque = np.zeros_like(q)
        wanted = more + 20.0 * (rate - qd[..., 0]) + 100.0 * (way - q[..., 0])
        torque[..., 0] = np.clip(mass * wanted, -20e3, 20e3)
        return torque

    return force


def swing(cell, state, path):
    """Return the angle between the rope and the vertical at each instant [rad]."""
    top, end = cell.fk(["rope", "hook"], state=state)(path.q).swapaxes(0, 1)[..., :3, 3]
    along = (end - top) / ROPE
    return np.arctan2(np.hypot(along[:, 0], along[:, 1]), -along[:, 2])


cell = crane()
empty = cell.home
loaded = cell.home.attach("load", to="hook")

# The load hangs lower than the hook: as a pendulum it is longer than the rope.
M = cell.mass_matrix(state=loaded, joints=["rope"])(np.zeros(1))[0, 0]
stiffness = 9.81 * (HOOK * ROPE + LOAD * (ROPE + SIZE[2] / 2.0))
period = 2.0 * np.pi * np.sqrt(M / stiffness)
print(f"a swing of the load takes {period:.2f} s")

runs = {
    "empty hook": (empty, controller(TROLLEY + HOOK)),
    "load": (loaded, controller(TROLLEY + HOOK + LOAD)),
    "load, in two halves": (
        loaded,
        controller(TROLLEY + HOOK + LOAD, delay=period / 2.0),
    ),
}
paths, angles, ends = {}, {}, {}
for name, (state, force) in runs.items():
    path = cell.simulate(state, torque=force, dt=DT, steps=int(SHOWN / DT), every=5)
    paths[name], angles[name] = path, np.degrees(swing(cell, state, path))
    arrived = path.time > DURATION + period / 2.0 + 1.0
    ends[name] = angles[name][arrived].max()
    print(
        f"{name}: swings up to {angles[name].max():.1f}° on the way, "
        f"{ends[name]:.1f}° after it"
    )

figure = Figure(figsize=(11, 4.6), dpi=150, facecolor=PAPER, layout="constrained")
plan, time = figure.subplots(1, 2, width_ratios=[1, 1.5])
rail = cell.fk("trolley", joints=["trolley"])(np.linspace(-1.0, 14.0, 300)[:, None])
plan.plot(rail[:, 0, 3], rail[:, 1, 3], color=INK, linewidth=5, alpha=0.25)
for name, (state, _) in runs.items():
    X = cell.fk("hook", state=state)(paths[name].q)
    plan.plot(X[:, 0, 3], X[:, 1, 3], color=COLOURS[name], linewidth=1.5)
    time.plot(paths[name].time, angles[name], color=COLOURS[name], label=name)
plan.set_aspect("equal")
plan.set_title("rail and hook from above", color=INK, loc="left", fontsize=11)
plan.set_xlabel("x [m]", color=INK)
plan.set_ylabel("y [m]", color=INK)
time.set_title("angle of the rope", color=INK, loc="left", fontsize=11)
time.set_xlabel("time [s]", color=INK)
time.set_ylabel("from the vertical [°]", color=INK)
time.set_ylim(0.0, None)
time.legend(frameon=False, labelcolor=INK)
for axes in (plan, time):
    axes.tick_params(colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
path = sys.argv[1] if len(sys.argv) > 1 else "swinging_crane.png"
figure.savefig(path)
print(f"drawn: {path}")

# The check. The trolley arrives; two halves swing less than one whole; what the motor
# does is the energy that crane and load gain; small swings take the time computed.
for name, path in paths.items():
    assert abs(path.q[-1, 0] - WAY) < 0.1, name
assert ends["load, in two halves"] < 0.5 * ends["load"]

state, force = runs["load"]
path = cell.simulate(state, torque=force, dt=DT, steps=int(6.0 / DT))
q, qd = path.q[-1], path.qd[-1]
kinetic = 0.5 * qd @ cell.mass_matrix(state=state)(q) @ qd
rise = cell.fk("hook", state=state)(q)[2, 3] - (HEIGHT - ROPE)
centre = cell.fk("box", state=state)(q) @ [0.0, 0.0, -SIZE[2] / 2.0, 1.0]
lift = centre[2] - (HEIGHT - ROPE - SIZE[2] / 2.0)
potential = 9.81 * (HOOK * rise + LOAD * lift)
work = (path.torque[:, 0] * np.diff(path.q[:, 0])).sum()
print(f"work {work:.1f} J, energy {kinetic + potential:.1f} J")
assert abs(kinetic + potential - work) < 1e-4 * work

path = cell.simulate(
    loaded.joints({"rope": 0.01}), joints=["rope"], dt=DT, steps=int(5 * period / DT)
)
turns = np.flatnonzero(np.diff(np.sign(path.q[:, 0])))
measured = 2.0 * np.diff(path.time[turns]).mean()
assert abs(measured - period) < 1e-3 * period
