"""The main job: an arm on an oval track, from its file to a million poses.

`make demo` runs this. Every figure is measured on the machine it runs on.
"""

from __future__ import annotations

import math
import sys

import msgspec
import numpy as np

import armillary as arm
from armillary.cli.bench import first_kernels, random_vectors, seconds
from armillary.cli.info import described

COUNT = 1_000_000
FRAME = "tool0"


class MyTrack(arm.Joint, frozen=True):
    """The oval track once more, as a user writes it: plain Python, with `if`."""

    straight: float  # [m]
    radius: float  # [m]
    unit = arm.METRE  # q is the distance travelled

    def pose(self, q):
        """Return where the cart is after the distance q, heading along the track."""
        bend = math.pi * self.radius
        lap = 2 * (self.straight + bend)
        s = q + self.straight / 2
        s = s - lap * np.floor(s / lap)
        if s < self.straight:
            x, heading = s - self.straight / 2, 0.0
        elif s < self.straight + bend:
            x, heading = self.straight / 2, (s - self.straight) / self.radius
        elif s < 2 * self.straight + bend:
            x, heading = self.straight * 1.5 + bend - s, math.pi
        else:
            x, heading = -self.straight / 2, (s - 2 * self.straight) / self.radius
        centre = arm.Pose.translation(x, 0, 0) @ arm.Pose.rotation_z(heading)
        return centre @ arm.Pose.translation(0, -self.radius, 0)


def with_joint(cell: arm.Cell, joint: arm.Joint) -> arm.Cell:
    """The cell with another joint under the cart."""
    track, *others = cell.manipulators
    links = [
        msgspec.structs.replace(link, joint=joint) if link.name == "cart" else link
        for link in track.links
    ]
    track = msgspec.structs.replace(track, links=links)
    return msgspec.structs.replace(cell, manipulators=[track, *others])


def title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")
    print("─" * len(text))


cell = arm.example("ur5e_on_oval")
title("The cell")
for line in described(cell):
    print(line)

title(f"The pose of {FRAME} at home, in the world [m]")
home = cell.pose(FRAME, cell.home)
for row in home:
    print("  ".join(f"{entry + 0.0:9.4f}" for entry in row))

title("Compiling its formula")
cold, cached = first_kernels(cell, FRAME)
fk = cell.fk(FRAME)
print(f"{fk.program.operation_count} operations, {fk.lanes} poses per instruction")
print(f"first time    {1e3 * cold:8.1f} ms   traced, compiled by LLVM, kept on disk")
print(f"ever after    {1e3 * cached:8.1f} ms   traced, loaded from there")

title(f"{COUNT:,} random joint vectors")
Q = random_vectors(cell, COUNT)
Q[:, 0] *= 5  # [m], laps of the track
X = np.empty((COUNT, 4, 4))
for name, threads in {"one thread": 1, "all threads": None}.items():
    took = seconds(lambda: fk(Q, out=X, threads=threads))  # noqa: B023
    rate = COUNT / took / 1e6
    print(f"{name:14}{1e3 * took:8.1f} ms   {rate:.1f} million poses per second")
print(f"{'one call':14}{1e6 * seconds(lambda: fk(Q[0])):8.2f} us   a new 4x4 array")

title("What a joint of your own costs: one thread, per pose")
some = Q[:10_000]  # short calls fit between the work of others
out = np.empty((len(some), 4, 4))
joints = {
    "a prismatic joint": arm.joints.Prismatic(axis=(1, 0, 0)),
    "the oval track that is built in": arm.joints.OvalTrack(straight=3.0, radius=1.0),
    "the oval track written in this file": MyTrack(straight=3.0, radius=1.0),
}
kernels = {name: with_joint(cell, joint).fk(FRAME) for name, joint in joints.items()}
times = dict.fromkeys(joints, math.inf)
for name, kernel in [*kernels.items()] * 3:  # by turns: other work disturbs all alike
    took = seconds(lambda: kernel(some, out=out, threads=1))  # noqa: B023
    times[name] = min(times[name], took / len(some))
base = times["a prismatic joint"]
for name, took in times.items():
    print(f"{name:36}{1e9 * took:6.1f} ns   {took / base:5.2f} times")

# The check. UR's sums for the stretched arm, 1 m out on the rim of the track, on a
# plate 0.5 m high; then a million rigid poses; then the joint of our own.
assert np.allclose(home[:3, 3], [-0.8172, -0.2329 - 1.0, 0.0628 + 0.5], atol=1e-12)
fk(Q, out=X)
R = X[:, :3, :3]
assert np.abs(R @ R.swapaxes(1, 2) - np.eye(3)).max() < 1e-13
assert np.array_equal(X[123_456], fk(Q[123_456]))
built_in, own = list(kernels.values())[1:]
assert np.abs(built_in(some) - own(some)).max() < 1e-12
print("\nchecked: the arm's data sheet, a million rigid poses, both tracks agree")
