"""The native loop of planners: loaded once, with memory that problems share."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from armillary import forks
from armillary.kernel.binding import address_of
from armillary.kernel.column_function import ColumnFunction, aligned, native_lanes
from armillary.kernel.machine_type import F64
from armillary.kernel.memory import Struct
from armillary.kernel.search import MONOTONIC, clock
from armillary.kernel.threads import share
from armillary.model.fields import kept
from armillary.model.limit_rows import LimitRows
from armillary.planning.edges import EdgeTests
from armillary.planning.layout import CALL, GROUP, SETUP, STACK, TREE, WORK

if TYPE_CHECKING:
    from armillary.kernel.code import Code

__all__ = [
    "Found",
    "LoopGround",
    "LoopKind",
    "LoopOptions",
    "NativeLoop",
    "Problem",
    "Space",
    "solve_all",
]

Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]

PATH_ROOM: Final = 4096
"""Way points of a way, before it is shortened."""

CALL_WORDS: Final = CALL.bytes // 8

CODES: Final = SETUP.offsets["check"] // 8
RESOLUTION: Final = SETUP.offsets["resolution"] // 8
"""Where the setup has the tests of edges, and how many samples they take."""

LONGEST_EDGE: Final = SETUP.offsets["reach"] // 8
"""Where it has the greatest length of an edge."""

PROVER: Final = SETUP.offsets["prove"] // 8
"""Where it has the code that proves motions, and then its tables."""

WIDE: Final = SETUP.offsets["wide_samples"] // 8
"""Where it has after how many samples what is nearly touching does not count."""

RESULTS: Final = CALL.offsets["status"] // 8
"""Where results begin; the length comes last."""

DEADLINE: Final = CALL.offsets["deadline"] // 8

LONG_AGO: Final = 1
"""A deadline that has passed [ns]."""

UNINTERRUPTED: Final = 50_000_000
"""How long the main thread itself is busy with a problem [ns]."""

PAIRS: Final = 4096
OFTEN, SELDOM = 0.2, 1e-4
"""Pairs of random positions, and the parts of them that are within both radii."""

REACH, CORNER = 0.25, 0.025
"""The longest edge and the smallest corner, by the radius."""

ON_SURFACE: Final = 0.6
"""The longest edge along constraints, as a weighted length."""

WIDE_ON_SURFACE: Final = 200
"""So many samples along constraints, which cost more."""

FEWER: Final = 0.5
"""The part of the samples of a motion that is tested where it is proven at last."""

PIECES: Final = 0.5
"""Pieces of a motion that are proven at first, by its samples."""

INSIDE: Final = 1e-9
"""How far within limits that couple joints new positions are [m or rad]."""

DEPTH: Final = 1e-5
"""How far within them projected samples are [m or rad]."""

SHARE_OF_ROOM: Final = 0.25
"""The part of the room within them that both may take at most."""

USUAL_GOALS: Final = 64
"""For so many goals less one there is room; more of them take memory of their own."""

PROBLEMS_PER_PIECE: Final = 16
"""Problems that a thread takes at least, where there are that many."""


class Space(NamedTuple):
    """Where is planned.

    Attributes:
        lower: Least joint positions [m or rad], shape (n,).
        upper: Greatest.
        weights: Of joints in lengths of motions, shape (n,).
        rows: Limits that couple joints.
    """

    lower: Array
    upper: Array
    weights: Array
    rows: LimitRows


class LoopOptions(NamedTuple):
    """How is searched.

    Attributes:
        step: Distance of samples of a motion, in weighted lengths.
        nodes: Nodes of a tree.
        growth: The part by which the radius of a node changes with each edge.
        samples: Samples of a search.
        wide_samples: After so many of them, what is nearly touching does not count.
    """

    step: float
    nodes: int = 100_000
    growth: float = 1e-4
    samples: int = 10_000_000
    wide_samples: int = 2_000


class Scale(NamedTuple):
    """How far nodes are extended, as weighted lengths.

    Attributes:
        radius: Samples within it extend a node at which an edge failed, at first.
        least_radius: At last.
        reach: The greatest length of an edge of a tree.
        corner: Corners whose points would move less are left alone.
    """

    radius: float
    least_radius: float
    reach: float
    corner: float

    @classmethod
    def of(cls, space: Space) -> Self:
        """Return lengths that fit a space, whatever its size and its joints.

        One of five random positions is within the radius of another, and one of ten
        thousand within the least radius. For the Panda these are 4 and 1, as others
        have tuned them by hand.
        """
        spans = (space.upper - space.lower) * space.weights
        spans = spans[spans > 0.0]
        n = len(spans)
        if not n:
            return cls(1.0, 1.0, 1.0, 1.0)
        pairs = np.random.default_rng(0).uniform(0.0, 1.0, (2, PAIRS, n)) * spans
        distances = np.linalg.norm(pairs[0] - pairs[1], axis=1)
        radius = float(np.quantile(distances, OFTEN))
        # The volume of a ball of radius r is v r^n.
        v = math.pi ** (n / 2) / math.gamma(n / 2 + 1)
        log_volume = math.log(SELDOM / v) + float(np.log(spans).sum())
        least = min(math.exp(log_volume / n), radius)
        return cls(radius, least, REACH * radius, CORNER * radius)


class Problem(NamedTuple):
    """What is asked.

    Attributes:
        start: Joint positions [m or rad], shape (n,).
        goals: The same, shape (k, n).
        seed: Another number gives other samples.
        deadline: When to stop [ns], see `deadline_of`; 0 for never.
        improve: Until when a way is made shorter, 0 for not at all.
    """

    start: Array
    goals: Array
    seed: int
    deadline: int
    improve: int = 0


class Found(NamedTuple):
    """What the loop found.

    Attributes:
        status: How it ended; see `layout`.
        q: Way points [m or rad], shape (k, n).
        goal: Which goal it leads to.
        is_late: Whether a way was found and the deadline was over then, so that it may
            be longer than without one.
        length: The weighted length.
        counts: Edges, joint positions, motions to be proven, samples and nodes.
    """

    status: int
    q: Array
    goal: int
    is_late: bool
    length: float
    counts: tuple[int, ...]

    @classmethod
    def of(cls, row: Sequence[int], q: Array, length: float) -> Self:
        """Return what the words of `layout.CALL` say from `status` on to `nodes`."""
        status, _, goal, is_late, *counts = row
        return cls(status, q, goal, bool(is_late), length, tuple(counts))


class LoopKind(NamedTuple):
    """What memory of the loop is made for.

    Attributes:
        dtype: The type of the check, and of trees.
        lanes: How many joint positions it is asked for at once.
        prover: How many motions are proven at once.
    """

    dtype: np.dtype[Any]
    lanes: int
    prover: int

    @classmethod
    def of(cls, tests: EdgeTests) -> Self:
        """Return that for tests of edges."""
        check, prover = tests.check, tests.prover
        return cls(check.dtype, check.lanes, prover.lanes if prover else 1)


@final
@dataclass(frozen=True, eq=False)
class LoopGround:
    """What loops share that plan in one space, whatever must not touch there.

    Attributes:
        space: Where is planned.
        options: How is searched.
        kind: What memory is made for.
        words: The setup in memory, without the tests of edges.
        owned: What must live as long.
        run: The function of the native loop.
        idle: Memory that no thread uses now.
    """

    space: Space
    options: LoopOptions
    kind: LoopKind
    words: Words
    owned: tuple[object, ...]
    run: Callable[[int, int, int, int, int, int], int]
    idle: list[_LoopMemory]

    @classmethod
    def of(cls, space: Space, options: LoopOptions, kind: LoopKind) -> Self:
        """Put together what the loop reads of a space."""
        n, dtype = len(space.lower), kind.dtype
        lower, upper, weights = (
            np.ascontiguousarray(each, float) for each in space[:3]
        )
        slopes, ends, depth = _normal_rows(space)
        inverse = 1.0 / weights
        least, span = lower * weights, (upper - lower) * weights
        parts: dict[str, npt.NDArray[Any]] = {
            "weights": weights,
            "inverse": inverse,
            "lower": lower,
            "upper": upper,
            "least": least.astype(dtype),
            "span": span.astype(dtype),
            "steps": _steps(n),
            "slopes": slopes,
            "ends": ends,
        }
        words = packed(
            SETUP,
            {
                "n": n,
                "pieces": PIECES / options.step,
                "rows": len(ends),
                "depth": depth,
                **{name: address_of(part) for name, part in parts.items()},
                **Scale.of(space)._asdict(),
                "growth": options.growth,
                "room": options.nodes,
                "most": options.samples,
                "wide_samples": options.wide_samples,
                "path_room": PATH_ROOM,
                "clock": clock()[0],
                "clock_id": MONOTONIC,
            },
        )
        run, _ = _plans(dtype.char, kind.lanes)
        owned = *parts.values(), clock()
        return cls(space, options, kind, words, owned, run, [])

    def taken(self) -> _LoopMemory:
        """Return memory for a thread, which it puts back into `idle`."""
        try:
            return self.idle.pop()
        except IndexError:  # other threads have all
            return _LoopMemory.of(self)


@final
@dataclass(frozen=True, eq=False)
class NativeLoop:
    """The loop with the tests of edges and the space of a planner; threads share it.

    Attributes:
        tests: What tells which edges are free.
        ground: What it shares with loops in the same space.
        words: The setup in memory.
    """

    tests: EdgeTests
    ground: LoopGround
    words: Words

    @classmethod
    def of(cls, tests: EdgeTests, ground: LoopGround) -> NativeLoop:
        """Add tests of edges to what the loop reads."""
        check, tight, prover, quick, project, _ = tests
        words = ground.words.copy()
        codes = [check.address, check.tables, tight.tables]
        for each in (prover, quick, project):
            codes += (each.address, each.tables) if each else (0, 0)
        # In the order of these fields of `layout.SETUP`.
        words[CODES : CODES + len(codes)] = codes
        # What is proven at last may be searched by fewer samples.
        share = FEWER if prover and not project else 1.0
        reals = words.view(np.float64)
        reals[RESOLUTION] = share / ground.options.step
        if project:
            reals[LONGEST_EDGE] = min(reals[LONGEST_EDGE], ON_SURFACE)
            words[WIDE] = min(words[WIDE], WIDE_ON_SURFACE)
        return cls(tests, ground, words)

    @property
    def _ready(self) -> NativeLoop:
        """Return the loop that calls the prover itself, once its records are there."""
        tests = self.tests.ready
        if tests is None:
            return self
        return kept(self, "ready", lambda: self._with_prover(tests))

    def _with_prover(self, tests: EdgeTests) -> NativeLoop:
        words = self.words.copy()
        assert tests.prover is not None
        words[PROVER : PROVER + 2] = tests.prover.address, tests.prover.tables
        return NativeLoop(tests, self.ground, words)

    def finer(self, factor: float) -> NativeLoop:
        """Return the loop with so many times as many samples of motions."""
        words = self.words.copy()
        words.view(np.float64)[RESOLUTION] *= factor
        return NativeLoop(self.tests, self.ground, words)

    def along(self, project: ColumnFunction) -> NativeLoop:
        """Return the loop along constraints, whose ways are not proven."""
        return NativeLoop.of(self.tests._replace(project=project), self.ground)

    def solve(self, problem: Problem) -> Found:
        """Solve a problem."""
        memory = self.ground.taken()
        try:
            return memory.solve(self._ready, problem)
        finally:
            self.ground.idle.append(memory)

    def solve_some(self, problems: Sequence[Problem]) -> list[Found]:
        """Solve problems one after the other; signals wait until it ends."""
        memory = self.ground.taken()
        try:
            return memory.solve_some(self._ready, problems)
        finally:
            self.ground.idle.append(memory)


def solve_all(
    items: Sequence[tuple[NativeLoop, Problem]], threads: int, soon: int
) -> list[Found]:
    """Solve problems on several threads; each answer is that of the problem alone.

    Args:
        items: Each with its loop.
        threads: How many take part.
        soon: How long a problem may take [ns], beside its deadline; what others leave
            of theirs, later ones of a piece may take.
    """
    found: list[Found | None] = [None] * len(items)

    def work(piece: slice) -> None:
        # Those that follow each other with the same loop take one call.
        first = piece.start
        for loop, same in groupby(items[piece], key=itemgetter(0)):
            now = time.monotonic_ns()
            problems = [
                problem._replace(deadline=_sooner(problem.deadline, now + k * soon))
                for k, (_, problem) in enumerate(same, 1)
            ]
            found[first : first + len(problems)] = loop.solve_some(problems)
            first += len(problems)

    share(len(items), threads, work, len(items) // PROBLEMS_PER_PIECE)
    return [each for each in found if each is not None]


def _sooner(deadline: int, other: int) -> int:
    return min(deadline, other) if deadline else other


@final
@dataclass(frozen=True, eq=False)
class _LoopMemory:
    """What a thread works in.

    Attributes:
        words: Where everything is; see `layout.WORK`.
        call: The problem, see `layout.CALL`: words of 64 bits.
        path: Its way points, shape (room, n).
        verdicts: Room for those of start and goals.
        addresses: Of words and call.
        owned: What must live as long.
    """

    words: Words
    call: memoryview[int]
    path: Array
    verdicts: Words
    addresses: tuple[int, int]
    owned: tuple[object, ...]

    def solve(self, loop: NativeLoop, problem: Problem) -> Found:
        """Solve a problem of a loop in the space that this was made for."""
        start, goals, seed, deadline, improve = problem
        count = len(goals)
        verdicts = self.verdicts
        if count >= len(verdicts):
            verdicts = np.empty(1 + count, np.int64)
        # In the order of the first fields of `layout.CALL`.
        call, starts = self.call, (address_of(start), address_of(goals))
        given = *starts, count, seed, deadline, 0, address_of(verdicts), improve
        for k, word in enumerate(given):
            call[k] = word
        self._run(loop, deadline, improve)
        row = call[RESULTS : CALL_WORDS - 1].tolist()
        (length,) = call[CALL_WORDS - 1 :].cast("B").cast("d")
        return Found.of(row, self.path[: row[1]].copy(), length)

    def _run(self, loop: NativeLoop, deadline: int, improve: int) -> None:
        """Run the loop; what takes long may be interrupted.

        Python raises what signals ask for between its own instructions. So the main
        thread asks for a short time first, which is enough for most problems, and lets
        another thread begin anew where it is not: what is late may end otherwise.
        """
        setup = address_of(loop.words)

        def run() -> None:
            path = address_of(self.path)
            loop.ground.run(setup, *self.addresses, 1, path, PATH_ROOM)

        if threading.current_thread() is not threading.main_thread():
            run()
            return
        soon = time.monotonic_ns() + UNINTERRUPTED
        is_long = deadline == 0 or deadline > soon
        if improve <= soon:
            if is_long:
                self.call[DEADLINE] = soon
            run()
            if not is_long or time.monotonic_ns() < soon:
                return
            self.call[DEADLINE] = deadline
        # `Thread.is_alive` is not asked: of a `join` that a signal ended it says False.
        done = threading.Event()

        def run_there() -> None:
            try:
                run()
            finally:
                done.set()

        thread = threading.Thread(target=run_there, name="armillary planner")
        try:
            try:
                thread.start()
            except RuntimeError:
                if thread.ident is not None:
                    raise
                run_there()  # there is no thread to be had
            while not done.wait(0.05):
                pass
        finally:
            while not done.is_set():  # it works in this memory
                self.call[DEADLINE] = LONG_AGO
                with contextlib.suppress(KeyboardInterrupt):  # a second one
                    done.wait(0.001)

    def solve_some(self, loop: NativeLoop, problems: Sequence[Problem]) -> list[Found]:
        """Solve several problems, with few calls of the native loop."""
        goals = max((len(each.goals) for each in problems), default=0)
        verdicts = np.empty(1 + goals, np.int64)
        calls = np.zeros((len(problems), CALL_WORDS), np.int64)
        at = address_of(verdicts)
        calls[:, :8] = [
            (address_of(start), address_of(q), len(q), seed, deadline, 0, at, improve)
            for start, q, seed, deadline, improve in problems
        ]
        found: list[Found] = []
        setup, (work, _) = address_of(loop.words), self.addresses
        room, path = len(self.path), address_of(self.path)
        while len(found) < len(problems):
            first = len(found)
            where = address_of(calls) + first * CALL.bytes
            done = loop.ground.run(
                setup, work, where, len(problems) - first, path, room
            )
            rows = calls[first : first + done, RESULTS:]
            used = 0
            for row, length in zip(
                rows[:, :-1].tolist(),
                rows.view(np.float64)[:, -1].tolist(),
                strict=True,
            ):
                q = self.path[used : used + row[1]].copy()
                used += row[1]
                found.append(Found.of(row, q, length))
        return found

    @classmethod
    def of(cls, ground: LoopGround) -> _LoopMemory:
        n, room = len(ground.space.lower), ground.options.nodes
        kind, lanes, prover = ground.kind
        room = -(-room // (GROUP * lanes)) * GROUP * lanes
        trees: list[Words] = []
        owned: list[npt.NDArray[Any]] = []

        def memory(count: int, kind: npt.DTypeLike = np.float64) -> int:
            array = aligned(count, np.dtype(kind))
            owned.append(array)
            return address_of(array)

        for _ in range(2):
            tree = {
                "x": memory(room * n, kind),
                "parent": memory(room, np.int64),
                "radius": memory(room, kind),
            }
            trees.append(packed(TREE, tree))
        ramp = aligned(lanes, kind)
        ramp[:] = np.arange(1, lanes + 1) / lanes
        rows = native_lanes(np.dtype(np.float64))  # which are projected at once
        words = packed(
            WORK,
            {
                "tree": [address_of(tree) for tree in trees],
                "columns": memory(n * lanes, kind),
                "found": memory(lanes, kind),
                "ramp": address_of(ramp),
                "ends": [memory(n * prover) for _ in range(2)],
                "how_far": memory(2 * prover),
                "rates": memory(n * lanes, kind),
                "half": memory(lanes, kind),
                "surface": [memory(n * rows) for _ in range(2)],
                "missed": memory(rows),
                "stack": [memory(STACK, kind) for _ in range(2)],
                "a": memory(n, kind),
                "v": memory(n, kind),
                "sample": memory(n, kind),
                "target": memory(n, kind),
                "step": memory(n, kind),
                "rows": [memory(n) for _ in range(2)],
                "raw": memory(n * PATH_ROOM),
                "detour": memory(n * PATH_ROOM),
                "best": memory(n * PATH_ROOM),
                "counter": memory(n, np.int64),
            },
        )
        call, path = np.zeros(CALL_WORDS, np.int64), np.empty((2 * PATH_ROOM, n))
        addresses = address_of(words), address_of(call)
        verdicts = np.empty(USUAL_GOALS, np.int64)
        view, owned = call.data.cast("B").cast("q"), [*trees, ramp, *owned]
        return cls(words, view, path, verdicts, addresses, tuple(owned))


def packed(struct: Struct, values: Mapping[str, Any]) -> Words:
    """Return a structure in memory; what is not given is 0."""
    words = np.zeros(struct.bytes // 8, np.int64)
    for name, value in values.items():
        at = struct.offsets[name] // 8
        into = words.view(np.float64) if struct.kinds[name] == F64 else words
        into[at : at + np.size(value)] = value
    return words


def _normal_rows(space: Space) -> tuple[Array, Array, float]:
    """Return limits that couple joints as a'q <= b with a'a = 1, and a depth in them.

    What is within them keeps the limits themselves however sums are rounded.
    """
    lower, upper = space.lower, space.upper
    moving = np.flatnonzero(lower < upper)
    if not len(space.rows):
        return np.zeros((0, len(lower))), np.zeros(0), 0.0
    # Projections along the slopes must not move joints that stay where they are.
    rows = space.rows.of_joints(moving.tolist(), lower)
    slopes = np.zeros((len(rows), len(lower)))
    sizes = np.linalg.norm(rows.A, axis=1)
    slopes[:, moving] = rows.A / sizes[:, np.newaxis]
    ends = rows.b / sizes
    room = SHARE_OF_ROOM * max(space.rows.room_within(lower, upper).radius, 0.0)
    inside = min(INSIDE, room) * (1.0 + np.abs(ends))
    return slopes, ends - inside, min(DEPTH, room)


def _steps(n: int) -> Words:
    """Return what each joint's part of a sample grows by, in units of 2^-64."""
    # Powers of 1 / g, where g^(n + 1) = g + 1: for n = 1 the golden ratio.
    g = 2.0
    for _ in range(64):
        g = (1.0 + g) ** (1.0 / (n + 1))
    parts = np.mod(g ** -np.arange(1.0, n + 1), 1.0)
    return np.array([int(part * 2.0**64) for part in parts], np.uint64).view(np.int64)


@lru_cache(maxsize=8)
def _plans(kind: str, lanes: int) -> tuple[Callable[..., int], Code]:
    """Return the function of the native loop, and its code."""
    with forks.IMPORT_LOCK:
        from armillary.kernel import compiler
        from armillary.kernel.host import host
        from armillary.kernel.machine_type import real_of
    machine = host()
    real = real_of(np.dtype(kind).itemsize * 8, lanes)
    prover = compiler.native_reals(64).lanes
    parts = "planner", real.text, str(prover), machine.identity, _fingerprint()

    def text() -> str:
        with forks.IMPORT_LOCK:
            from armillary.planning.loop_code import loop_code

        return loop_code(real, prover)

    code = compiler.loaded(
        compiler.key_of(*parts), machine, text, level=2, variables=True
    )
    numbers = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *numbers)
    return prototype(code.address("plans")), code  # which lives as long


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    """Return a digest of the sources that the code is made by."""
    folder = files("armillary.planning")
    parts = sorted(each.name for each in folder.iterdir() if "_code" in each.name)
    sources = [(folder / name).read_bytes() for name in ("layout.py", *parts)]
    return hashlib.sha256(b"".join(sources)).hexdigest()
