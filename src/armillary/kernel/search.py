"""Multi-start search as one native loop: many problems, a lane each, never waiting.

The loop itself is `search_code.py`; here its plan and calls are put together.
"""

from __future__ import annotations

import ctypes
import math
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary import forks
from armillary.kernel.binding import (
    address_of,
    arrays_are_as_expected,
    make_function,
    nothing,
)
from armillary.kernel.search_layout import CALL, SOLVED
from armillary.kernel.seed_table import SeedTable, levels_of, pairs_of
from armillary.kernel.threads import share
from armillary.trace import Program

Array = npt.NDArray[np.float64]

# A thread is woken for at least this many problems.
PROBLEMS_PER_THREAD = 256
CALL_WORDS = struct.Struct(f"{CALL.bytes // 8}q")


READ_CLOCK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)
)
MONOTONIC: int = getattr(time, "CLOCK_MONOTONIC", 0)


@lru_cache(maxsize=1)
def clock() -> tuple[int, Any]:
    """Return the address of a function like clock_gettime, and its owner."""
    try:
        # Machine code calls it while the global lock is released; a function of Python,
        # in its place, acquires the lock for each look at the clock.
        clock = ctypes.CDLL(None).clock_gettime
    except (AttributeError, OSError, TypeError):  # Windows has none
        clock = READ_CLOCK(_read_clock)
    return ctypes.cast(clock, ctypes.c_void_p).value or 0, clock


def _read_clock(_: int, parts: Any) -> int:
    parts[0], parts[1] = divmod(time.monotonic_ns(), 1_000_000_000)
    return 0


def deadline_of(seconds: float | None) -> int:
    """Return the deadline of a search that begins now [ns], 0 for never.

    seconds: How long it may take [s]; None or infinite for as long as it takes.
    """
    if seconds is None or seconds == math.inf:
        return 0
    return max(1, time.monotonic_ns() + round(seconds * 1e9))


def is_over(deadline: int) -> bool:
    """Return whether a deadline has passed."""
    return 0 < deadline <= time.monotonic_ns()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """When a start is given up, and when a problem is.

    Attributes:
        steps: Maximum number of iterations from one start.
        stale_from: Iterations after which a start is given up where its error falls
            too slowly.
        stale_factor: The error over that of the iteration before, above which it does.
        stale_floor: Errors below this may fall slowly.
        patient_after: Number of starts after which those that are slow go on.
        patient_steps: Maximum number of iterations from those.
        patient_change: The part of their error by which it changes at least in an
            iteration; if less, they are given up after `steps`.
        starts: Maximum number of starts for a problem.
        table_starts: How many of them come from the table of known answers.
    """

    steps: int = 12
    stale_from: int = 4
    stale_factor: float = 0.6
    stale_floor: float = 1e-6
    patient_after: int = 32
    patient_steps: int = 40
    patient_change: float = 1e-3
    starts: int = 200
    table_starts: int = 24

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the whole numbers in the order in which the loop reads them."""
        return (
            self.steps,
            self.stale_from,
            self.patient_after,
            self.patient_steps,
            self.starts,
            self.table_starts,
        )


class SearchPlan(msgspec.Struct, frozen=True, dict=True):
    """How to search, for any number of problems.

    Attributes:
        words: What the loop reads: numbers, and addresses of `parts`.
        parts: The arrays at those addresses.
        starts: Most starts for a problem.
        tolerances: Largest error of each kind, shape (k,).
        constants: The third input of the step; one zero where it has none.
    """

    words: npt.NDArray[np.int64]
    parts: tuple[npt.NDArray[Any], ...]
    starts: int
    tolerances: Array
    constants: Array

    @cached_property
    def address(self) -> int:
        """Return where the words are."""
        return address_of(self.words)


def make_plan(
    *,
    table: SeedTable,
    tolerances: Array,
    lower: Array,
    upper: Array,
    search_options: SearchOptions,
    random_seed: int = 0,
    constants: Array | None = None,
) -> SearchPlan:
    """Put together how to search.

    Args:
        table: Known answers, where searches start.
        tolerances: Largest error of each kind, shape (k,).
        lower: Least start at random, shape (n,).
        upper: Greatest start at random, shape (n,).
        search_options: When a start, or a problem, is given up.
        random_seed: Another number gives other random starts.
        constants: The third input of the step, if it has one.
    """
    entries = (table.features, table.starts, table.offsets, table.grid)
    placing = (table.columns, table.factors, table.axes)
    options = search_options
    reals = np.array(
        [options.stale_factor, options.stale_floor, options.patient_change]
    )
    ranges = (tolerances, lower, upper - lower)
    shared = np.zeros(1) if constants is None else constants
    # In the order of the fields of `search_layout.PLAN`.
    words = [
        *map(address_of, (*entries, *placing)),
        table.void,
        *map(address_of, ranges),
        random_seed,
        address_of(shared),
        *search_options.numbers,
        address_of(reals),
    ]
    parts = (*entries, *placing, *ranges, shared, reals)
    return SearchPlan(
        np.array(words, np.int64), parts, search_options.starts, tolerances, shared
    )


Arrays = tuple[Array, Array, npt.NDArray[np.int64]]


class SearchResult(NamedTuple):
    """What a search found.

    Attributes:
        unknowns: The answer of each problem, shape (count, n), or the nearest that was
            met where it is not solved.
        errors: The errors of these unknowns, shape (count, k).
        endings: The status, steps and starts of each, shape (count, 3).
        failures: The number of problems that are not solved.
    """

    unknowns: Array
    errors: Array
    endings: npt.NDArray[np.int64]
    failures: int

    def at(self, places: npt.NDArray[Any]) -> SearchResult:
        """Return what was found for some problems."""
        endings = self.endings[places]
        failures = int((endings[:, 0] != SOLVED).sum())
        return SearchResult(
            self.unknowns[places], self.errors[places], endings, failures
        )

    def take(self, places: npt.NDArray[np.int64], other: SearchResult) -> None:
        """Write over some problems what another search found for those, in order."""
        self.unknowns[places] = other.unknowns
        self.errors[places] = other.errors
        self.endings[places] = other.endings


class Search:
    """A compiled search for the unknowns of a step that make its errors small."""

    def __init__(
        self,
        step: Program,
        guard: Program,
        scales: tuple[float, ...],
        single: tuple[int, ...] | None = None,
    ) -> None:
        """Compile the loop around `step`.

        Args:
            step: Inputs unknowns (n,), parameters (m,) and, if it has a third, the
                constants of a plan; outputs the next unknowns (n,) and the errors (k,)
                of the present ones, none negative.
            guard: Input parameters (m,) or the first of them; output a number, above 0
                where they make sense.
            scales: Those of the tables that it is used with, shape (m,).
            single: The shape of the parameters that `single` takes.
        """
        self.step = step
        self.n, self.m = (port.size for port in step.inputs[:2])
        self.k = step.outputs[1].size
        self._code, self.lanes = _compiled(step, guard, scales, single)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p)
        self._search = prototype(self._code.address("search"))

    def __call__(
        self,
        problems: Array,
        plan: SearchPlan,
        *,
        seeds: Array | None = None,
        threads: int = 1,
        deadline: int = 0,
    ) -> SearchResult:
        """Solve problems.

        Args:
            problems: Their parameters, shape (count, m) or more of which the first m
                count, rows contiguous.
            plan: How to search.
            seeds: The first start of each problem, shape (count, n), contiguous.
            threads: The number of threads that may share the work.
            deadline: The time to stop, see `deadline_of`; 0 for never. Problems that
                are left end as `STOPPED`.
        """
        count = len(problems)
        unknowns, errors, endings = results = self._new_arrays(count)
        if threads > 1:
            threads = min(threads, count // PROBLEMS_PER_THREAD)
        if threads <= 1:
            # A single problem leaves all lanes but one idle; together they try its
            # starts at once, with the same answer.
            alone = count == 1 and plan.starts > 1  # then all lanes work on it
            failed = self._fill(
                problems, plan, seeds, results, deadline, together=alone
            )
            return SearchResult(*results, failed)
        failures = [0]

        def work(piece: slice) -> None:
            part = None if seeds is None else seeds[piece]
            into = unknowns[piece], errors[piece], endings[piece]
            failures.append(self._fill(problems[piece], plan, part, into, deadline))

        share(count, threads, work, count // PROBLEMS_PER_THREAD)
        return SearchResult(*results, sum(failures))

    def single(self, plan: SearchPlan) -> Callable[..., Array | None] | None:
        """Return a builtin function that solves one problem, see `search_code`.

        It returns None where it is given anything but plain arrays. There is none where
        arrays lie otherwise in memory.
        """
        if not arrays_are_as_expected():
            return None
        address = self._code.address("single")
        owned = self._code, plan
        kind = np.dtype(np.float64)
        return make_function(
            address, kind, nothing, "single", owned, tables=plan.address
        )

    def chain(
        self, problems: Array, plan: SearchPlan, first: Array, *, deadline: int = 0
    ) -> SearchResult:
        """Solve problems one after the other, each from the last one solved.

        Args:
            problems: As for a call.
            plan: How to search.
            first: The start of the first problem, shape (n,).
            deadline: As for a call.
        """
        # The loop writes each answer, or where there is none the seed itself, behind
        # the seed of its problem: there the next one starts.
        seeds = np.empty((len(problems) + 1, self.n))
        seeds[0] = first
        results = self._new_arrays(len(problems))
        failures = self._fill(problems, plan, seeds, results, deadline, chained=True)
        return SearchResult(*results, failures)

    def _new_arrays(self, count: int) -> Arrays:
        unknowns, errors = np.empty((count, self.n)), np.empty((count, self.k))
        return unknowns, errors, np.empty((count, 3), np.int64)

    def _fill(
        self,
        problems: Array,
        plan: SearchPlan,
        seeds: Array | None,
        into: Arrays,
        deadline: int,
        *,
        together: bool = False,
        chained: bool = False,
    ) -> int:
        """Write what is found `into` arrays; return how many problems fail."""
        unknowns, errors, endings = into
        # In the order of the fields of `search_layout.CALL`.
        call = CALL_WORDS.pack(
            len(problems),
            address_of(problems),
            problems.strides[0] // 8,
            0 if seeds is None else address_of(seeds),
            address_of(unknowns),
            address_of(errors),
            address_of(endings),
            together,
            1 if chained else self.lanes,
            chained,
            deadline,
            clock()[0] if deadline else 0,
            MONOTONIC,
        )
        return self._search(plan.address, call)


def _compiled(
    step: Program,
    guard: Program,
    scales: tuple[float, ...],
    single: tuple[int, ...] | None,
) -> tuple[Any, int]:
    """Return the code of the loop around `step`, and how many lanes it has."""
    # The lanes of the loop are those of the machine, and so is its cache key.
    with forks.IMPORT_LOCK:
        from armillary.kernel import compiler
        from armillary.kernel.host import host

    machine, real = host(), compiler.native_reals(64)
    with_avx2 = "+avx2" in machine.features.split(",")
    sizes = pairs_of(np.array(scales)), levels_of(np.array(scales))
    parts = "search", step.fingerprint, guard.fingerprint, sizes, single, real.text
    key = compiler.key_of(*map(str, parts), machine.identity)

    def text() -> str:
        with forks.IMPORT_LOCK:
            from armillary.kernel.search_code import search_code  # for new code

        pairs, levels = sizes
        lanes = real.lanes
        return search_code(
            step,
            guard,
            lanes,
            pairs=pairs,
            levels=levels,
            avx2=with_avx2,
            single=single,
        )

    return compiler.loaded(key, machine, text, level=1, variables=True), real.lanes


@lru_cache(maxsize=64)
def shared_search(
    step: Program,
    guard: Program,
    scales: tuple[float, ...],
    single: tuple[int, ...] | None = None,
) -> Search:
    """Return the search around `step`, the same one for equal programs."""
    return Search(step, guard, scales, single)
