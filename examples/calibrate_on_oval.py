# needs: calibrate, examples
"""Calibrate an arm on an oval track, and draw how good the result is.

A UR5e on its track is off by a millimetre and a milliradian in each of 41 numbers. A
laser tracker measures its tool, here simulated with 0.1 mm of noise, at 80 joint
positions. Which numbers are decided, and how well, follows from the derivatives; the
picture has the errors of the tool, and of each number in its standard deviations.

    python calibrate_on_oval.py [FILE.png [FILE.cell.json]]
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import armillary as arm

NOISE = 1e-4  # of each coordinate [m]
INK, LIGHT, HELD = "#22303c", "#d1495b", "#b8c0c8"
JOINTS = "shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"

nominal = arm.example("ur5e_on_oval")
names = ["cart.straight", "cart.radius"]
names += [f"ur5e/{joint}.precursor" for joint in JOINTS]
names = list(nominal.parameters([*names, "tool0.x", "tool0.y", "tool0.z"]))
rng = np.random.default_rng(2)
start = np.array(list(nominal.parameters(names).values()))
truth = start + rng.normal(0.0, 1e-3, len(names))
real = nominal.with_parameters(dict(zip(names, truth, strict=True)))


def positions(count):
    """Return joint positions all around the track, at which the tool is somewhere."""
    q = rng.uniform(-2.5, 2.5, (count, 7))
    q[:, nominal.joint("cart")] = rng.uniform(0.0, 10.0, count)
    return q


def measured(q):
    """Return where the tool is [m]."""
    return real.fk("tool0")(q)[:, :3, 3]


# Measure and calibrate.
q = positions(80)
seen = measured(q) + rng.normal(0.0, NOISE, (80, 3))
tracker = arm.measurements.Positions("tool0", q, seen, sigma=NOISE)
found = arm.calibrate(nominal, tracker, names)
print(f"{found.identified.rank} of {len(names)} decided, noise {found.noise:.3f}")
for each in found.dependences:
    print(each)

path = sys.argv[1] if len(sys.argv) > 1 else "calibrate_on_oval.png"
file = sys.argv[2] if len(sys.argv) > 2 else "calibrated.cell.json"
arm.save(found.cell, file)

# The check: the tool at other joint positions, without noise.
other = positions(300)
errors = [
    1e3 * np.linalg.norm(cell.fk("tool0")(other)[:, :3, 3] - measured(other), axis=1)
    for cell in (nominal, arm.load(file))
]
# Sums of numbers that are decided do not depend on the others.
z = np.array(
    [
        (each.value - sum(x * real_value[k] for k, x in each.factors.items()))
        / each.std
        for real_value in [dict(zip(names, truth, strict=True))]
        for each in found.combinations
    ]
)

figure = Figure(figsize=(10, 4.2), dpi=80, layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
bins = np.geomspace(0.005, 20.0, 45)
for row, color, label in zip(
    errors, (LIGHT, INK), ("nominal", "calibrated"), strict=True
):
    left.hist(row, bins, color=color, label=label)
left.set_xscale("log")
left.set_xlabel("error of the tool elsewhere [mm]")
left.set_ylabel("joint positions")
left.legend()
left.set_title("Before and after", loc="left")
places = np.arange(len(z))
right.axhspan(-1.96, 1.96, color=HELD, alpha=0.5, label="95 %")
right.bar(places, z, 0.7, color=INK)
labels = [each.parameter.partition("/")[2] for each in found.combinations]
labels = [label.replace(".precursor", "") for label in labels]
right.set_xticks(places, labels, rotation=90, fontsize=7)
right.set_ylabel("error / standard deviation")
right.set_title("Numbers that the measurements decide", loc="left")
right.legend()
figure.savefig(path)
print(f"drawn: {path}, written: {file}")

assert found.success
assert 0.8 < found.noise < 1.2
assert np.median(errors[1]) < 0.02 * np.median(errors[0])
assert np.mean(np.abs(z) < 1.96) > 0.85
