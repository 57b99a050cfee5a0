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
from armillary.errors import ModelError
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

GIVEN = -1, 0
"""Of seven joints without a formula, those that are given, in this order: at the tool,
at the base. The others have a closed form for all of their values."""


class Row(NamedTuple):
    """What is measured of one arm: answers to a target, and times.

    Times are those of the reference beside it in the same turns, as parts of these.
    """

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
        reference = _Reference()
        rows = [row for row in _rows(reference) if row is not None]
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
    yield "- Times are of one thread, in parts of those of a UR5 in the same turns:"
    yield (
        f"  {1e6 * reference.best[0]:.2g} us for a pose of many (*batch*), "
        f"{1e6 * reference.best[1]:.2g} us for a call with one (*one*)."
    )
    yield "- Of arms with an arm angle, all of these are of one angle; where a joint is"
    yield "  given (`redundancy=`), of its value at the positions that made the pose."
    yield ""
    yield "| arm | joints | family | answers | complete | batch | one |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        yield (
            f"| {row.name} | {row.joints} | {row.family} | {row.mean:.1f}, {row.most} "
            f"| {row.complete:.1%} | {_ratio(row.batch)} | {_ratio(row.single)} |"
        )


def _ratio(times: float) -> str:
    return f"{times:.1f}" if times < 10.0 else f"{times:.0f}"


class _Reference:
    """All answers of a UR5, with which times of others are compared."""

    def __init__(self) -> None:
        files = {path.stem: path for path in urdf_files()}
        stem, tip = ARMS["UR5"]
        cell = arm.load(files[stem], packages={"example-robot-data": SHARE})
        device = cell.device(base="world", ends=tip)
        q = np.random.default_rng(0).uniform(-np.pi, np.pi, (COUNT, 6))
        self._ik, self._targets = device.ik(), np.asarray(device.fk()(q))
        self.best = [np.inf, np.inf]

    def many(self) -> object:
        """Find those of many poses."""
        return self._ik.all(self._targets)

    def few(self) -> object:
        """Find those of some poses, one by one."""
        return [self._ik.all(X) for X in self._targets[:FEW]]

    def took(self, batch: float, single: float) -> tuple[float, float]:
        """Keep times of the two [s], and return those of one pose."""
        once = batch / COUNT, single / FEW
        self.best = [min(pair) for pair in zip(self.best, once, strict=True)]
        return once


def _rows(reference: _Reference) -> Iterator[Row | None]:
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
                yield _row(name, cell_of_peer(peer), "tool", reference)
    files = {path.stem: path for path in urdf_files()}
    for name, (stem, tip) in ARMS.items():
        cell = arm.load(files[stem], packages={"example-robot-data": SHARE})
        yield _row(name, cell, tip, reference)


def _row(name: str, cell: Cell, tip: str, reference: _Reference) -> Row | None:
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
    options: dict[str, Any] = {}
    given: int | None = None
    if closed is not None and closed.arm_angle is not None:
        options["arm_angle"] = 0.0
    if closed is None:
        for place in GIVEN:
            joint = device.joint_names[place]
            try:
                family = f"{ik.closed_given(joint).family}, joint {place % n + 1} given"
            except ModelError:
                continue
            given = place
            break

    def chosen(rows: Any) -> dict[str, Any]:
        if given is None:
            return options
        return {"redundancy": {device.joint_names[given]: q[rows, given]}}

    is_searched = family == SEARCH
    many, few = (FEW, FEW_SEARCHED) if is_searched else (COUNT, FEW)
    found = ik.all(targets[:many], **chosen(slice(many)))
    *ours, batch, one = best_times(
        lambda: ik.all(targets[:many], **chosen(slice(many))),
        lambda: [ik.all(targets[k], **chosen(k)) for k in range(few)],
        reference.many,
        reference.few,
        turns=3,
    )
    batch, one = reference.took(batch, one)
    return Row(
        name=name,
        joints=n,
        family=family,
        mean=float(found.count.mean()),
        most=int(found.count.max()),
        complete=float(found.complete.mean()),
        batch=ours[0] / many / batch,
        single=ours[1] / few / one,
    )
