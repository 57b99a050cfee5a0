"""The page of arms that exist: their family, branches and times.

    python -m benchmarks arm-table > docs/arms.md, without its first lines

Geometry comes from ssik, which ships named arms, and from example-robot-data; all
joints are free by half a turn, so that each branch counts.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import armillary as arm
from armillary import Cell
from benchmarks.arms import ARMS
from benchmarks.closed import one_thread
from benchmarks.measure import best_times
from benchmarks.robots import SHARE, urdf_files
from benchmarks.six_axes import cell_of_peer

COUNT, FEW, FEW_SEARCHED = 1000, 40, 4
MAKERS = {
    "abb": "ABB",
    "agilex": "AgileX",
    "denso": "DENSO",
    "dobot": "Dobot",
    "fanuc": "FANUC",
    "i2rt": "I2RT",
    "kuka": "KUKA",
    "openarm": "OpenArm",
    "ufactory": "UFACTORY",
}
SEARCH = "search"
"""What stands for the family of an arm without a closed form."""

REFERENCE = "UR5"
"""The arm whose times those of others are divided by, measured beside each of them."""


class Row(NamedTuple):
    """What is measured of one arm: answers to a target, and times [us]."""

    name: str
    joints: int
    family: str
    mean: float
    most: int
    complete: float
    batch: float
    single: float


def report() -> Iterator[str]:
    """Yield the lines of the page."""
    with one_thread():
        rows = [row for row in _rows() if row is not None]
    rows.sort(key=lambda row: (row.family, row.joints, row.name.lower()))
    closed = sum(row.family != SEARCH for row in rows)
    yield "# Arms and their branches"
    yield ""
    yield (
        f"What `cell.ik(frame).all(targets)` finds for {len(rows)} arms that exist, "
        f"{closed} of them by a closed form."
    )
    yield "[inverse.md](inverse.md#closed-forms) explains the families."
    yield "`python -m benchmarks arm-table` prints this page."
    yield ""
    yield f"- {COUNT} random poses of each arm; joints turn by half a turn either way."
    yield "- *answers*: to a pose, in the mean and at most; *complete*: share of poses"
    yield "  where these are proven to be all."
    yield "- Times are of one thread, with other work on the machine: compare them with"
    yield "  each other. *batch* is a pose of many, *one* a call with one pose."
    yield "- Of arms with an arm angle, all of these are of one angle."
    yield ""
    yield "| arm | joints | family | answers | complete | batch | one |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        yield (
            f"| {row.name} | {row.joints} | {row.family} | {row.mean:.1f}, {row.most} "
            f"| {row.complete:.1%} | {_time(row.batch)} | {_time(row.single)} |"
        )


def _time(microseconds: float) -> str:
    if microseconds < 10.0:
        return f"{microseconds:.1f} us"
    if microseconds < 10_000.0:
        return f"{microseconds:.0f} us"
    return f"{1e-3 * microseconds:.0f} ms"


def _rows() -> Iterator[Row | None]:
    """Yield the row of each arm, None of one that cannot be loaded."""
    try:
        package: Any = importlib.import_module("ssik.prebuilt")
    except ImportError:
        package = None
    known: set[str] = set()
    if package is not None:
        for found in pkgutil.walk_packages(package.__path__, "ssik.prebuilt."):
            if found.name.endswith("_ik"):
                peer: Any = importlib.import_module(found.name)
                maker, model = found.name.split(".")[-2:]
                name = f"{MAKERS.get(maker, maker.replace('_', ' ').title())} "
                name += model.removesuffix("_ik").upper().replace("_", " ")
                known.add(model.removesuffix("_ik"))
                yield _row(name, cell_of_peer(peer), "tool")
    files = {path.stem: path for path in urdf_files()}
    for name, (stem, tip) in ARMS.items():
        cell = arm.load(files[stem], packages={"example-robot-data": SHARE})
        yield _row(name, cell, tip)


def _row(name: str, cell: Cell, tip: str) -> Row | None:
    device = cell.device(base="world", ends=tip)
    ik = device.ik()
    n = len(device.joint_names)
    if n > 7:
        return None
    most = np.clip(np.abs(np.stack(device.limits)).max(axis=0), 0.1, np.pi)
    q = np.random.default_rng(0).uniform(-most, most, (COUNT, n))
    targets = np.asarray(device.fk()(q))
    closed = ik.closed
    family = SEARCH if closed is None else closed.family
    options = {}
    if closed is not None and closed.arm_angle is not None:
        options["arm_angle"] = 0.0
    many, few = targets, targets[:FEW]
    if closed is None:
        many, few = targets[:FEW], targets[:FEW_SEARCHED]
    found = ik.all(many, **options)
    batch, one = best_times(
        lambda: ik.all(many, **options),
        lambda: [ik.all(X, **options) for X in few],
        turns=3,
    )
    return Row(
        name=name,
        joints=n,
        family=family,
        mean=float(found.count.mean()),
        most=int(found.count.max()),
        complete=float(found.complete.mean()),
        batch=1e6 * batch / len(many),
        single=1e6 * one / len(few),
    )
