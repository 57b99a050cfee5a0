"""Motions as animations: the poses of links over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from armillary.errors import ModelError
from armillary.formats.usd.write_shapes import pxr
from armillary.kinematics.all_frames import poses
from armillary.kinematics.state import State
from armillary.limits import USD_SAMPLES
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose
from armillary.view.motion import RATE, PlayedMotion, motion_of

__all__ = ["animate", "motion_states"]

CODES: Final = 1000.0
"""Time codes a second where samples are not at a constant rate."""


def motion_states(start: State, motion: Any, rate: float | None) -> PlayedMotion:
    """Return the states of a motion.

    Raises:
        ShapeError, ModelError, StateError: It does not fit the cell, see
            `view.motion.motion_of`; or it has too many samples.
    """
    played = motion_of(start, motion, times=None, rate=rate)
    links = len(start.cell.links)
    if len(played.times) * links > USD_SAMPLES.most:
        message = USD_SAMPLES.excess(len(played.times) * links)
        raise ModelError(f"{message}. Give a lower rate=.")
    return played


def animate(
    stage: Any, paths: Mapping[str, str], cell: Workcell, played: PlayedMotion
) -> None:
    """Write the poses of links that move over time.

    paths: Of the prims of links, by their full names.
    """
    Gf, UsdGeom, Sdf = pxr("Gf"), pxr("UsdGeom"), pxr("Sdf")
    times = played.times
    rate = _rate_of(times)
    codes = np.asarray(times) * rate
    codes = np.where(np.abs(codes - np.round(codes)) < 1e-6, np.round(codes), codes)
    stage.SetTimeCodesPerSecond(rate)
    stage.SetFramesPerSecond(rate)
    stage.SetStartTimeCode(float(codes[0]))
    stage.SetEndTimeCode(float(codes[-1]))
    links = {
        f"{cell.manipulators[owner].name}/{link.name}": link
        for owner, link in zip(cell.owners, cell.links, strict=False)
    }
    named = [name for name in links if paths.get(name)]
    moved = [poses(cell, played.state(k)) for k in range(len(times))]
    with Sdf.ChangeBlock():
        for name in named:
            rows = np.stack([np.asarray(each[name]) for each in moved])
            if bool(np.all(rows[0] == rows)):
                rows = rows[:1]
            ops = UsdGeom.Xformable(
                stage.GetPrimAtPath(paths[name])
            ).GetOrderedXformOps()
            last: np.ndarray[Any, Any] | None = None
            for k, row in enumerate(rows):
                pose = Pose.from_matrix(row) @ links[name].primary
                q = np.array(pose.quaternion(), dtype=float)
                # Of the two quaternions of a rotation the one that is near the last.
                if last is not None and float(q @ last) < 0.0:
                    q = -q
                last = q
                at = () if len(rows) == 1 else (float(codes[k]),)
                ops[0].Set(Gf.Vec3d(*map(float, pose.position)), *at)
                ops[1].Set(Gf.Quatd(*q.tolist()), *at)


def _rate_of(times: np.ndarray[Any, Any]) -> float:
    """Return samples a second, where there are equally many in each."""
    if len(times) < 2:
        return RATE
    step = float(times[1] - times[0])
    even = step > 0.0 and np.allclose(np.diff(times)[:-1], step, rtol=1e-6, atol=1e-9)
    return round(1.0 / step, 6) if even and 1e-3 <= 1.0 / step <= 1e6 else CODES
