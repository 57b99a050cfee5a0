"""The rows of `armillary sweep`: random joint positions, grids, files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.options import SEED, WITHIN, chosen_axes, names_of
from armillary.cli.targets import RPY, pose_of_text
from armillary.cli.vectors import chosen_factors
from armillary.cli.verb import OneOf, option
from armillary.errors import ShapeError, quote
from armillary.kinematics.state import State
from armillary.sweeps.samples import GridSamples, Samples, as_samples, box_of, grid

__all__ = [
    "SAMPLES",
    "chosen_samples",
    "limits_of",
    "option_of",
    "ranges_of_text",
]

Array = npt.NDArray[np.float64]
Limits = tuple[Array, Array]

AXES: Final = "xyz"
# What the options that choose rows take, beside them.
WITH: Final = {
    "samples": ("seed", "within", "joints"),
    "grid": ("joints", "rpy", "degrees"),
    "q_file": (),
    "targets": ("joints",),
}


def _count(text: str) -> int:
    """Return a number of rows, which may be written as 1e6."""
    try:
        number = int(text) if text.isdecimal() else float(text)
        if number >= 1 and number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"{quote(text)} is not an integer of at least 1")


SAMPLES: Final = (
    OneOf(
        (
            option(
                "--samples N",
                "that many random joint positions, uniform within the limits",
                type=_count,
            ),
            option(
                "--grid A:B:N,...",
                "N values from A to B: of x, y and z [m] for ik, else of each "
                "joint; one number is one value",
                has_numbers=True,
            ),
            option(
                "--q-file FILE",
                "joint positions (n, joints), NPY or Zarr",
                is_input=True,
            ),
            option(
                "--targets FILE",
                "targets of ik, NPY or Zarr: (n, 4, 4), or (n, 7), qw,qx,qy,qz,x,y,z",
                is_input=True,
            ),
        ),
        required=True,
    ),
    SEED,
    WITHIN,
    option(
        "--joints A,B,...",
        "which joints differ from row to row, or for ik may move; the others are "
        "as in the state",
        type=names_of,
    ),
    option(
        "--rpy R,P,Y",
        "a rotation [rad] of the frame at every point of --grid; may be repeated",
        action="append",
        has_numbers=True,
    ),
)


def chosen_samples(
    cell: Cell, state: State, options: argparse.Namespace, *, is_ik: bool
) -> Samples:
    """Return the rows that were asked for.

    Raises:
        ArmillaryError: They cannot be made, or do not go with another option.
    """
    _check(options, is_ik)
    if options.samples is not None:
        return _random(cell, state, options)
    if options.grid is not None:
        return _poses(options) if is_ik else _joint_grid(cell, state, options)
    return as_samples(options.targets if is_ik else options.q_file)


def limits_of(samples: Samples) -> Limits:
    """Return the least and greatest joint positions of rows; of files infinite ones."""
    box = box_of(samples)
    if box is not None:
        return np.array(box.lower), np.array(box.upper)
    if isinstance(samples, GridSamples):
        return (
            np.array([min(axis) for axis in samples.axes]),
            np.array([max(axis) for axis in samples.axes]),
        )
    edge = np.full(samples.shape, np.inf)
    return -edge, edge


def ranges_of_text(text: str, option: str) -> list[Sequence[float]]:
    """Return the numbers of texts such as `0:1:5,3`, which colons separate.

    Raises:
        ShapeError: A part of it is not a number.
    """
    return [
        [_number(number, option) for number in part.split(":")]
        for part in text.split(",")
    ]


def _check(options: argparse.Namespace, is_ik: bool) -> None:
    """Refuse what does not go together.

    Raises:
        ShapeError: It says what.
    """
    source = next(each for each in WITH if getattr(options, each) is not None)
    if is_ik and source not in {"grid", "targets"}:
        raise ShapeError(
            f"ik takes poses, and {option_of(source)} joint positions: use --grid with "
            "--rpy, or --targets."
        )
    if not is_ik and source == "targets":
        raise ShapeError("--targets are of ik; joint positions are those of --q-file.")
    if not is_ik and options.rpy is not None:
        raise ShapeError("--rpy is a rotation at the points of a grid for ik.")
    allowed = (*WITH[source], *(["degrees"] if options.q is not None else []))
    for each in sorted({name for names in WITH.values() for name in names}):
        if getattr(options, each) and each not in allowed:
            raise ShapeError(
                f"{option_of(each)} has no meaning with {option_of(source)}."
            )


def option_of(name: str) -> str:
    """Return an option as it is written, from its name in the parsed options."""
    return f"--{name.replace('_', '-')}"


def _random(cell: Cell, state: State, options: argparse.Namespace) -> Samples:
    within: dict[str, tuple[float, float]] = {
        cell.joint_names[cell.joint(name)]: ends for name, ends in options.within or ()
    }
    if options.joints is not None:
        within = {**_fixed(cell, state, options.joints, within), **within}
    return cell.samples(options.samples, seed=options.seed or 0, within=within)


def _fixed(
    cell: Cell, state: State, joints: Sequence[str], within: Mapping[str, Any]
) -> dict[str, tuple[float, float]]:
    """Return ranges of no length for the joints that are not named."""
    named = {cell.joint(name) for name in joints}
    fixed = {
        name: (float(q), float(q))
        for k, (name, q) in enumerate(zip(cell.joint_names, state.q, strict=True))
        if k not in named
    }
    for name in within:
        if name in fixed:
            raise ShapeError(f"--within has {quote(name)}, which --joints has not.")
    return fixed


def _joint_grid(cell: Cell, state: State, options: argparse.Namespace) -> Samples:
    names = options.joints or cell.joint_names
    axes = list(_axes(options.grid))
    if len(axes) != len(names):
        raise ShapeError(
            f"--grid has {len(axes)} axes; {len(names)} joints differ: "
            f"{', '.join(names)}. Name fewer with --joints."
        )
    factors = chosen_factors(cell.workcell, names, options)
    values: list[Any] = [[each] for each in state.q.tolist()]
    for name, axis, factor in zip(names, axes, factors, strict=True):
        values[cell.joint(name)] = axis * factor
    return grid(values)


def _poses(options: argparse.Namespace) -> Samples:
    axes = list(_axes(options.grid))
    if len(axes) != len(AXES):
        raise ShapeError(f"--grid has {len(axes)} axes; for ik they are x, y and z.")
    if options.rpy is None:
        if chosen_axes(options.rotation):
            raise ShapeError(
                "A grid of points has no rotations: add --rpy R,P,Y, which may be "
                "repeated, or --rotation none."
            )
        return grid(axes)
    return grid(axes, rotations=[_rotation(each, options) for each in options.rpy])


def _rotation(text: str, options: argparse.Namespace) -> Array:
    numbers = ranges_of_text(text, "--rpy")
    if len(numbers) != 3 or any(len(each) != 1 for each in numbers):
        raise ShapeError(f"--rpy {text}: a rotation is {','.join(RPY[3:])}.")
    return pose_of_text(f"0,0,0,{text}", degrees=options.degrees)[:3, :3]


def _axes(text: str) -> Iterator[Array]:
    for numbers in ranges_of_text(text, "--grid"):
        first, *more = numbers
        last, count = more if len(more) == 2 else (first, 1)
        if len(more) not in {0, 2} or count < 1 or count != int(count):
            shown = ":".join(f"{each:g}" for each in numbers)
            raise ShapeError(
                f"--grid: {quote(shown)} does not describe an axis; A:B:N is N values "
                "from A to B, as in -1:1:21."
            )
        yield np.linspace(first, last, int(count))


def _number(text: str, option: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise ShapeError(f"{option}: {quote(text)} is not a finite number.")
    return number
