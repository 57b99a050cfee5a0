"""Files of motions: JSON and NPZ, which hold all of one, and rows in CSV and NPY."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from armillary.csv_text import csv_text
from armillary.errors import (
    UNREADABLE_ARRAY,
    FormatError,
    ModelError,
    StateError,
    quote,
    unknown,
)
from armillary.file_start import is_zip
from armillary.kinematics.state import State
from armillary.limits import MOTION_SIZE
from armillary.replaced_file import replacing
from armillary.trajectories.curve import cubic_coefficients, hermite_coefficients
from armillary.trajectories.motion_parts import POWERS, Attachment, Marker
from armillary.zip_archive import ArchiveError, ZipArchive

__all__ = [
    "ALLOWED",
    "csv_rows",
    "motion_bytes",
    "motion_fields",
    "read_motion",
    "write_motion",
]

Array = npt.NDArray[Any]

KIND: Final = "armillary motion"
VERSION: Final = 1
ENDINGS: Final = (".csv", ".json", ".npy", ".npz")
ARRAYS: Final = ("times", "law", "curve", "piece")
ORDERS: Final = {"q": "", "qd": "/s", "qdd": "/s^2", "qddd": "/s^3"}
"""What rows hold of each joint, and what that is divided by."""

ALLOWED: Final = (tuple(ORDERS), ("q", "qd"))
"""What rows of a `.csv` have: all of these, or positions and rates alone."""

UNREADABLE: Final = (
    *(*UNREADABLE_ARRAY, KeyError, RuntimeError, OSError, FormatError, StateError),
    *(csv.Error, ArchiveError),
)
"""What readers raise at damaged files: of archives, heads of arrays, and rows."""

LATE: Final = 1e-9
"""Part of its duration by which rounding may put an instant after a motion's end."""

COLUMN: Final = re.compile(r"(q|qd|qdd|qddd):(.*?)(?: \[(.*)\])?")


def write_motion(
    motion: Any, path: str | os.PathLike[str], *, rate: float | None
) -> None:
    """Write a motion to a file, see `Motion.write`."""
    content = motion_bytes(motion, _ending(path), rate=rate)
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise FormatError(f"{os.fspath(path)}: {error.strerror or error}.") from error


def motion_bytes(motion: Any, ending: str, *, rate: float | None = None) -> bytes:
    """Return the file of a motion, see `Motion.write`.

    ending: One of `ENDINGS`.
    """
    if ending in {".json", ".npz"}:
        if rate is not None:
            raise ModelError(
                f"rate= is for files of samples, .csv and .npy; a {ending} file holds "
                "the motion itself."
            )
        about = _about(motion)
        if ending == ".json":
            arrays = {name: getattr(motion, name).tolist() for name in ARRAYS}
            text = json.dumps({**about, **arrays}, allow_nan=False, indent=1)
            return (text + "\n").encode()
        held = io.BytesIO()
        arrays = {name: getattr(motion, name) for name in ARRAYS}
        np.savez(held, about=np.array(json.dumps(about)), **arrays)
        return held.getvalue()
    samples = motion.sampled(rate=rate) if rate is not None else motion.at(motion.times)
    if len(samples.time) < 2:
        raise ModelError("This motion takes no time, so that it has no samples.")
    rows = np.concatenate([samples.time[:, None], *samples[1:]], axis=1)
    return _csv(motion, rows) if ending == ".csv" else _npy(rows)


def read_motion(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of the motion in a file, see `Motion.read`."""
    ending, name = _ending(path), os.fspath(path)
    try:
        status = os.stat(name)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{name}: this is not a plain file.")
        if status.st_size > MOTION_SIZE.most:
            raise FormatError(f"{name}: {MOTION_SIZE.excess(status.st_size)}.")
        content = Path(path).read_bytes()
    except OSError as error:
        raise FormatError(f"{name}: {error.strerror or error}.") from error
    return motion_fields(content, ending, name)


def motion_fields(content: bytes, ending: str, name: str) -> dict[str, Any]:
    """Return the fields of a motion, from the bytes of its file.

    Args:
        content: The bytes.
        ending: One of `ENDINGS`.
        name: Of the file, for messages.

    Raises:
        FormatError: It holds no motion.
    """
    try:
        if ending == ".json":
            about = json.loads(content)
            if not isinstance(about, dict):
                raise ValueError("it is not a JSON object")
            return _fields(cast("dict[str, Any]", about))
        if ending == ".npz":
            about, arrays = _of_archive(content)
            return _fields({**about, **arrays})
        if ending == ".csv":
            return _of_csv(content.decode("utf-8-sig"))
        return _of_rows(_array(content))
    except UNREADABLE as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise FormatError(
            f"{name}: this file holds no motion: {what.rstrip('.')}."
        ) from error


def _of_archive(content: bytes) -> tuple[Any, dict[str, Any]]:
    """Return what an archive of arrays says of a motion, and its arrays."""
    if not is_zip(content):
        raise ValueError("it is not an archive of arrays")
    archive = ZipArchive(content)
    names = {name: f"{name}.npy" for name in ("about", *ARRAYS)}
    missing = sorted(name for name, file in names.items() if file not in archive)
    if missing:
        raise ValueError(f"it has no {', '.join(map(quote, missing))}")
    about, *arrays = (_array(archive.read(file)) for file in names.values())
    return json.loads(str(about)), dict(zip(ARRAYS, arrays, strict=True))


def _array(content: bytes) -> Array:
    """Return an array whose file is as long as it says, before memory is taken."""
    held = io.BytesIO(content)
    version = np.lib.format.read_magic(held)
    head = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, kind = head(held)
    if math.prod(shape) * kind.itemsize > len(content):
        raise ValueError(f"an array of shape {shape} is longer than its file")
    held.seek(0)
    return np.load(held, allow_pickle=False)


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise unknown(
            "format of motions",
            ending or os.fspath(path),
            ENDINGS,
            hint="cell.hand_over(motion, path) writes programs for controllers.",
        )
    return ending


# All of a motion


def _about(motion: Any) -> dict[str, Any]:
    """Return what a motion is beside its arrays."""
    start = None if motion.start is None else json.loads(motion.start.to_json())
    return {
        "kind": KIND,
        "version": VERSION,
        "duration": motion.duration,
        "joint_names": list(motion.joint_names),
        "units": list(motion.units),
        "cell_digest": motion.digest,
        "markers": [marker._asdict() for marker in motion.markers],
        "attachments": [event._asdict() for event in motion.attachments],
        "start": start,
    }


def _fields(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a motion.

    Raises:
        ValueError, KeyError, TypeError: They are not those of one.
    """
    if about.get("kind") != KIND or about.get("version") != VERSION:
        raise ValueError(f"it is not of the kind {quote(KIND)}, version {VERSION}")
    times, law, curve = (np.array(about[name], np.float64) for name in ARRAYS[:3])
    piece = np.array(about["piece"])
    names, units = (list(_listed(about, name)) for name in ("joint_names", "units"))
    m = len(times) - 1
    shapes = law.shape, curve.shape[1:], piece.shape
    if (
        times.ndim != 1
        or m < 1
        or shapes
        != (
            (m, POWERS),
            (POWERS, len(names) or curve.shape[-1]),
            (m,),
        )
    ):
        raise ValueError("the shapes of its arrays do not fit")
    if not all(np.isfinite(part).all() for part in (times, law, curve)):
        raise ValueError("a number is not finite")
    if times[0] != 0.0 or (np.diff(times) < 0.0).any():
        raise ValueError("its times do not ascend from 0")
    if piece.dtype.kind not in "iu" or not (
        (piece >= 0).all() and (piece < len(curve)).all()
    ):
        raise ValueError("a piece of the path does not exist")
    texts = *names, *units, about["cell_digest"]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is not a text")
    if len(set(names)) < len(names):
        raise ValueError("a joint is named twice")
    if units and len(units) != curve.shape[-1]:
        raise ValueError("there is not one unit for each joint")
    end = float(times[-1])
    markers = [
        Marker(str(m["name"]), _instant(m["time"], end))
        for m in _listed(about, "markers")
    ]
    events = [
        Attachment(str(e["part"]), _instant(e["time"], end), e["by"] and str(e["by"]))
        for e in _listed(about, "attachments")
    ]
    start, state = about["start"], None
    if start is not None:
        state = State.from_json(json.dumps(start))
    return {
        "times": times,
        "law": law,
        "curve": curve,
        "piece": piece,
        "joint_names": tuple(names),
        "units": tuple(units),
        "markers": tuple(sorted(markers, key=lambda each: each.time)),
        "attachments": tuple(sorted(events, key=lambda each: each.time)),
        "cell_digest": about["cell_digest"],
        "start": state,
    }


def _listed(about: Mapping[str, Any], name: str) -> list[Any]:
    given = about[name]
    if not isinstance(given, list):
        raise TypeError(f"{quote(name)} is not a list")
    return cast("list[Any]", given)


def _instant(given: Any, end: float) -> float:
    """Return when something happens within a motion [s]."""
    time = float(given)
    if not 0.0 <= time <= end * (1.0 + LATE):
        raise ValueError(f"{time} is not within its {end:g} s")
    return min(time, end)


# Rows of samples


def _csv(motion: Any, rows: Array) -> bytes:
    """Return rows of a motion as text, with names and units at its head."""
    count = motion.curve.shape[-1]
    names = motion.joint_names or [f"q{k}" for k in range(count)]
    units = motion.units or ("",) * count
    return csv_rows(rows, names, units, ALLOWED[0]).encode()


def csv_rows(
    rows: Array, names: Sequence[str], units: Sequence[str], orders: Sequence[str]
) -> str:
    """Return rows as text, with names and units at its head.

    Args:
        rows: The time, then positions and their derivatives, of all joints each.
        names: Of joints.
        units: Of their positions.
        orders: What rows have, one of `ALLOWED`.
    """
    head = ["time [s]"]
    for order in orders:
        per = ORDERS[order]
        for name, unit in zip(names, units, strict=True):
            of = (unit or "1") + per if unit or per else ""
            head.append(f"{order}:{name}" + (f" [{of}]" if of else ""))
    return csv_text(head, rows.tolist())


def _npy(rows: Array) -> bytes:
    held = io.BytesIO()
    np.save(held, rows)
    return held.getvalue()


def _of_csv(text: str) -> dict[str, Any]:
    head, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    columns = [COLUMN.fullmatch(name) for name in head[1:]]
    if not head[:1] or not head[0].startswith("time") or None in columns:
        raise ValueError(
            "its head is not 'time [s]' and columns such as 'q:joint [rad]'"
        )
    found = [match.groups() for match in columns if match]
    names = [name for order, name, _ in found if order == "q"]
    units = [unit or "" for order, _, unit in found if order == "q"]
    given = [(order, name) for order, name, _ in found]
    whole, short = ([(o, n) for o in orders for n in names] for orders in ALLOWED)
    if given not in (whole, short):
        raise ValueError(
            "it needs q, qd, qdd and qddd, or q and qd, of the same joints, in order"
        )
    numbers = np.array([[float(entry) for entry in row] for row in rows])
    return {
        **_of_rows(numbers, orders=len(given) // max(len(names), 1)),
        "joint_names": tuple(names),
        "units": tuple(units),
    }


def _of_rows(rows: Array, orders: int = len(ORDERS)) -> dict[str, Any]:
    """Return polynomials through rows of time, q, qd, qdd and qddd, or q and qd."""
    if rows.ndim != 2 or rows.dtype.kind != "f" or rows.shape[1] % orders != 1:
        raise ValueError(
            f"rows of 1 + {orders} n numbers are needed, and it holds {rows.dtype} of "
            f"shape {rows.shape}"
        )
    time, parts = rows[:, 0], np.split(rows[:, 1:], orders, axis=1)
    if len(rows) < 2 or not np.isfinite(rows).all():
        raise ValueError("there must be two rows or more of finite numbers")
    h = np.diff(time)
    if not (h >= np.finfo(np.float64).tiny).all():  # 1 / h is finite
        raise ValueError("its times do not ascend")
    law = np.zeros((len(h), POWERS))
    law[:, 1] = 1.0 / h
    is_whole = orders == len(ORDERS)
    return {
        "times": time - time[0],
        "law": law,
        "curve": hermite_coefficients(h, np.stack(parts[:3], axis=1))
        if is_whole
        else cubic_coefficients(h, *parts),
        "piece": np.arange(len(h)),
        "joint_names": (),
    }
