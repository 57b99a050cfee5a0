# needs: calibrate, examples
"""Find masses and friction of an arm from the torques of its motors.

The nominal numbers of a Franka Panda are wrong by a fifth. An exciting motion, within
limits, is followed twice; its torques are measured, here simulated with noise. Of 70
numbers of inertias torques decide 43 combinations, which are found with their errors;
the inertias that are written to a file are those that bodies can have.

    python identify_panda.py [FILE.png [FILE.urdf]]
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import armillary as arm

# alpha [rad], a [m], d [m], least and greatest position [rad], greatest rate [rad/s]
# and acceleration [rad/s^2]: Franka's documentation. Mass [kg], centre of mass [m],
# moments xx, yy, zz about that [kg m^2]: example-robot-data, rounded. Friction [N m].
H = np.pi / 2
ROWS = (
    (
        0,
        0,
        0.333,
        -2.897,
        2.897,
        2.17,
        15,
        4.97,
        (0.004, 0.002, -0.048),
        (0.70, 0.71, 0.02),
    ),
    (
        -H,
        0,
        0,
        -1.762,
        1.762,
        2.17,
        7.5,
        0.65,
        (-0.003, -0.029, 0.003),
        (0.02, 0.03, 0.02),
    ),
    (
        H,
        0,
        0.316,
        -2.897,
        2.897,
        2.17,
        10,
        3.23,
        (0.028, 0.039, -0.067),
        (0.04, 0.04, 0.01),
    ),
    (
        H,
        0.0825,
        0,
        -3.071,
        -0.069,
        2.17,
        12.5,
        3.59,
        (-0.053, 0.104, 0.027),
        (0.03, 0.02, 0.03),
    ),
    (
        -H,
        -0.0825,
        0.384,
        -2.897,
        2.897,
        2.6,
        15,
        1.23,
        (-0.012, 0.041, -0.038),
        (0.04, 0.03, 0.01),
    ),
    (
        H,
        0,
        0,
        -0.017,
        3.752,
        2.6,
        20,
        1.67,
        (0.060, -0.014, -0.011),
        (0.002, 0.004, 0.005),
    ),
    (
        H,
        0.088,
        0,
        -2.897,
        2.897,
        2.6,
        20,
        0.74,
        (0.011, -0.004, 0.062),
        (0.010, 0.009, 0.005),
    ),
)
FRICTION = 0.5, 0.6, 0.4, 0.6, 0.5, 0.3, 0.3
DAMPING = 0.9, 0.9, 0.7, 0.8, 0.6, 0.5, 0.4
NOISE = np.array([0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1])  # of torques [N m]
INK, LIGHT = "#22303c", "#d1495b"


def panda(seed=None):
    """Return the arm; with a seed, with masses that are wrong and no friction."""
    rng = np.random.default_rng(seed)
    links = [arm.Link(name="link0")]
    for k, (alpha, a, d, low, high, rate, quick, mass, centre, moments) in enumerate(
        ROWS
    ):
        wrong = np.ones(4) if seed is None else rng.uniform(0.8, 1.2, 4)
        shift = np.zeros(3) if seed is None else rng.uniform(-0.01, 0.01, 3)
        inertia = arm.SpatialInertia.from_centre(
            mass * wrong[0], centre + shift, np.diag(moments * wrong[1:])
        )
        links.append(
            arm.Link(
                name=f"link{k + 1}",
                parent=f"link{k}",
                joint=arm.joints.CraigRevolute(alpha=alpha, a=a, d=d),
                joint_name=f"joint{k + 1}",
                limits=arm.Limits(
                    lower=low, upper=high, velocity=rate, acceleration=quick
                ),
                dynamics=arm.JointDynamics()
                if seed is not None
                else arm.JointDynamics(friction=FRICTION[k], damping=DAMPING[k]),
                inertia=inertia,
            )
        )
    return arm.Cell(manipulators=[arm.Manipulator(name="panda", links=links)])


real, nominal = panda(), panda(seed=4)
names = [f"link{k}.inertia" for k in range(1, 8)]
names += [
    f"joint{k}.dynamics.{each}" for k in range(1, 8) for each in ("friction", "damping")
]

# Excite and measure: two periods, 100 samples a second.
motion = arm.measurements.exciting_motion(nominal, names, seconds=10.0, most_steps=15)
t = np.arange(0.0, 10.0, 0.01)
s = motion.at(t)
q, qd, qdd = (np.concatenate([x, x]) for x in (s.q, s.qd, s.qdd))
exact = real.inverse_dynamics()(q, qd, qdd)
torques = exact + np.random.default_rng(1).normal(0.0, NOISE, exact.shape)

# Identify.
measured = arm.measurements.Torques(q, qd, qdd, torques, sigma=list(NOISE))
found = arm.calibrate(nominal, measured, names)
base = [each for each in found.combinations if ".inertia." in each.parameter]
print(f"{len(base)} combinations of 70 numbers of inertias, noise {found.noise:.3f}")
truth = real.parameters(list(found.names))
print("\nfriction      true   found      +-")
for each in found.combinations:
    if each.parameter.endswith("friction"):
        name = each.parameter.partition("/")[2].partition(".")[0]
        print(
            f"{name:8} {truth[each.parameter]:9.3f} {each.value:7.3f} {each.std:7.3f}"
        )

path = sys.argv[1] if len(sys.argv) > 1 else "identify_panda.png"
file = sys.argv[2] if len(sys.argv) > 2 else "identified_panda.urdf"
arm.save(found.cell, file)

# The check: on another motion.
rng = np.random.default_rng(9)
low, high = nominal.limits
other = rng.uniform(low, high, (200, 7)), *rng.uniform(-1.0, 1.0, (2, 200, 7))
wanted = real.inverse_dynamics()(*other)
before = nominal.inverse_dynamics()(*other) - wanted
after = arm.load(file).inverse_dynamics()(*other) - wanted
errors = [
    (each.value - sum(x * truth[k] for k, x in each.factors.items())) / each.std
    for each in found.combinations
]

figure = Figure(figsize=(9, 4.2), dpi=80, layout="constrained")
axes = figure.subplots()
width = np.arange(7)
axes.bar(
    width - 0.2, np.sqrt((before**2).mean(axis=0)), 0.38, color=LIGHT, label="nominal"
)
axes.bar(
    width + 0.2, np.sqrt((after**2).mean(axis=0)), 0.38, color=INK, label="identified"
)
axes.set_yscale("log")
axes.set_xticks(width, [f"joint {k}" for k in range(1, 8)])
axes.set_ylabel("error of torques, another motion [N m]")
axes.set_title("Torques of a Panda before and after identification", loc="left")
axes.legend(ncols=2)
figure.savefig(path)
print(f"\ndrawn: {path}, written: {file}")

assert found.success
assert len(base) == 43  # as Gaz et al. count, IEEE RA-L 4 (2019)
assert np.abs(errors).max() < 4.5
assert np.sqrt((after**2).mean()) < 0.02 * np.sqrt((before**2).mean())
assert all(
    link.inertia.fault() is None for link in found.cell.manipulators[0].links[1:]
)
