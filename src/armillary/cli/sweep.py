"""`armillary sweep`: questions asked of millions of rows, into files, resumable."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.cluster import executor_at
from armillary.cli.collision_check import collision_check
from armillary.cli.input import add_file, open_cell
from armillary.cli.options import (
    add_axes,
    add_frame,
    add_json,
    add_margin,
    add_relative_to,
    add_state,
    chosen_axes,
    chosen_frame,
    chosen_names,
    chosen_state,
    whole_number,
)
from armillary.cli.sweep_samples import (
    add_samples,
    chosen_samples,
    limits_of,
    option_of,
    ranges_of_text,
)
from armillary.errors import ShapeError, printable, unknown
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reach_bound import reach_of
from armillary.kinematics.kernels import selection_of
from armillary.kinematics.state import State
from armillary.model.mount import WORLD
from armillary.sweeps.fields import rows
from armillary.sweeps.reductions import Count, Reduction, Voxels
from armillary.sweeps.result import SweepResult
from armillary.sweeps.samples import Grid, Samples
from armillary.sweeps.sweep import sweep

Array = npt.NDArray[np.float64]
Box = tuple[Array, Array]

ASKS: Final = "fk", "ik", "collision", "clearance", "q"
FRAMED: Final = "fk", "ik"
# Which questions an option is of, and what it is where nobody gives it.
OF: Final[Mapping[str, tuple[tuple[str, ...], Any]]] = {
    "frame": (FRAMED, None),
    "relative_to": (FRAMED, WORLD),
    "dtype": (("fk",), "float64"),
    "margin": (("collision",), 0.0),
    "avoid": (("ik",), None),
    "position": (("ik",), "xyz"),
    "rotation": (("ik",), "xyz"),
    "axes": (("ik",), "target"),
    "voxels": (FRAMED, None),
}
DECIMALS: Final = 9
DESCRIPTION = """\
Ask questions of many rows, on all processors or on a Dask cluster, and write what comes
out: a Zarr group of arrays, an NPY file of one array, or with --voxels an NPZ file of
counts. Questions: fk, the pose of a frame; collision, whether links touch; clearance,
their least distance; q, the joint positions themselves; or ik, which takes targets. The
same command continues what was interrupted. All numbers are in SI units.
"""


class Request(NamedTuple):
    """What a sweep is to do: questions, rows, and what replaces the results."""

    question: Any
    samples: Samples
    reductions: Mapping[str, Reduction] | None


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "sweep", help="poses, collisions or inverse kinematics of millions of rows",
        description=DESCRIPTION,
    )  # fmt: skip
    add_file(parser)
    parser.add_argument(
        "--ask",
        metavar="A,B,...",
        required=True,
        type=chosen_names,
        help=f"what to compute: {', '.join(ASKS)}",
    )
    add_samples(parser)
    add_frame(parser)
    add_relative_to(parser)
    add_axes(parser)
    parser.add_argument(
        "--avoid",
        metavar="M",
        type=float,
        help="only answers of ik where links are farther apart than this [m]",
    )
    add_margin(parser)
    parser.add_argument(
        "--dtype",
        choices=["float64", "float32"],
        default="float64",
        help="of the poses of fk",
    )
    parser.add_argument(
        "--voxels",
        metavar="SIZE",
        type=float,
        help="keep how many positions are in each cube of this edge [m], not the rows",
    )
    parser.add_argument(
        "--box",
        metavar="A:B,A:B,A:B",
        help="the x, y and z that --voxels fill [m]; else all that can be reached",
    )
    add_state(parser)
    _add_work(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def _add_work(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where results go and who computes them."""
    parser.add_argument(
        "--out",
        metavar="PATH",
        required=True,
        help="the folder of a Zarr group, or a file .npy; with --voxels .npz",
    )
    parser.add_argument(
        "--chunk",
        metavar="N",
        type=whole_number(1),
        help="rows that one worker computes at once; else up to a million",
    )
    parser.add_argument(
        "--no-resume",
        dest="resume",
        action="store_false",
        help="do not continue what is there; the path must be free",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="compute on the Dask cluster of this scheduler, tcp://host:8786",
    )


def run(options: argparse.Namespace) -> int:
    """Sweep and print a summary."""
    _check(options)
    cell = open_cell(options)
    request = _request(cell, chosen_state(cell, options), options)
    with executor_at(options.dask) as executor:
        began = time.perf_counter()
        try:
            found = sweep(
                request.question,
                request.samples,
                options.out,
                reduce=request.reductions,
                executor=executor,
                chunk=options.chunk,
                resume=options.resume,
            )
        except KeyboardInterrupt:
            if not options.out.endswith(".npy"):
                print("interrupted; the same command continues", file=sys.stderr)
            raise
        seconds = time.perf_counter() - began
    if options.json:
        print(json.dumps(_object(cell, found, request, seconds)))
    else:
        for line in _lines(found, request, seconds, options.out):
            print(line)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse what does not go together.

    Raises:
        UnknownName: There is no such question.
        ShapeError: It says what does not go together.
    """
    asked = options.ask
    for name in asked:
        if name not in ASKS:
            raise unknown("question", name, ASKS)
    if not asked or len(set(asked)) < len(asked):
        raise ShapeError("--ask names each question once, at least one.")
    if "ik" in asked and len(asked) > 1:
        raise ShapeError(
            "--ask ik takes targets, all others joint positions: ask it alone."
        )
    for name, (questions, default) in OF.items():
        if getattr(options, name) != default and not set(questions) & set(asked):
            asks = " or ".join(questions)
            raise ShapeError(f"{option_of(name)} is of --ask {asks}.")
    if options.voxels is None and options.box is not None:
        raise ShapeError("--box is what --voxels fill: add --voxels SIZE.")
    if options.voxels is not None and not 0.0 < options.voxels < np.inf:
        raise ShapeError(
            f"--voxels is {options.voxels:g}; it must be a length above 0."
        )
    if options.voxels is not None and not set(asked) <= {"fk", "ik", "collision"}:
        raise ShapeError("--voxels counts rows of fk, collision or ik; nothing else.")


# what is asked


def _request(cell: Cell, state: State, options: argparse.Namespace) -> Request:
    if options.ask == ["ik"]:
        solver = _solver(cell, state, options)
        samples = chosen_samples(cell, state, options, is_ik=True)
        return Request(solver, samples, _reached(solver, samples, options))
    samples = chosen_samples(cell, state, options, is_ik=False)
    check = partial(collision_check, cell, state, options.margin)
    frame = chosen_frame(cell, options) if "fk" in options.ask else ""
    make: dict[str, Any] = {
        "fk": lambda: cell.fk(
            frame,
            relative_to=options.relative_to,
            state=state,
            dtype=np.dtype(options.dtype),
        ),
        "collision": check,
        "clearance": lambda: check().clearance,
        "q": lambda: rows,
    }
    names = {"fk": "pose", "collision": "touching"}
    question = {names.get(each, each): make[each]() for each in options.ask}
    return Request(question, samples, _visited(cell, state, samples, frame, options))


def _solver(cell: Cell, state: State, options: argparse.Namespace) -> InverseKinematics:
    avoid = None
    if options.avoid is not None:
        avoid = collision_check(cell, state, options.avoid)
    device = cell.device(
        joints=options.joints,
        base=options.relative_to,
        ends=chosen_frame(cell, options),
        state=state,
    )
    return device.ik(
        position=chosen_axes(options.position),
        rotation=chosen_axes(options.rotation),
        axes=options.axes,
        avoid=avoid,
    )


def _reached(
    solver: InverseKinematics, samples: Samples, options: argparse.Namespace
) -> dict[str, Reduction] | None:
    """Return what counts the targets that are reached."""
    if options.voxels is None:
        return None
    if options.box is None and isinstance(samples, Grid):
        # Every point is in the middle of a voxel if these are as far apart.
        lower, upper = limits_of(samples)
        box = lower - 0.5 * options.voxels, upper + 0.5 * options.voxels
    else:
        problem = solver.numeric.problem
        goal = problem.goals[0]
        reach = partial(
            reach_of,
            problem.tree,
            goal.frame,
            goal.relative_to,
            problem.selection,
            problem.limits,
        )
        box = _box(options, reach)
    voxels = _voxels(box, options.voxels, of="samples", where="success")
    return {"": voxels, "success": Count(of="success")}


def _visited(
    cell: Cell,
    state: State,
    samples: Samples,
    frame: str,
    options: argparse.Namespace,
) -> dict[str, Reduction] | None:
    """Return what counts the positions of a frame, and those where links touch."""
    if options.voxels is None:
        return None
    end, base = map(cell.workcell.frame, (frame, options.relative_to))
    selection = selection_of(cell.workcell, None, state, [end, base])
    limits = limits_of(samples)
    box = _box(options, partial(reach_of, state.tree, end, base, selection, limits))
    found: dict[str, Reduction] = {"": _voxels(box, options.voxels)}
    if "collision" in options.ask:
        found["touching"] = _voxels(box, options.voxels, where="touching")
    return found


def _voxels(box: Box, size: float, **options: Any) -> Voxels:
    lower, upper = (tuple(each.tolist()) for each in box)
    return Voxels(lower=lower, upper=upper, size=size, **options)


def _box(options: argparse.Namespace, reach: Callable[[], tuple[Array, float]]) -> Box:
    """Return the box of `--box`, or one around all that can be reached.

    Raises:
        ShapeError: It is not a box, or nothing is known of the reach.
    """
    size = options.voxels
    if options.box is None:
        centre, radius = reach()
        if not np.isfinite(radius):
            raise ShapeError(
                "It is not known how far the frame can reach: say which box the voxels "
                "fill, as in --box -1:1,-1:1,0:2."
            )
        # At multiples of the size, so that maps of several frames fit together.
        lower, upper = np.floor((centre - radius) / size), (centre + radius) / size
        return (lower * size).round(DECIMALS), (np.ceil(upper) * size).round(DECIMALS)
    ranges = ranges_of_text(options.box, "--box")
    if [len(each) for each in ranges] != [2, 2, 2]:
        raise ShapeError(
            f"--box {options.box}: a box is x, y and z from A to B, as in "
            "-1:1,-1:1,0:2."
        )
    lower, upper = np.array(ranges).T
    return lower, upper


# what is printed


def _shares(found: SweepResult, request: Request) -> Iterator[tuple[str, int]]:
    """Yield in how many rows something is true: solved, touching."""
    for name in ("success", "touching"):
        if request.reductions is None and name in found:
            yield name, int(np.count_nonzero(found[name]))
        elif f"{name}_count" in found:
            yield name, int(found[f"{name}_count"].sum())


def _lines(
    found: SweepResult, request: Request, seconds: float, path: str
) -> Iterator[str]:
    yield f"{found.rows:,} rows in {printable(path)}: {', '.join(found)}"
    if found.computed:
        rate = f"{found.computed / seconds:,.0f} a second"
        yield f"{found.computed:,} computed now in {seconds:.3g} s, {rate}"
    else:
        yield "0 computed now: all rows were already there"
    for name, count in _shares(found, request):
        yield f"{name}: {count:,} rows, {count / found.rows:.2%}"
    voxels = (request.reductions or {}).get("")
    if isinstance(voxels, Voxels):
        counts = found["count"]
        corner = " ".join(f"{each:g}" for each in voxels.lower)
        yield (
            f"{np.count_nonzero(counts):,} of {counts.size:,} voxels of "
            f"{voxels.size:g} m, {' x '.join(map(str, counts.shape))} from {corner}"
        )
        yield f"{counts.sum():,} rows in them"


def _object(
    cell: Cell, found: SweepResult, request: Request, seconds: float
) -> dict[str, Any]:
    """Return what is printed as JSON."""
    voxels = (request.reductions or {}).get("")
    about: dict[str, Any] = {
        "cell": cell.name,
        "path": str(found.path),
        "results": list(found),
        "rows": found.rows,
        "computed": found.computed,
        "seconds": seconds,
        **dict(_shares(found, request)),
    }
    if isinstance(voxels, Voxels):
        counts = found["count"]
        about["voxels"] = {
            "lower": voxels.lower,
            "size": voxels.size,
            "shape": counts.shape,
            "reached": int(np.count_nonzero(counts)),
            "rows": int(counts.sum()),
        }
    return about
