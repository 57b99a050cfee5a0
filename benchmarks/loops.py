"""Closed loops beside closed forms written by hand, and beside MuJoCo."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary.kernel import compile
from benchmarks.linkages import (
    BASE,
    COUPLER,
    CRANK,
    GROUND,
    PLATFORM,
    ROD,
    UPPER,
    delta,
    delta_by_hand,
    four_bar,
    four_bar_by_hand,
    stewart,
    stewart_legs,
)
from benchmarks.measure import (
    Figure,
    beside,
    best_times,
    cheaper,
    faster,
    within,
)

Array = npt.NDArray[np.float64]

BATCH = 50_000
STEPS = 200


def figures() -> Iterator[Figure]:
    """Yield the figures of closed loops: rows anywhere in the workspace."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (BATCH, 1))
    yield from of_batch("four-bar", four_bar(), "rocker", q, 250e-9, 20e-9)
    yield beside_hand("four-bar", four_bar(), "rocker", q, compile(four_bar_by_hand()))
    q = rng.uniform(-0.6, 1.2, (BATCH, 3))
    yield from of_batch("delta", delta(), "platform", q, 130e-9, 20e-9)
    yield beside_hand("delta", delta(), "platform", q, compile(delta_by_hand()))
    linked = delta(rods_as_links=True)
    yield from of_batch("delta, rods as links", linked, "platform", q, 220e-9, 100e-9)
    cell = stewart()
    poses = platform_poses(rng)
    legs = stewart_legs(poses)
    yield from of_batch("Stewart platform", cell, "platform", legs, 430e-9, 100e-9)
    found = cell.fk("platform")(legs)
    wrong = int((np.abs(found - poses).max(axis=(1, 2)) > 1e-9).sum())
    yield Figure(
        "Stewart platform: rows that fail or are on another branch",
        f"{wrong} of {len(legs)}",
        "",
        "0",
        str(wrong),
        wrong == 0,
    )
    yield from beside(
        "mujoco", "FK beside MuJoCo's position stage", lambda: beside_mujoco(rng)
    )
    for name, make, frame in (
        ("four-bar", four_bar, "rocker"),
        ("delta", delta, "platform"),
        ("Stewart platform", stewart, "platform"),
    ):
        cold, cached = first_use(make, frame)
        yield within(f"{name}, first FK, cold", cold, at_most=0.5)
        yield within(f"{name}, first FK, cached", cached, at_most=0.05)


def platform_poses(rng: np.random.Generator) -> Array:
    """Return poses within the workspace of the Stewart platform, shape (n, 4, 4)."""
    turn = arm.Cell(
        manipulators=[
            arm.Manipulator(
                name="wrist",
                links=[
                    arm.Link(name="base"),
                    *(
                        arm.Link(
                            name=axis,
                            parent=parent,
                            joint=arm.joints.Revolute(axis=vector),
                        )
                        for parent, axis, vector in (
                            ("base", "z", (0, 0, 1)),
                            ("z", "y", (0, 1, 0)),
                            ("y", "x", (1, 0, 0)),
                        )
                    ),
                ],
            )
        ]
    ).fk("x")
    poses: Array = turn(rng.uniform(-0.4, 0.4, (BATCH, 3)))
    poses[:, :2, 3] = rng.uniform(-0.15, 0.15, (BATCH, 2))
    poses[:, 2, 3] = rng.uniform(0.8, 1.05, BATCH)
    return poses


def of_batch(
    name: str, cell: arm.Cell, frame: str, q: Array, fk_at_most: float, more: float
) -> Iterator[Figure]:
    """Yield the lines of FK from anywhere, and of what a Jacobian costs beyond it."""
    fk, jacobian = cell.fk(frame), cell.jacobian(frame)
    X, J = np.empty((len(q), 4, 4)), np.empty((len(q), 6, q.shape[1]))
    ours, both = best_times(
        lambda: fk(q, out=X, threads=1), lambda: jacobian(q, out=J, threads=1)
    )
    failed = int(np.isnan(X).any(axis=(1, 2)).sum())
    yield within(f"{name}, FK from anywhere", ours / len(q), at_most=fk_at_most)
    yield Figure(
        f"{name}: rows that fail", str(failed), "", "0", str(failed), not failed
    )
    beyond = max(both - ours, 0.0) / len(q)
    yield within(f"{name}, Jacobian beyond FK", beyond, at_most=more)


def beside_hand(
    name: str, cell: arm.Cell, frame: str, q: Array, hand: Callable[..., Any]
) -> Figure:
    """Return the line beside a closed form, which is compiled as well."""
    fk = cell.fk(frame)
    X, Y = np.empty((len(q), 4, 4)), np.empty((len(q), 4, 4))
    ours, theirs = best_times(
        lambda: fk(q, out=X, threads=1), lambda: hand(q, out=Y, threads=1)
    )
    assert np.abs(X - Y).max() < 1e-9
    what = f"{name}, FK beside its closed form by hand"
    return cheaper(what, ours / len(q), theirs / len(q), at_most=5.0)


FOUR_BAR_IN_MUJOCO = f"""<mujoco><option gravity="0 0 0"/><default>
<geom type="sphere" size="0.01" contype="0" conaffinity="0"/></default><worldbody>
<body><joint axis="0 0 1"/><geom/><body name="coupler" pos="{CRANK} 0 0">
<joint axis="0 0 1"/><geom/></body></body>
<body name="rocker" pos="{GROUND} 0 0"><joint axis="0 0 1"/><geom/></body>
</worldbody><equality><connect body1="coupler" body2="rocker" anchor="{COUPLER} 0 0"/>
</equality></mujoco>"""
"""The four-bar as bodies with an equality constraint."""


def delta_in_mujoco() -> str:
    """Return the delta robot as bodies with equality constraints."""
    geom = '<geom type="sphere" size="0.01" contype="0" conaffinity="0"/>'
    arms = "".join(
        f'<body euler="0 0 {120 * k}">'
        f'<body pos="{BASE} 0 0"><joint axis="0 1 0"/>{geom}'
        f'<body name="rod{k}" pos="{UPPER} 0 0"><joint axis="0 1 0"/>'
        f'<joint axis="0 0 1"/>{geom}</body></body></body>'
        for k in range(3)
    )
    slides = "".join(
        f'<joint type="slide" axis="{a}"/>' for a in ("1 0 0", "0 1 0", "0 0 1")
    )
    closures = "".join(
        f'<connect body1="rod{k}" body2="platform" anchor="{ROD} 0 0"/>'
        for k in range(3)
    )
    return (
        f'<mujoco><option gravity="0 0 0"/><worldbody>{arms}<body name="platform" '
        f'pos="{PLATFORM} 0 -0.3">{slides}{geom}</body></worldbody>'
        f"<equality>{closures}</equality></mujoco>"
    )


def beside_mujoco(rng: np.random.Generator) -> Iterator[Figure]:
    """Yield the lines beside MuJoCo's position stage, which closes no loop yet.

    Its Newton steps, or its simulation, would come on top, several such stages for
    each row.
    """
    mujoco: Any = import_module("mujoco")
    rows = (
        ("four-bar", four_bar(), "rocker", FOUR_BAR_IN_MUJOCO, (-np.pi, np.pi)),
        (
            "delta, rods as links",
            delta(rods_as_links=True),
            "platform",
            delta_in_mujoco(),
            (-0.6, 1.2),
        ),
    )
    for name, cell, frame, text, limits in rows:
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        q = rng.uniform(*limits, (BATCH, len(cell.joint_names)))
        fk, X = cell.fk(frame), np.empty((BATCH, 4, 4))

        def stages(model: Any = model, data: Any = data) -> None:
            for _ in range(STEPS):
                mujoco.mj_fwdPosition(model, data)

        ours, theirs = best_times(
            lambda fk=fk, q=q, X=X: fk(q, out=X, threads=1), stages
        )
        what = f"{name}, FK beside one position stage of MuJoCo"
        yield faster(
            what,
            ours / BATCH,
            theirs / STEPS,
            at_least=50.0 if len(q[0]) == 1 else 20.0,
        )


def first_use(make: Callable[[], arm.Cell], frame: str) -> tuple[float, float]:
    """Return the time of a cell and its first pose, cold and from the cache [s]."""
    from armillary.kernel import kernel
    from armillary.model import motion

    before = os.environ.get("ARMILLARY_CACHE")
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARMILLARY_CACHE"] = folder
        for _ in range(2):
            kernel._shared.cache_clear()
            motion._motion_of.cache_clear()
            start = time.perf_counter()
            cell = make()
            cell.fk(frame)(cell.home.q)
            times.append(time.perf_counter() - start)
    if before is None:
        del os.environ["ARMILLARY_CACHE"]
    else:
        os.environ["ARMILLARY_CACHE"] = before
    return times[0], times[1]
