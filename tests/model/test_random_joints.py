"""Random users' joints, at special points too, against jets of their own syntax tree.

Poses, twists at unit rate and their rates, interpreted and compiled. A longer campaign:
`python tests/model/test_random_joints.py 500 200 7` for 500 joints, 200 rows, seed 7.
"""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from typing import Any

import mpmath
import numpy as np

import armillary as arm
import jets
from armillary.kernel import compile
from armillary.trace import evaluate, trace
from jets import Calculus, Tree, Unknown

USUAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.25, 3.0]
USUAL += [math.pi, -math.pi, math.pi / 2, -math.pi / 2, 1e-9, -1e-9, 1.5, -1.5]
BATCH = 25  # joints in one kernel
FUNCTIONS: dict[str, Any] = {
    "neg": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "**": lambda x, y: x**y,
    "%": lambda x, y: x % y,
    "//": lambda x, y: x // y,
    "min": np.minimum,
    "max": np.maximum,
}


def written(tree: Tree, q: Any) -> Any:
    """Compute a tree as a user writes it."""
    if tree == "q":
        return q
    if isinstance(tree, float):
        return np.float64(tree)
    name, *parts = tree
    if name == "if":
        chosen = parts[2 if written(parts[0], q) < written(parts[1], q) else 3]
        return written(chosen, q)
    args = [written(part, q) for part in parts]
    return FUNCTIONS.get(name, getattr(np, name, None))(*args)


def joint_of(trees: list[Tree]) -> arm.Joint:
    """A joint that slides by one formula and turns by another."""

    class Drawn(arm.Joint):
        unit = arm.OTHER

        def pose(self, q):
            with np.errstate(all="ignore"):  # of numbers alone
                x, angle = (written(tree, q) + 0 * q for tree in trees)
            return arm.Pose.translation(x, q, 0) @ arm.Pose.rotation_z(angle)

    return Drawn()


def answers(q: Any, motion: Any) -> list[Any]:
    """Position and first row of the rotation, the twist and its rate."""
    X = motion.pose(q)
    return [
        *X.position,
        X.rotation[0][0],
        X.rotation[0][1],
        *motion.subspace(q),
        *motion.subspace_rate(q),
    ]


def wanted(m: Any, found: list[jets.Jet]) -> list[Any]:
    """The same, of jets of the formulas and of q, the second coordinate."""
    x, angle, q = found
    p = [x, q, (q[2],) * 3]
    cosine, sine = m.cos(angle[0]), m.sin(angle[0])

    def back(v: list[Any]) -> list[Any]:
        return [cosine * v[0] + sine * v[1], -sine * v[0] + cosine * v[1], v[2]]

    slopes, bends = [u[1] for u in p], [u[2] for u in p]
    v, w = back(slopes), angle[1]
    dv = back(bends)
    dv = [dv[0] + w * v[1], dv[1] - w * v[0], dv[2]]
    zero = 0 * w
    values = [u[0] for u in p]
    return [*values, cosine, -sine, *v, zero, zero, w, *dv, zero, zero, angle[2]]


def possible(trees: list[Tree], q: float) -> list[tuple[list[float], list[float]]]:
    """Return the right numbers and how far roundings move them, for each side of ties.

    Raises:
        Unknown: There are none.
    """
    trees = [*trees, "q"]
    first = Calculus(math)
    for tree in trees:
        jets.jet(first, tree, q)
    if first.tie_count > 3:
        raise Unknown
    found = []
    for ties in itertools.product((0, 1), repeat=first.tie_count):
        rough = Calculus(math, ties=ties)
        numbers = wanted(math, [jets.jet(rough, each, q)[0] for each in trees])
        exact = Calculus(mpmath.mp, rough.choices, ties, is_replay=True)
        at = mpmath.mpf(q)
        precise = [jets.jet(exact, each, at)[0] for each in trees]
        truth = [float(x) for x in wanted(mpmath.mp, precise)]
        found.append((truth, [abs(a - b) for a, b in zip(numbers, truth, strict=True)]))
    return found


def agrees(found: np.ndarray, truth: list[float], moved: list[float]) -> bool:
    wanted, wobble = np.array(truth), np.array(moved)
    size = 1.0 + np.abs(wanted)
    return bool(
        (np.abs(found - wanted) <= 1e-9 * size.max() + 1e3 * wobble.max()).all()
    )


def campaign(joints: int, rows: int, seed: int) -> tuple[int, list[Any]]:
    """Return how many rows were judged, and those that are wrong."""
    random = np.random.default_rng(seed)
    judged, wrong = 0, []
    for start in range(0, joints, BATCH):
        count = min(BATCH, joints - start)
        drawn = [[jets.drawn(random, 3) for _ in range(2)] for _ in range(count)]
        motions = [joint_of(trees).motion for trees in drawn]
        programs = [trace(lambda q, m=m: answers(q, m), q=()) for m in motions]
        both = _together(programs)
        points = [_points(random, trees, rows) for trees in drawn]
        compiled = compile(both)(np.array(points).ravel()).reshape(
            count, rows, count, -1
        )
        for k, (trees, program) in enumerate(zip(drawn, programs, strict=True)):
            for row, q in enumerate(points[k]):
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        right = possible(trees, q)
                except Unknown:
                    continue
                judged += 1
                interpreted = np.array(evaluate(program, [q]))
                for found in (interpreted, compiled[k, row, k]):
                    if not any(agrees(found, *each) for each in right):
                        wrong.append((trees, q, found, right))
    return judged, wrong


def _together(programs: list[Any]) -> Any:
    return trace(lambda q: [evaluate(each, [q]) for each in programs], q=())


def _points(random: Any, trees: list[Tree], rows: int) -> list[float]:
    """Special points, the numbers in the formulas among them, and others."""
    own = {x for tree in trees for x in jets.numbers_in(tree)}
    special = [*USUAL, *own, *(-x for x in own)][: rows // 2]
    return [*special, *random.uniform(-3.0, 3.0, rows - len(special)).tolist()]


def test_random_joints_are_their_jets():
    with mpmath.workdps(40):
        judged, wrong = campaign(joints=15, rows=60, seed=3)
    assert not wrong, wrong[0]
    assert judged > 200


if __name__ == "__main__":
    with mpmath.workdps(40):
        found, bad = campaign(*(int(word) for word in sys.argv[1:4]))
    lines = [f"{found} rows, {len(bad)} wrong", *map(repr, bad[:10])]
    sys.stdout.write("\n".join(lines) + "\n")
