"""A user's own revolute joint in place of the built-in one: same code, same speed."""

from __future__ import annotations

import numpy as np

import armillary as arm
from armillary.cli.bench import random_vectors, seconds


class MyRevolute(arm.Joint):
    """Turn about z, as anyone would write it with NumPy."""

    unit = arm.RADIAN

    def pose(self, q):
        """Return a plain 4x4 array."""
        c, s = np.cos(q), np.sin(q)
        return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def arm_with(joint: type[arm.Joint]) -> arm.Cell:
    """A wrist of six joints, each turned by a quarter against the one before."""
    turned = arm.Pose.from_rpy(np.pi / 2, 0, 0, (0.1, 0, 0.3))
    links = [arm.Link(name="base")]
    for k in range(6):
        moved = joint().prepend(turned)
        links.append(arm.Link(name=f"link{k}", parent=links[-1].name, joint=moved))
    return arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])


built_in, own = (arm_with(kind) for kind in (arm.joints.Revolute, MyRevolute))
Q = random_vectors(built_in, 100_000)
out = np.empty((len(Q), 4, 4))
kernels = built_in.fk("link5"), own.fk("link5")
for name, kernel in zip(("built-in", "own"), kernels, strict=True):
    took = seconds(lambda: kernel(Q, out=out, threads=1)) / len(Q)  # noqa: B023
    count = kernel.program.operation_count
    print(f"{name:10}{count:5} operations{1e9 * took:8.1f} ns per pose")

# What is compiled is the same formula, whoever wrote the joint.
counts = [kernel.program.operation_count for kernel in kernels]
assert counts[0] == counts[1]
assert np.abs(kernels[0](Q) - kernels[1](Q)).max() < 1e-13

# A joint is a value: changed copies are made by `replace`, and equal ones are equal.
assert MyRevolute() == MyRevolute()
lifted = MyRevolute().replace(precursor=arm.Pose.translation(0, 0, 1))
assert lifted == MyRevolute().prepend(arm.Pose.translation(0, 0, 1))
