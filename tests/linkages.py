"""Linkages of which everything is known without armillary, for tests of closed loops.

A linkage is described where it stands at home, in world coordinates, so that it is
closed there by construction. Its poses and the gaps in its loops are computed by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary import Cell, Closure, Frame, Link, Manipulator, Pose, Rod

Array = npt.NDArray[np.float64]
GROUND = "ground"
UP = (0.0, 0.0, 1.0)
SKEW = np.array([[0, 0, 0], [0, 0, 0.2], [1, 0, 0.2], [1, 0, 0]])


@dataclass(frozen=True)
class Part:
    """A link: its joint turns about, or slides along, the z axis of `pose` at home."""

    name: str
    parent: str
    kind: str
    pose: Array


@dataclass(frozen=True)
class Gap:
    """What is closed: frames of two parts, at the same pose at home, or a rod."""

    a: str
    b: str
    pose: Array
    position: str = "xyz"
    rotation: str = ""
    other: Array | None = None  # where the rod ends on b


@dataclass(frozen=True)
class Linkage:
    """A mechanism with closed loops, at home where all joints are 0."""

    parts: Sequence[Part]
    gaps: Sequence[Gap]
    driven: Sequence[str]
    name: str = "linkage"
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def manipulator(self) -> Manipulator:
        """Return the same as armillary's model."""
        home = self._homes()
        frames: dict[str, list[Frame]] = {name: [] for name in home}
        loops: list[Closure | Rod] = []
        for k, gap in enumerate(self.gaps):
            ends = (
                (gap.a, gap.pose),
                (gap.b, gap.pose if gap.other is None else gap.other),
            )
            for side, (part, X) in zip("ab", ends, strict=True):
                pose = Pose.from_matrix(np.linalg.inv(home[part]) @ X, tolerance=1e-9)
                frames[part].append(Frame(name=f"{side}{k}", pose=pose))
            if gap.other is None:
                loops.append(Closure(f"a{k}", f"b{k}", gap.position, gap.rotation))
            else:
                length = float(np.linalg.norm(gap.other[:3, 3] - gap.pose[:3, 3]))
                loops.append(Rod(f"a{k}", f"b{k}", length=length))
        links = [Link(name=GROUND, frames=frames[GROUND])]
        for part in self.parts:
            precursor = Pose.from_matrix(
                np.linalg.inv(home[part.parent]) @ part.pose, tolerance=1e-9
            )
            make = {"R": arm.joints.Revolute, "P": arm.joints.Prismatic}[part.kind]
            links.append(
                Link(
                    name=part.name,
                    parent=part.parent,
                    joint=make(axis=UP, precursor=precursor),
                    frames=frames[part.name],
                    passive=part.name not in self.driven,
                    limits=arm.Limits(
                        lower=self.limits[part.name][0], upper=self.limits[part.name][1]
                    )
                    if part.name in self.limits
                    else arm.Limits(),
                )
            )
        return Manipulator(name=self.name, links=links, loops=loops)

    def cell(self) -> Cell:
        """Return a cell with it."""
        return Cell(manipulators=[self.manipulator()])

    def _homes(self) -> dict[str, Array]:
        return {GROUND: np.eye(4)} | {part.name: part.pose for part in self.parts}

    def poses(self, joints: Mapping[str, npt.ArrayLike]) -> dict[str, npt.NDArray]:
        """Return the poses of parts, shape (..., 4, 4), loops open or closed."""
        home = self._homes()
        found = {GROUND: np.eye(4)}
        for part in self.parts:
            fixed = np.linalg.inv(home[part.parent]) @ part.pose
            q = np.asarray(joints[part.name])
            moved = np.zeros((*q.shape, 4, 4), q.dtype)
            moved[...] = np.eye(4)
            if part.kind == "P":
                moved[..., 2, 3] = q
            else:
                moved[..., 0, 0] = moved[..., 1, 1] = np.cos(q)
                moved[..., 1, 0] = np.sin(q)
                moved[..., 0, 1] = -np.sin(q)
            found[part.name] = found[part.parent] @ (fixed @ moved)
        return found

    def gaps_at(self, joints: Mapping[str, npt.ArrayLike]) -> npt.NDArray:
        """Return how far loops are open, shape (..., rows) [m, or of a rotation]."""
        home, poses = self._homes(), self.poses(joints)
        rows = []
        for gap in self.gaps:
            A = poses[gap.a] @ (np.linalg.inv(home[gap.a]) @ gap.pose)
            end = gap.pose if gap.other is None else gap.other
            B = poses[gap.b] @ (np.linalg.inv(home[gap.b]) @ end)
            apart = B[..., :3, 3] - A[..., :3, 3]
            if gap.other is not None:
                length = np.linalg.norm(gap.other[:3, 3] - gap.pose[:3, 3])
                squared = (apart * apart).sum(-1) - length**2
                rows.append(squared / (2.0 * length))
                continue
            in_A = (np.swapaxes(A[..., :3, :3], -1, -2) @ apart[..., None])[..., 0]
            rows += [in_A[..., "xyz".index(axis)] for axis in gap.position]
            R = np.swapaxes(A[..., :3, :3], -1, -2) @ B[..., :3, :3]
            rows += list(_turned(R, gap.rotation))
        return np.stack(rows, -1)


def _turned(R: npt.NDArray, axes: str) -> list[npt.NDArray]:
    """Return what is zero where `b` is not turned about some axes."""
    if len(axes) == 2:
        (free,) = (k for k, axis in enumerate("xyz") if axis not in axes)
        return [R[..., k, free] for k in range(3) if k != free]
    found = []
    for axis in axes:
        k = "xyz".index(axis)
        found.append(0.5 * (R[..., k - 1, k - 2] - R[..., k - 2, k - 1]))
    return found


def followed(
    linkage: Linkage, names: Sequence[str], passive: Sequence[str], Q: Array, steps: int
) -> Array:
    """Return passive joints on the straight ways from home, by many small steps.

    Newton's method with derivatives by complex steps; a way ends, and the row is NaN,
    where the determinant changes its sign, or a step is not a small one.

    Args:
        linkage: The linkage.
        names: The joints of q.
        passive: The others.
        Q: Where to go, shape (rows, n).
        steps: How many parts the ways have.
    """
    p = np.zeros((len(Q), len(passive)))
    rows = _chosen_rows(linkage, names, passive)
    sign = None
    for k in range(steps + 1):
        at = dict(zip(names, (Q * (k / steps)).T, strict=True))
        before = p.copy()
        for _ in range(4):
            r, J = _rates(linkage, at, passive, p, rows)
            det = np.linalg.det(J)
            J[~(np.abs(det) > 1e-300)] = np.nan
            ok = np.isfinite(J).all(axis=(1, 2))
            J[~ok] = np.eye(len(passive))
            p = p - np.where(
                ok[:, None], np.linalg.solve(J, r[..., None])[..., 0], np.nan
            )
        r, J = _rates(linkage, at, passive, p, rows)
        det = np.linalg.det(J)
        sign = np.sign(det) if sign is None else sign
        lost = (np.sign(det) != sign) | (np.abs(p - before).max(axis=1) > 0.5)
        lost |= np.abs(r).max(axis=1) > 1e-12
        p[lost] = np.nan
    return p


def turned(linkage: Linkage, names: Sequence[str], change: Array) -> Array:
    """Return changes of joints without whole turns."""
    kinds = {part.name: part.kind for part in linkage.parts}
    whole = 2.0 * np.pi * np.round(change / (2.0 * np.pi))
    return change - np.where([kinds[name] == "R" for name in names], whole, 0.0)


def _chosen_rows(linkage: Linkage, names: Sequence[str], passive: Sequence[str]):
    """Return rows that decide the passive joints: QR with exchanges of columns."""
    at = {name: np.zeros(1) for name in names}
    _, J = _rates(linkage, at, passive, np.zeros((1, len(passive))), slice(None))
    left, chosen = J[0].copy(), []
    for _ in passive:
        best = int(np.argmax(np.linalg.norm(left, axis=1)))
        chosen.append(best)
        u = left[best] / np.linalg.norm(left[best])
        left = left - np.outer(left @ u, u)
    return sorted(chosen)


def _rates(linkage, at, passive, p, rows):
    h = 1e-30
    base = dict(at) | dict(zip(passive, p.T, strict=True))
    r = linkage.gaps_at(base)[..., rows]
    columns = []
    for k, name in enumerate(passive):
        moved = base | {name: p[:, k] + 1j * h}
        columns.append(linkage.gaps_at(moved)[..., rows].imag / h)
    return r, np.stack(columns, -1)


def frame(point: npt.ArrayLike, z: npt.ArrayLike = UP) -> Array:
    """Return a pose at a point whose z axis has a direction."""
    z = np.asarray(z, np.float64) / np.linalg.norm(z)
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    X = np.eye(4)
    X[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    X[:3, 3] = point
    return X


def planar(rng: np.random.Generator, count: int, size: float = 0.3) -> Array:
    """Return random points of the plane z = 0, no two close, shape (count, 3)."""
    while True:
        points = np.pad(rng.uniform(-size, size, (count, 2)), ((0, 0), (0, 1)))
        apart = np.linalg.norm(points[:, None] - points, axis=-1)
        if (apart + np.eye(count) * size).min() > 0.3 * size:
            return points


def four_bar(rng: np.random.Generator, size: float = 0.3) -> Linkage:
    """Return a four-bar linkage with random lengths."""
    A, B, C, D = planar(rng, 4, size)
    return Linkage(
        [
            Part("crank", GROUND, "R", frame(A)),
            Part("coupler", "crank", "R", frame(B)),
            Part("rocker", GROUND, "R", frame(D)),
        ],
        [Gap("coupler", "rocker", frame(C), "xy")],
        ["crank"],
    )


def slider_crank(rng: np.random.Generator) -> Linkage:
    """Return a slider-crank, offset and inclined."""
    A, B, C, way = planar(rng, 4)
    return Linkage(
        [
            Part("crank", GROUND, "R", frame(A)),
            Part("rod", "crank", "R", frame(B)),
            Part("slider", GROUND, "P", frame(C, way + np.array([0.05, 0.02, 0.0]))),
        ],
        [Gap("rod", "slider", frame(C), "xy")],
        ["crank"],
    )


def five_bar(rng: np.random.Generator) -> Linkage:
    """Return a five-bar with two driven arms."""
    A, B, C, D, E = planar(rng, 5)
    return Linkage(
        [
            Part("left", GROUND, "R", frame(A)),
            Part("left_fore", "left", "R", frame(B)),
            Part("right", GROUND, "R", frame(E)),
            Part("right_fore", "right", "R", frame(D)),
        ],
        [Gap("left_fore", "right_fore", frame(C), "xy")],
        ["left", "right"],
    )


def planar_3rrr(rng: np.random.Generator) -> Linkage:
    """Return a platform in the plane on three arms, each with an elbow."""
    angles = 2.0 * np.pi * np.arange(3) / 3.0 + rng.uniform(-0.3, 0.3, 3)
    around = np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1)
    bases, tips = around * rng.uniform(0.4, 0.5, (3, 1)), around * 0.12
    side = np.cross(UP, around)
    elbows = 0.5 * (bases + tips) + side * rng.uniform(0.1, 0.2, (3, 1))
    parts = []
    for k in range(3):
        parts.append(Part(f"arm{k}", GROUND, "R", frame(bases[k])))
        parts.append(Part(f"fore{k}", f"arm{k}", "R", frame(elbows[k])))
    parts.append(Part("platform", "fore0", "R", frame(tips[0])))
    gaps = [Gap("platform", f"fore{k}", frame(tips[k]), "xy") for k in (1, 2)]
    return Linkage(parts, gaps, ["arm0", "arm1", "arm2"])


def rssr(rng: np.random.Generator) -> Linkage:
    """Return two cranks with skew axes and a rod between them."""
    A, B, C, D = SKEW + rng.uniform(-0.3, 0.3, (4, 3))
    axes = rng.normal(size=(2, 3))
    return Linkage(
        [
            Part("crank", GROUND, "R", frame(A, axes[0])),
            Part("rocker", GROUND, "R", frame(D, axes[1])),
        ],
        [Gap("crank", "rocker", frame(B), other=frame(C))],
        ["crank"],
    )


def rscr(rng: np.random.Generator) -> Linkage:
    """Return a crank, a ball, a cylindrical joint and a hinge."""
    A, B, C, D = SKEW + rng.uniform(-0.3, 0.3, (4, 3))
    axes = rng.normal(size=(3, 3))
    return Linkage(
        [
            Part("crank", GROUND, "R", frame(A, axes[0])),
            Part("rocker", GROUND, "R", frame(D, axes[1])),
            Part("turn", "rocker", "R", frame(C, axes[2])),
            Part("slide", "turn", "P", frame(C, axes[2])),
        ],
        [Gap("crank", "slide", frame(B), "xyz")],
        ["crank"],
    )


def bennett(rng: np.random.Generator) -> Linkage:
    """Return a Bennett linkage: four skew hinges, which only its proportions let move.

    Links a, alpha and b, beta alternate, with a / sin(alpha) = b / sin(beta); then
    tan(theta_1 / 2) tan(theta_2 / 2) = sin((beta + alpha) / 2) / sin((beta - alpha) /
    2), and opposite angles are opposite (Bennett 1903; Hunt, Kinematic Geometry, 13.7).
    """
    alpha, beta = rng.uniform(0.4, 0.8), rng.uniform(1.0, 1.4)
    a = rng.uniform(0.2, 0.4)
    b = a * np.sin(beta) / np.sin(alpha)
    one = rng.uniform(0.8, 1.6)
    product = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    two = 2.0 * np.arctan(product / np.tan(one / 2))
    steps = [(one, a, alpha), (two, b, beta), (-one, a, alpha), (-two, b, beta)]
    X, axes = np.eye(4), []
    for theta, length, twist in steps:
        axes.append(X)
        c, s = np.cos(theta), np.sin(theta)
        turn = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        c, s = np.cos(twist), np.sin(twist)
        link = np.array([[1, 0, 0, length], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])
        X = X @ turn @ link
    assert np.abs(X - np.eye(4)).max() < 1e-12
    parts = [
        Part("crank", GROUND, "R", axes[0]),
        Part("coupler", "crank", "R", axes[1]),
        Part("rocker", GROUND, "R", axes[3]),
    ]
    return Linkage(parts, [Gap("coupler", "rocker", axes[2], "xyz", "xy")], ["crank"])


def six_bar(rng: np.random.Generator) -> Linkage:
    """Return Stephenson's linkage: a four-bar, and two links on its coupler."""
    A, B, C, D, E, F, G = planar(rng, 7, 0.4)
    return Linkage(
        [
            Part("crank", GROUND, "R", frame(A)),
            Part("coupler", "crank", "R", frame(B)),
            Part("rocker", GROUND, "R", frame(D)),
            Part("link", "coupler", "R", frame(E)),
            Part("out", GROUND, "R", frame(G)),
        ],
        [Gap("coupler", "rocker", frame(C), "xy"), Gap("link", "out", frame(F), "xy")],
        ["crank"],
    )


def chain(rng: np.random.Generator, count: int = 4) -> Linkage:
    """Return four-bars in a row: the rocker of each is the crank of the next."""
    parts = [Part("crank", GROUND, "R", frame([0, 0, 0]))]
    gaps, crank = [], "crank"
    for k in range(count):
        jitter = np.pad(rng.uniform(-0.02, 0.02, (4, 2)), ((0, 0), (0, 1)))
        A = np.array([0.5 * k, 0, 0])
        B = A + [0.05, 0.15, 0] + jitter[1]
        C = A + [0.5, 0.3, 0] + jitter[2]
        D = np.array([0.5 * (k + 1), 0, 0])
        parts.append(Part(f"coupler{k}", crank, "R", frame(B)))
        parts.append(Part(f"rocker{k}", GROUND, "R", frame(D)))
        gaps.append(Gap(f"coupler{k}", f"rocker{k}", frame(C), "xy"))
        crank = f"rocker{k}"
    return Linkage(parts, gaps, ["crank"])


def delta(rng: np.random.Generator) -> Linkage:
    """Return a delta: three arms and three rods to a platform that does not turn."""
    rb, rp, la, _lr = rng.uniform([0.15, 0.02, 0.18, 0.38], [0.2, 0.05, 0.22, 0.45])
    parts, gaps = [], []
    height = -0.32
    for name, parent, z in (
        ("x", GROUND, [1, 0, 0]),
        ("y", "x", [0, 1, 0]),
        ("platform", "y", UP),
    ):
        parts.append(Part(name, parent, "P", frame([0, 0, height], z)))
    for k in range(3):
        c, s = np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3)
        R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
        base, elbow = R @ [rb, 0, 0], R @ [rb + la * np.cos(0.4), 0, -la * np.sin(0.4)]
        parts.append(Part(f"arm{k}", GROUND, "R", frame(base, R @ [0, 1, 0])))
        ball = R @ [rp, 0, 0] + [0, 0, height]
        gaps.append(Gap(f"arm{k}", "platform", frame(elbow), other=frame(ball)))
    limits = {f"arm{k}": (-0.6, 0.6) for k in range(3)}
    return Linkage(parts, gaps, ["arm0", "arm1", "arm2"], limits=limits)


def rotary_platform(rng: np.random.Generator, count: int) -> Linkage:
    """Return a platform on cranks that turn freely, each with a rod of two balls.

    count: Of cranks, and of what the platform may do: x, y, z, then three turns.
    """
    kinds = [("x", "P", [1, 0, 0]), ("y", "P", [0, 1, 0]), ("z", "P", UP)]
    kinds += [("yaw", "R", UP), ("pitch", "R", [0, 1, 0]), ("roll", "R", [1, 0, 0])]
    height, parts, parent = 0.5, [], GROUND
    for name, kind, axis in kinds[:count]:
        parts.append(Part(name, parent, kind, frame([0, 0, height], axis)))
        parent = name
    gaps = []
    angles = 2.0 * np.pi * np.arange(count) / count + rng.uniform(-0.3, 0.3, count)
    for k, angle in enumerate(angles):
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        axis = np.cross(UP, out) + rng.uniform(-0.2, 0.2, 3)
        base, crank = 0.35 * out, rng.uniform(0.1, 0.15)
        elbow = base + crank * (out + rng.uniform(-0.3, 0.3, 3))
        shift = (-1.0) ** k * rng.uniform(0.3, 0.6)
        ball = 0.2 * np.array([np.cos(angle + shift), np.sin(angle + shift), 0.0])
        ball[2] = height + rng.uniform(-0.02, 0.02)
        parts.append(Part(f"arm{k}", GROUND, "R", frame(base, axis)))
        gaps.append(Gap(f"arm{k}", parent, frame(elbow), other=frame(ball)))
    return Linkage(parts, gaps, [f"arm{k}" for k in range(count)])


FAMILIES: dict[str, Callable[[np.random.Generator], Linkage]] = {
    "four-bar": four_bar,
    "slider-crank": slider_crank,
    "five-bar": five_bar,
    "3-RRR": planar_3rrr,
    "RSSR": rssr,
    "RSCR": rscr,
    "Bennett": bennett,
    "six-bar": six_bar,
    "chain": chain,
    "delta": delta,
}

FREE: dict[str, Callable[[np.random.Generator], Linkage]] = {
    f"{count}-RSS": partial(rotary_platform, count=count) for count in (3, 4, 5, 6)
}
"""Linkages with many inputs, all of which turn freely."""
