"""`armillary sweep`: questions asked of millions of rows, into files, resumable."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import (
    AXES,
    EXACT,
    FRAME,
    JSON,
    MARGIN,
    RELATIVE_TO,
    STATE,
    avoid,
    chosen_frame,
    chosen_solver,
    chosen_state,
    collision_check,
    names_of,
)
from armillary.cli.sweep_samples import (
    SAMPLES,
    chosen_samples,
    limits_of,
    option_of,
    ranges_of_text,
)
from armillary.cli.verb import option, verb, whole_number
from armillary.errors import ShapeError, SweepError, printable, quote, unknown
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reach_bound import reach_of
from armillary.kinematics.kernels import selection_of
from armillary.kinematics.state import State
from armillary.sweeps.fields import rows
from armillary.sweeps.reductions import Count, Reduction, Voxels
from armillary.sweeps.result import SweepResult
from armillary.sweeps.samples import GridSamples, Samples
from armillary.sweeps.sweep import sweep

Array = npt.NDArray[np.float64]
Box = tuple[Array, Array]

ASKS: Final = "fk", "ik", "collision", "clearance", "q"
FRAMED: Final = "fk", "ik"
# Which questions an option is of.
OF: Final = {
    "frame": FRAMED,
    "relative_to": FRAMED,
    "dtype": ("fk",),
    "margin": ("collision",),
    "exact": ("ik", "collision", "clearance"),
    "avoid": ("ik",),
    "position": ("ik",),
    "rotation": ("ik",),
    "axes": ("ik",),
    "voxels": FRAMED,
}
DECIMALS: Final = 9
CONNECTING: Final = 5.0  # [s] until a scheduler answers
CLOSING: Final = 0.5  # [s]
DESCRIPTION = """\
Ask questions of many rows, on all processors or on a Dask cluster, and write what comes
out: a Zarr group of arrays, an NPY file of one array, or with --voxels an NPZ file of
counts. Questions: fk, the pose of a frame; collision, whether links touch; clearance,
their least distance; q, the joint positions themselves; or ik, which takes targets. The
same command continues what was interrupted. All numbers are in SI units.
"""


class SweepRequest(NamedTuple):
    """What a sweep is to do: questions, rows, and what replaces the results."""

    question: Any
    samples: Samples
    reductions: Mapping[str, Reduction] | None


@verb(
    "sweep",
    (
        *FILE,
        option(
            "--ask A,B,...",
            f"what to compute: {', '.join(ASKS)}",
            required=True,
            type=names_of,
        ),
        *SAMPLES,
        FRAME,
        RELATIVE_TO,
        *AXES,
        avoid("only answers of ik where links are farther apart than this [m]"),
        EXACT,
        MARGIN,
        option(
            "--dtype",
            "of the poses of fk",
            choices=["float64", "float32"],
            default="float64",
        ),
        option(
            "--voxels SIZE",
            "keep how many positions are in each cube of this edge [m], not the rows",
            type=float,
        ),
        option(
            "--box A:B,A:B,A:B",
            "the x, y and z that --voxels fill [m]; else all that can be reached",
            has_numbers=True,
        ),
        *STATE,
        option(
            "--out PATH",
            "the folder of a Zarr group, or a file .npy; with --voxels .npz",
            required=True,
        ),
        option(
            "--chunk N",
            "rows that one worker computes at once; else up to a million",
            type=whole_number(1),
        ),
        option(
            "--no-resume",
            "do not continue what is there; the path must be free",
            dest="resume",
            action="store_false",
        ),
        option(
            "--dask ADDRESS",
            "compute on the Dask cluster of this scheduler, tcp://host:8786",
        ),
        JSON,
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Sweep and print a summary."""
    _check(options)
    cell = open_cell(options)
    request = _request(cell, chosen_state(cell, options), options)
    with executor_at(options.dask) as executor:
        began = time.perf_counter()
        try:
            result = sweep(
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
        print(json.dumps(_object(cell, result, request, seconds)))
    else:
        for line in _lines(result, request, seconds, options.out):
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
    defaults = {each.dest: each.default for each in run.options}
    for name, questions in OF.items():
        is_chosen = getattr(options, name) != defaults[name]
        if is_chosen and not set(questions) & set(asked):
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


def _request(cell: Cell, state: State, options: argparse.Namespace) -> SweepRequest:
    if options.ask == ["ik"]:
        frame = chosen_frame(cell, options)
        _, solver, _ = chosen_solver(cell, state, frame, options)
        samples = chosen_samples(cell, state, options, is_ik=True)
        return SweepRequest(solver, samples, _reached(solver, samples, options))
    samples = chosen_samples(cell, state, options, is_ik=False)
    # Checks and kernels are made only where they are asked for.
    check = partial(collision_check, cell, state, options.margin, exact=options.exact)
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
    return SweepRequest(
        question, samples, _visited(cell, state, samples, frame, options)
    )


def _reached(
    solver: InverseKinematics, samples: Samples, options: argparse.Namespace
) -> dict[str, Reduction] | None:
    """Return what counts the targets that are reached."""
    if options.voxels is None:
        return None
    if options.box is None and isinstance(samples, GridSamples):
        # Every point is in the middle of a voxel if these are as far apart.
        lower, upper = limits_of(samples)
        box = lower - 0.5 * options.voxels, upper + 0.5 * options.voxels
    else:
        # A ball around all points that the frame can reach, from lengths of links and
        # limits.
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
    # The same ball for positions of the frame, with the ranges of the samples as
    # limits.
    selection = selection_of(cell.workcell, None, state, [end, base])
    limits = limits_of(samples)
    box = _box(options, partial(reach_of, state.tree, end, base, selection, limits))
    reductions: dict[str, Reduction] = {"": _voxels(box, options.voxels)}
    if "collision" in options.ask:
        reductions["touching"] = _voxels(box, options.voxels, where="touching")
    return reductions


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


def _shares(result: SweepResult, request: SweepRequest) -> Iterator[tuple[str, int]]:
    """Yield in how many rows something is true: solved, touching."""
    for name in ("success", "touching"):
        if request.reductions is None and name in result:
            yield name, int(np.count_nonzero(result[name]))
        elif f"{name}_count" in result:
            yield name, int(result[f"{name}_count"].sum())


def _lines(
    result: SweepResult, request: SweepRequest, seconds: float, path: str
) -> Iterator[str]:
    yield f"{result.rows:,} rows in {printable(path)}: {', '.join(result)}"
    if result.computed:
        rate = f"{result.computed / seconds:,.0f} a second"
        yield f"{result.computed:,} computed now in {seconds:.3g} s, {rate}"
    else:
        yield "0 computed now: all rows were already there"
    for name, count in _shares(result, request):
        yield f"{name}: {count:,} rows, {count / result.rows:.2%}"
    voxels = (request.reductions or {}).get("")
    if isinstance(voxels, Voxels):
        counts = result["count"]
        corner = " ".join(f"{each:g}" for each in voxels.lower)
        yield (
            f"{np.count_nonzero(counts):,} of {counts.size:,} voxels of "
            f"{voxels.size:g} m, {' x '.join(map(str, counts.shape))} from {corner}"
        )
        yield f"{counts.sum():,} rows in them"


def _object(
    cell: Cell, result: SweepResult, request: SweepRequest, seconds: float
) -> dict[str, Any]:
    """Return what is printed as JSON."""
    voxels = (request.reductions or {}).get("")
    about: dict[str, Any] = {
        "cell": cell.name,
        "path": str(result.path),
        "results": list(result),
        "rows": result.rows,
        "computed": result.computed,
        "seconds": seconds,
        **dict(_shares(result, request)),
    }
    if isinstance(voxels, Voxels):
        counts = result["count"]
        about["voxels"] = {
            "lower": voxels.lower,
            "size": voxels.size,
            "shape": counts.shape,
            "reached": int(np.count_nonzero(counts)),
            "rows": int(counts.sum()),
        }
    return about


# where it is computed


@contextmanager
def executor_at(address: str | None) -> Generator[Executor | None]:
    """Give the executor of the cluster of a scheduler; None without an address.

    Raises:
        SweepError: Dask is not installed, or no scheduler answers.
    """
    if address is None:
        yield None
        return
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise SweepError(
            "--dask needs Dask: pip install 'armillary[sweep]'."
        ) from error
    # What it logs when a scheduler is lost, our errors say.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        asyncio.run(_check_answer(distributed, address))
        client = distributed.Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise SweepError(
            f"No Dask scheduler answers at {quote(address)}: {printable(str(error))}. "
            "Start one with 'dask scheduler' and workers with 'dask worker ADDRESS', "
            "or name another address, tcp://host:8786."
        ) from error
    try:
        if not client.scheduler_info()["workers"]:
            print(
                f"warning: the scheduler at {printable(address)} has no workers yet; "
                f"waiting for 'dask worker {printable(address)}'",
                file=sys.stderr,
            )
        yield client.get_executor()
    finally:
        client.close(timeout=CLOSING)


async def _check_answer(distributed: Any, address: str) -> None:
    """Raise OSError if nobody answers; a client would take long to give up."""
    comm = await distributed.comm.connect(address, timeout=CONNECTING)
    await comm.close()
