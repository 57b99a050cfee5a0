"""Motions as animations: poses of links over time, and which parts are there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armillary.errors import ModelError
from armillary.formats.usd.write_shapes import pxr
from armillary.kinematics.all_frames import poses
from armillary.kinematics.state import State
from armillary.limits import USD_SAMPLES
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose
from armillary.trajectories.motion import Motion
from armillary.view.motion import RATE, Playable, PlayedMotion, motion_of

__all__ = ["animate", "motion_states"]


def motion_states(start: State, motion: Any, rate: float | None) -> PlayedMotion:
    """Return the states of a motion, or of the timeline of a program.

    Raises:
        ShapeError, ModelError, StateError: It does not fit the cell, see
            `view.motion.motion_of`; or it has too many samples.
    """
    links = len(start.cell.links)
    given: Any = rate
    if isinstance(motion, Motion | Playable) and isinstance(given, int | float):
        _check_samples(motion.duration * given * links)  # before memory is taken
    played = motion_of(start, motion, times=None, rate=rate)
    _check_samples(len(played.times) * links)
    return played


def _check_samples(count: float) -> None:
    """Refuse to write more poses than an animation may have.

    Raises:
        ModelError: They are more.
    """
    if USD_SAMPLES.most < count < math.inf:
        raise ModelError(f"{USD_SAMPLES.excess(int(count))}. Give a lower rate=.")


def animate(
    stage: Any,
    paths: Mapping[str, str],
    cell: Workcell,
    played: PlayedMotion,
    rate: float | None,
) -> None:
    """Write the poses of links that move over time, and hide parts that are absent.

    Args:
        stage: The stage.
        paths: Of the prims of links, by their full names, and of those that hold all
            links of a manipulator, by its name; empty where there is no prim.
        cell: The cell.
        played: The states.
        rate: Time codes a second; those of instants between them have fractions.
    """
    rate = RATE if rate is None else rate
    codes = np.asarray(played.times) * rate
    codes = np.where(np.abs(codes - np.round(codes)) < 1e-6, np.round(codes), codes)
    stage.SetTimeCodesPerSecond(rate)
    stage.SetFramesPerSecond(rate)
    stage.SetStartTimeCode(float(codes[0]))
    stage.SetEndTimeCode(float(codes[-1]))
    count = len(codes)
    states = [played.state(k) for k in range(count)]
    absent = [played.absent(k) for k in range(count)]
    shown = {
        name: np.array([name not in names for names in absent])
        for name in frozenset[str]().union(*absent)
    }
    moved = [poses(cell, state) for state in states]
    # Where a part was when it left: as it was attached before, joints as they are then.
    left = {
        k: poses(cell, states[k - 1].replace(q=states[k].q.tolist()))
        for k in range(1, count)
        if absent[k] - absent[k - 1]
    }
    with pxr("Sdf").ChangeBlock():
        for owner, link in zip(cell.owners, cell.links, strict=False):
            part = cell.manipulators[owner].name
            name = f"{part}/{link.name}"
            here = shown.get(part, np.ones(count, dtype=bool))
            rows: list[tuple[float, Any]] = []
            for k in range(count):
                if here[k]:
                    rows.append((float(codes[k]), moved[k][name]))
                elif k and here[k - 1]:
                    rows.append((float(codes[k]), left[k][name]))
            if paths.get(name) and rows:
                _move(stage.GetPrimAtPath(paths[name]), link.primary, rows)
        for part, here in shown.items():
            _show(stage.GetPrimAtPath(paths[part]), codes, here)


def _move(prim: Any, primary: Pose, rows: Sequence[tuple[float, Any]]) -> None:
    """Write the poses of a link; one without a time if it does not move."""
    Gf, UsdGeom = pxr("Gf"), pxr("UsdGeom")
    _, first = rows[0]
    is_still = all(bool(np.all(first == row)) for _, row in rows)
    ops = UsdGeom.Xformable(prim).GetOrderedXformOps()
    last: np.ndarray[Any, Any] | None = None
    for code, row in rows[:1] if is_still else rows:
        pose = Pose.from_matrix(row) @ primary
        q = np.array(pose.quaternion(), dtype=float)
        # Of the two quaternions of a rotation the one that is near the last.
        if last is not None and float(q @ last) < 0.0:
            q = -q
        last = q
        at = () if is_still else (code,)
        ops[0].Set(Gf.Vec3d(*map(float, pose.position)), *at)
        ops[1].Set(Gf.Quatd(*q.tolist()), *at)


def _show(prim: Any, codes: Any, here: Any) -> None:
    """Write when a part is there; players hold these values between samples."""
    UsdGeom = pxr("UsdGeom")
    visibility = UsdGeom.Imageable(prim).CreateVisibilityAttr()
    words = UsdGeom.Tokens.inherited, UsdGeom.Tokens.invisible
    for k, is_here in enumerate(here.tolist()):
        if k == 0 or here[k - 1] != is_here:
            visibility.Set(words[not is_here], float(codes[k]))
