"""`armillary dynamics`: torques of joints at rest and in motion, and their limits."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import (
    JSON,
    STATES,
    chosen_state,
    out,
    print_summary,
    written_answers,
)
from armillary.cli.table import finite, number, table
from armillary.cli.vectors import (
    chosen_vector,
    joint_factors,
    vector_of_text,
)
from armillary.cli.verb import option, verb
from armillary.dynamics.bodies import GROUND, Bodies
from armillary.errors import ModelError, printable
from armillary.kinematics.state import State, rates_of
from armillary.model.display import plural
from armillary.model.unit import Unit

Array = npt.NDArray[np.float64]

WITHIN_LIMITS, EXCEEDED = 0, 1
DECIMALS: Final = 6
NAMED: Final = 8  # links of unknown inertia
ROUNDING: Final = 1e-9  # of torques that are 0 [N m or N]
TOTALS: Final = {
    "mass": ("mass of all that joints move", "kg"),
    "centre_of_mass": ("its centre, in the world", "m"),
    "kinetic_energy": ("kinetic energy", "J"),
    "potential_energy": ("potential energy", "J"),
}
EFFORT_UNITS: Final = {Unit.METRE: "N", Unit.RADIAN: "N m", Unit.OTHER: "-"}
HEADER: Final = (
    *(">q", "joint", ">position", ">rate", ">acceleration", ""),
    *(">to hold", ">to move", "", ">limit", ">share", ""),
)
DESCRIPTION = """\
Print the torque [N m] or force [N] of each joint: to hold the cell at rest, and to
move it with --qd and --qdd, and what share of its effort limit the greater one is; then
the mass, centre of mass and energies of all that joints move. Attached parts count as
--state says. Of the joint vectors of a file, the torques to hold each are printed one a
line, or written with --out: shape (..., n). The exit code is 1 if an effort limit is
exceeded.
"""


@verb(
    "dynamics",
    (
        *FILE,
        *STATES,
        option(
            "--qd V1,V2,...",
            "joint rates; else those of the state, or 0",
            has_numbers=True,
        ),
        option("--qdd A1,A2,...", "joint accelerations; else 0", has_numbers=True),
        option(
            "--gravity X,Y,Z",
            "acceleration of falling bodies [m/s^2]; else 0,0,-9.81",
            has_numbers=True,
        ),
        JSON,
        out("T.npy", "torques"),
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Compute and print or write; return an exit code: whether limits are exceeded."""
    _check(options)
    cell = open_cell(options)
    state = chosen_state(cell, options)
    gravity = None
    if options.gravity is not None:
        gravity = vector_of_text(options.gravity, "--gravity")
    if options.q_file is not None:
        return _many(cell, state, gravity, options)
    efforts = _of_state(cell, state, gravity, options)
    if options.json:
        print(json.dumps(_object(efforts)))
    else:
        for line in _lines(efforts, in_degrees=options.degrees):
            print(line)
    return EXCEEDED if efforts.exceeded.any() else WITHIN_LIMITS


def _check(options: argparse.Namespace) -> None:
    """Refuse what does not go together.

    Raises:
        ModelError: It says what.
    """
    if options.q_file is None and options.out is not None:
        raise ModelError("--out writes the torques of the vectors of --q-file.")
    one = (options.json, options.qd is not None, options.qdd is not None)
    if options.q_file is not None and any(one):
        raise ModelError("--qd, --qdd and --json are of one state, not of --q-file.")


def _exceeded(cell: Cell, torques: Array) -> npt.NDArray[np.bool_]:
    """Return which efforts exceed their limits; those that are NaN do."""
    return ~(np.abs(torques) <= cell.effort_limits + ROUNDING)


# one state


@dataclass(frozen=True, kw_only=True)
class _Efforts:
    """A motion, and the torques that it takes."""

    cell: Cell
    state: State
    gravity: Any
    qd: Array
    qdd: Array
    holding: Array
    moving: Array

    @property
    def exceeded(self) -> npt.NDArray[np.bool_]:
        """Return which joints exceed their effort limits, to hold or to move."""
        cell = self.cell
        return _exceeded(cell, self.holding) | _exceeded(cell, self.moving)

    @property
    def shares(self) -> Array:
        """Return the greater torque by its limit, NaN where that is 0 or infinite."""
        # A limit of 0 or infinity has no share.
        most = np.maximum(np.abs(self.holding), np.abs(self.moving))
        limits = self.cell.effort_limits
        known = np.isfinite(limits) & (limits > 0.0)
        return np.divide(most, limits, out=np.full(len(most), np.nan), where=known)


def _of_state(
    cell: Cell, state: State, gravity: Any, options: argparse.Namespace
) -> _Efforts:
    zeros = np.zeros(len(cell.joint_names))
    qd, qdd = rates_of(state), zeros
    if options.qd is not None:
        qd = chosen_vector(cell, options.qd, options, "--qd")
    if options.qdd is not None:
        qdd = chosen_vector(cell, options.qdd, options, "--qdd")
    torque = cell.inverse_dynamics(state=state, gravity=gravity)
    return _Efforts(
        cell=cell,
        state=state,
        gravity=gravity,
        qd=qd,
        qdd=qdd,
        holding=torque(state.q, zeros, zeros),
        moving=torque(state.q, qd, qdd),
    )


def _lines(efforts: _Efforts, *, in_degrees: bool) -> Iterator[str]:
    cell = efforts.cell
    yield from table(HEADER, _rows(efforts, in_degrees=in_degrees))
    yield ""
    width = max(len(what) for what, _ in TOTALS.values())
    for name, values in _totals(efforts).items():
        what, unit = TOTALS[name]
        yield f"{what:{width}}  {' '.join(map(_rounded, values))} {unit}"
    unknown, moved = _unknown(efforts.state)
    if unknown:
        more = len(unknown) - NAMED
        listed = ", ".join(map(printable, unknown[:NAMED]))
        others = f" and {more} more" if more > 0 else ""
        yield ""
        yield (
            f"{len(unknown)} of {plural(moved, 'link')} that joints move have no "
            f"inertia and count nothing: {listed}{others}"
        )
    count = int(efforts.exceeded.sum())
    limited = int(np.isfinite(cell.effort_limits).sum())
    yield ""
    yield f"{count} of {plural(limited, 'effort limit')} exceeded"


def _rows(efforts: _Efforts, *, in_degrees: bool) -> Iterator[tuple[str, ...]]:
    cell = efforts.cell
    joints = cell.workcell.joints
    motion = np.array([efforts.state.q, efforts.qd, efforts.qdd])
    if in_degrees:
        motion = motion / joint_factors(cell.workcell, cell.joint_names)
    shares = efforts.shares.tolist()
    rows = zip(cell.joint_names, joints.links, shares, strict=False)
    for k, (name, place, share) in enumerate(rows):
        unit = cell.workcell.links[place].joint.unit
        yield (
            *(str(k), name, *map(_rounded, motion[:, k])),
            "deg" if in_degrees and unit is Unit.RADIAN else unit.value or "-",
            *(_rounded(efforts.holding[k]), _rounded(efforts.moving[k])),
            EFFORT_UNITS[unit],
            number(cell.effort_limits[k]),
            f"{100.0 * share:.1f} %" if np.isfinite(share) else "-",
            "exceeded" if efforts.exceeded[k] else "",
        )


def _rounded(value: float) -> str:
    return number(round(float(value), DECIMALS))


def _totals(efforts: _Efforts) -> dict[str, list[float]]:
    """Return mass, centre and energies of all that joints move, by their names."""
    cell, q = efforts.cell, efforts.state.q
    about: Any = {"state": efforts.state, "gravity": efforts.gravity}
    tree = efforts.state.tree
    mass = sum(float(body.mass) for body in Bodies.of(tree).inertias(tree))
    centre = [math.nan] * 3
    if mass > 0.0:
        centre = cell.centre_of_mass(**about)(q).tolist()
    kinetic = cell.kinetic_energy(**about)(q, efforts.qd)
    potential = cell.potential_energy(**about)(q)
    return {
        "mass": [mass],
        "centre_of_mass": centre,
        "kinetic_energy": [float(kinetic)],
        "potential_energy": [float(potential)],
    }


def _unknown(state: State) -> tuple[list[str], int]:
    """Return which links that joints move have no inertia, and how many move."""
    tree = state.tree
    fixed = Bodies.of(tree).fixed
    moved = [link for link, (body, _) in sorted(fixed.items()) if body != GROUND]
    unknown = [tree.name(k) for k in moved if tree.links[k].inertia is None]
    return unknown, len(moved)


def _object(efforts: _Efforts) -> dict[str, Any]:
    """Return what is printed as JSON; null stands for no limit, or what is NaN."""
    cell = efforts.cell
    columns: dict[str, Sequence[Any]] = {
        "name": cell.joint_names,
        "q": efforts.state.q.tolist(),
        "qd": finite(efforts.qd.tolist()),
        "qdd": finite(efforts.qdd.tolist()),
        "holding": finite(efforts.holding.tolist()),
        "torque": finite(efforts.moving.tolist()),
        "limit": finite(cell.effort_limits.tolist()),
        "exceeded": efforts.exceeded.tolist(),
    }
    totals = [(name, finite(values)) for name, values in _totals(efforts).items()]
    return {
        "cell": cell.name,
        "joints": [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ],
        **{name: each if len(each) > 1 else each[0] for name, each in totals},
        "without_inertia": _unknown(efforts.state)[0],
    }


# a file of joint vectors


def _many(cell: Cell, state: State, gravity: Any, options: argparse.Namespace) -> int:
    torque = cell.gravity_torque(state=state, gravity=gravity)
    summary, names = _GreatestTorques(cell), cell.joint_names
    for torques in written_answers(torque, cell, state, options, (len(names),), names):
        summary.add(torques)
    print_summary(summary.lines(), options)
    return EXCEEDED if summary.exceeding else WITHIN_LIMITS


class _GreatestTorques:
    """The greatest torque of each joint, chunk by chunk."""

    def __init__(self, cell: Cell) -> None:
        self.count = 0
        self.exceeding = 0
        self._cell = cell
        self._most = np.zeros(len(cell.joint_names))
        self._where = np.zeros(len(cell.joint_names), np.int64)

    def add(self, torques: Array) -> None:
        """Add vectors by their torques, shape (k, n)."""
        # NaN counts as beyond all limits, as `_exceeded` has it.
        sizes = np.where(np.isnan(torques), np.inf, np.abs(torques))
        rows = sizes.argmax(axis=0)
        most = np.take_along_axis(sizes, rows[np.newaxis], axis=0)[0]
        higher = most > self._most
        self._most[higher] = most[higher]
        self._where[higher] = self.count + rows[higher]
        self.exceeding += int(_exceeded(self._cell, torques).any(axis=-1).sum())
        self.count += len(torques)

    def lines(self) -> Iterator[str]:
        """Yield how many vectors exceed limits, and the greatest torques."""
        counted = plural(self.count, "vector")
        yield f"{self.exceeding} of {counted} exceed an effort limit"
        if not self.count:
            return
        cell = self._cell
        yield from table(
            ("joint", ">greatest", ">limit", ">at vector"),
            zip(
                cell.joint_names,
                map(_rounded, self._most),
                map(number, cell.effort_limits),
                map(str, self._where.tolist()),
                strict=True,
            ),
        )
