"""Multi-start search as one native loop: many problems, a lane each, never waiting.

The loop itself is `search.ll`; here its holes are filled, and its job is put together.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel.block import Shape
from armillary.kernel.emit import emit_step
from armillary.trace import Program

Array = npt.NDArray[np.float64]

PACK = 8
SOLVED, UNSOLVED, INVALID = 0, 1, 2

Answers = tuple[Array, Array, npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Table:
    """Known answers, sorted by the grid cell that their problem falls into.

    Attributes:
        features: The problems, scaled for comparison, in packs (k, m, 8), float32.
        starts: Their answers, shape (8 k, n).
        offsets: The pack at which each cell starts, shape (cells + 1,).
        grid: Origin (3), inverse side, greatest cell number by axis (3), then the
            number of cells along the second and third axis.
        axes: Which three parameters of a problem place it in the grid.
        scales: Factors of the parameters in features, shape (m,).
    """

    features: npt.NDArray[np.float32]
    starts: Array
    offsets: npt.NDArray[np.int64]
    grid: Array
    axes: npt.NDArray[np.int64]
    scales: Array


def make_table(
    problems: Array, answers: Array, axes: tuple[int, int, int], scales: Array, per: int
) -> Table:
    """Sort known answers into a grid with about `per` of them in a cell.

    Args:
        problems: Shape (k, m).
        answers: Shape (k, n).
        axes: Which parameters place a problem.
        scales: How much each parameter counts in comparisons, shape (m,).
        per: Answers in a cell, on average over the box that holds all.
    """
    places = problems[:, axes]
    low, high = places.min(axis=0), places.max(axis=0)
    span = np.maximum(high - low, 1e-9 + 1e-3 * (high - low).max())
    side = float((span.prod() * per / len(problems)) ** (1 / 3))
    sizes = np.maximum(1, np.ceil(span / side)).astype(np.int64)
    cells = np.clip(((places - low) / side).astype(np.int64), 0, sizes - 1)
    numbers = (cells[:, 0] * sizes[1] + cells[:, 1]) * sizes[2] + cells[:, 2]
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers, minlength=int(sizes.prod()))
    packs = -(-counts // PACK)
    offsets = np.concatenate([[0], np.cumsum(packs)])
    # Entry i of cell c goes to place i of the packs of c; what is left over is at NaN.
    within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    place = np.repeat(offsets[:-1] * PACK, counts) + within
    features = np.full((int(offsets[-1]) * PACK, problems.shape[1]), np.nan, np.float32)
    features[place] = (problems * scales)[order]
    starts = np.full((len(features), answers.shape[1]), np.nan)
    starts[place] = answers[order]
    packed = features.reshape(-1, PACK, problems.shape[1]).swapaxes(1, 2)
    grid = np.array([*low, 1.0 / side, *(sizes - 1), sizes[1], sizes[2]], np.float64)
    return Table(
        features=np.ascontiguousarray(packed),
        starts=starts,
        offsets=offsets.astype(np.int64),
        grid=grid,
        axes=np.array(axes, np.int64),
        scales=np.ascontiguousarray(scales, dtype=np.float64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """When a start is given up, and when a problem is.

    Attributes:
        steps: Most steps from one start.
        stale_from: From this step on a start must get nearer.
        stale_factor: Error over the error before, above which it is not.
        stale_floor: Error below which it is left alone.
        patient_after: Starts after which none is given up early.
        patient_steps: Most steps from those.
        starts: Most starts for a problem.
        table_starts: How many of them come from the table.
    """

    steps: int = 12
    stale_from: int = 4
    stale_factor: float = 0.6
    stale_floor: float = 1e-6
    patient_after: int = 32
    patient_steps: int = 40
    starts: int = 200
    table_starts: int = 24

    @property
    def numbers(self) -> list[int]:
        """Return the whole numbers in the order in which the loop reads them."""
        return [
            self.steps,
            self.stale_from,
            self.patient_after,
            self.patient_steps,
            self.starts,
            self.table_starts,
        ]


class Search:
    """A compiled search for the unknowns of a step that make its errors small."""

    def __init__(self, step: Program) -> None:
        """Compile the loop around `step`.

        Args:
            step: Inputs unknowns (n,) and parameters (m,); outputs the next unknowns
                (n,) and the errors (k,) of the present ones, none negative.
        """
        self.step = step
        self.n, self.m = (port.size for port in step.inputs)
        self.k = step.outputs[1].size
        self._code, self.shape = _compiled(step)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._search = prototype(self._code.address("search"))

    def __call__(
        self,
        problems: Array,
        *,
        table: Table,
        tolerances: Array,
        lower: Array,
        upper: Array,
        patience: Patience,
        seeds: Array | None = None,
        salt: int = 0,
    ) -> Answers:
        """Solve problems, shape (count, m).

        Args:
            problems: Their parameters.
            table: Where to start.
            tolerances: Largest error of each kind, shape (k,).
            lower: Least start at random, shape (n,).
            upper: Greatest start at random, shape (n,).
            patience: When to give up.
            seeds: The first start of each problem, shape (count, n).
            salt: Another number gives other random starts.

        Returns:
            Unknowns (count, n), errors (count, k), and how it ended (count, 3): the
            status, steps and starts.
        """
        count = len(problems)
        q = np.full((count, self.n), np.nan)
        options = [salt, int(count == 1), self.shape.lanes]
        arrays = {1: problems, 2: seeds, 3: q, 10: tolerances, 11: lower}
        arrays[12] = upper - lower
        errors, info = self._run(count, arrays, table, patience, options)
        return q, errors, info

    def chain(
        self,
        problems: Array,
        *,
        table: Table,
        tolerances: Array,
        lower: Array,
        upper: Array,
        patience: Patience,
        first: Array | None = None,
    ) -> Answers:
        """Solve problems one after the other, each from the answer before.

        Args:
            problems: Their parameters, shape (count, m).
            table: Where to start when that does not lead there.
            tolerances: As for a call.
            lower: As for a call.
            upper: As for a call.
            patience: As for a call.
            first: Where to start the first, shape (n,).
        """
        count = len(problems)
        # Answer i - 1 lies where the seed of problem i is looked for.
        q = np.full((count + 1, self.n), np.nan)
        q[0] = 0.5 * (lower + upper) if first is None else first
        arrays = {1: problems, 2: q, 3: q[1:], 10: tolerances, 11: lower}
        arrays[12] = upper - lower
        errors, info = self._run(count, arrays, table, patience, [0, 0, 1])
        return q[1:], errors, info

    def _run(
        self,
        count: int,
        arrays: Mapping[int, npt.NDArray[Any] | None],
        table: Table,
        patience: Patience,
        options: list[int],
    ) -> tuple[Array, npt.NDArray[np.int64]]:
        """Put a job together and run it; returns errors and endings."""
        errors = np.full((count, self.k), np.nan)
        info = np.zeros((count, 3), np.int64)
        numbers = np.array([*patience.numbers, *options], np.int64)
        reals = np.array([patience.stale_factor, patience.stale_floor])
        words: dict[int, npt.NDArray[Any] | None] = {
            **arrays,
            4: errors,
            5: info,
            6: table.features,
            7: table.starts,
            8: table.offsets,
            9: table.grid,
            13: numbers,
            14: reals,
            15: table.scales,
            16: table.axes,
        }
        job = np.zeros(17, np.int64)
        job[0] = count
        for word, array in words.items():
            job[word] = 0 if array is None else array.ctypes.data
        self._search(job.ctypes.data)
        return errors, info


def search_text(step: Program, shape: Shape) -> str:
    """Return the LLVM IR of a search."""
    n, m = (port.size for port in step.inputs)
    k, w = step.outputs[1].size, shape.lanes
    holes = {
        "LANES": w,
        "NBYTES": n * 8,
        "NW": n * w,
        "MW": m * w,
        "KW": k * w,
        "N": n,
        "M": m,
        "K": k,
    }
    text = files("armillary.kernel").joinpath("search.ll").read_text(encoding="utf-8")
    filled = re.sub(r"\b[A-Z]+\b", lambda hole: _filled(hole, holes), text)
    code = "\n".join(line.split(";")[0].rstrip() for line in filled.splitlines())
    return emit_step(step, shape) + "\n" + code


def _filled(hole: re.Match[str], holes: dict[str, int]) -> str:
    return str(holes.get(hole.group(), hole.group()))


def _compiled(step: Program) -> tuple[Any, Shape]:
    """Return the code of the loop around `step`, and the shape of its values."""
    from armillary.kernel import compiler, target  # they import LLVM

    machine, shape = target.host(), compiler.native_shape(64)
    text = search_text(step, shape)
    key = hashlib.sha256(f"{text}|{machine.identity}".encode()).hexdigest()
    return compiler.loaded(key, machine, lambda: text, compiler.level_of(step)), shape


@lru_cache(maxsize=64)
def shared_search(step: Program) -> Search:
    """Return the search around `step`, the same one for equal programs."""
    return Search(step)
