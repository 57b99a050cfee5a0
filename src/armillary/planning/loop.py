"""The native loop of planners: loaded once, with memory that problems share."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib.resources import files
from itertools import count, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from armillary import forks
from armillary.digests import hasher
from armillary.kernel.binding import address_of
from armillary.kernel.search import MONOTONIC, clock
from armillary.kernel.threads import share
from armillary.model.fields import kept
from armillary.model.limit_rows import LimitRows
from armillary.planning.edges import EdgeTests, SurfaceTests
from armillary.planning.layout import PATH_ROOM, PAUSED, SETUP
from armillary.planning.loop_memory import (
    Found,
    LoopKind,
    LoopMemory,
    NativeCall,
    Problem,
    packed,
)

if TYPE_CHECKING:
    from armillary.kernel.code import Code

__all__ = [
    "LoopGround",
    "LoopOptions",
    "NativeLoop",
    "PausingSearch",
    "Space",
    "solve_all",
]

Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]

NO_SURFACE: Final = (None, None, None)

CODES: Final = SETUP.offsets["check"] // 8
RESOLUTION: Final = SETUP.offsets["resolution"] // 8
"""Where the setup has the tests of edges, and how many samples they take."""

GOALS: Final = SETUP.offsets["goals"] // 8
"""Where it has how many constraints there are, and then their part of tolerances."""

LONGEST_EDGE: Final = SETUP.offsets["reach"] // 8
"""Where it has the greatest length of an edge."""

PROVER: Final = SETUP.offsets["prove"] // 8
"""Where it has the code that proves motions, and then its tables."""

WIDE: Final = SETUP.offsets["wide_samples"] // 8
"""Where it has after how many samples what is nearly touching does not count."""

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

PROBLEMS_PER_PIECE: Final = 16
"""Problems that a thread takes at least, where there are that many."""

PROBLEMS_AT_ONCE: Final = 256
"""Problems of a call of the native loop."""

MOST_PAUSED: Final = 64
"""So many searches of a batch pause at most and keep their memory, some megabytes."""

MOST_IDLE: Final = 16
"""Memory for so many searches is kept at most for the next ones."""


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
        moving: How many joints move.
        run: The function of the native loop.
        idle: Memory that no search uses now, of this and other spaces.
    """

    space: Space
    options: LoopOptions
    kind: LoopKind
    words: Words
    owned: tuple[object, ...]
    moving: int
    run: Callable[[int, int, int, int, int, int], int]
    idle: list[LoopMemory]

    @classmethod
    def of(
        cls,
        space: Space,
        options: LoopOptions,
        kind: LoopKind,
        idle: list[LoopMemory] | None = None,
    ) -> Self:
        """Put together what the loop reads of a space.

        Args:
            space: Where is planned.
            options: How is searched.
            kind: What memory is made for.
            idle: Memory for as many joints and nodes, of this kind.
        """
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
        moving = int(np.count_nonzero(lower < upper))
        memory = [] if idle is None else idle
        return cls(space, options, kind, words, owned, moving, run, memory)

    def taken(self) -> LoopMemory:
        """Return memory for a search; see `put_back`."""
        try:
            return self.idle.pop()
        except IndexError:  # other searches have all
            return LoopMemory.of(len(self.space.lower), self.options.nodes, self.kind)

    def put_back(self, memory: LoopMemory) -> None:
        """Let other searches have memory, unless enough of it is there."""
        if len(self.idle) < MOST_IDLE:
            self.idle.append(memory)


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
        check, tight, prover, quick, surface, _ = tests
        words = ground.words.copy()
        codes = [check.address, check.tables, tight.tables]
        for each in (prover, quick, *(surface or NO_SURFACE)[:3]):
            codes += (each.address, each.tables) if each else (0, 0)
        # In the order of these fields of `layout.SETUP`.
        words[CODES : CODES + len(codes)] = codes
        # What is proven at last may be searched by fewer samples.
        share = FEWER if tests.proves else 1.0
        reals = words.view(np.float64)
        reals[RESOLUTION] = share / ground.options.step
        if surface:
            words[GOALS], reals[GOALS + 1] = surface.goals, surface.part
            reals[LONGEST_EDGE] = min(reals[LONGEST_EDGE], ON_SURFACE)
            words[WIDE] = min(words[WIDE], WIDE_ON_SURFACE)
        return cls(tests, ground, words)

    @property
    def ready(self) -> NativeLoop:
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

    @cached_property
    def native(self) -> NativeCall:
        """Return the function of the native loop with this setup."""
        return partial(self.ground.run, address_of(self.words))

    def finer(self, factor: float) -> NativeLoop:
        """Return the loop with so many times as many samples of motions."""
        words = self.words.copy()
        words.view(np.float64)[RESOLUTION] *= factor
        return NativeLoop(self.tests, self.ground, words)

    def along(self, surface: SurfaceTests) -> NativeLoop:
        """Return the loop along constraints."""
        return NativeLoop.of(self.tests._replace(surface=surface), self.ground)

    def solve(self, problem: Problem) -> Found:
        """Solve a problem."""
        with self.begun(problem) as search:
            return search.run()

    def begun(self, problem: Problem) -> PausingSearch:
        """Return a search for a way that may pause; it is to be closed."""
        return PausingSearch(self, problem)

    def solve_some(
        self, problems: Sequence[Problem], until: Sequence[int], paused: Iterator[int]
    ) -> list[Found | PausingSearch]:
        """Solve problems one after the other; signals wait until it ends.

        Args:
            problems: What is asked.
            until: When the search for each pauses [ns].
            paused: Counts the searches that have paused. The first `MOST_PAUSED` can go
                on; for further ones there is only the status `PAUSED`.
        """
        ground, native = self.ground, self.ready.native
        found: list[Found | PausingSearch] = []
        memory = ground.taken()
        while len(found) < len(problems):
            # What is written down again behind a search that pauses is little.
            now = slice(len(found), len(found) + PROBLEMS_AT_ONCE)
            some, owned = memory.solve_some(native, problems[now], until[now])
            found += some
            if some[-1].status == PAUSED and next(paused) < MOST_PAUSED:
                problem = problems[len(found) - 1]
                found[-1] = PausingSearch(self, problem, (memory, owned, some[-1]))
                memory = ground.taken()
        ground.put_back(memory)
        return found


def solve_all(
    items: Sequence[tuple[NativeLoop, Problem]], threads: int, soon: int
) -> list[Found | PausingSearch]:
    """Solve problems on several threads; each answer is that of the problem alone.

    Args:
        items: Each with its loop.
        threads: How many take part.
        soon: How long is searched for each [ns], beside its deadline; those that take
            longer are paused. What others leave, later ones of a piece may take.

    Returns:
        What is found for each; a search that has paused and can go on, if `MOST_PAUSED`
        others have not. These are `PAUSED`, and begin anew.
    """
    found: list[Found | PausingSearch | None] = [None] * len(items)
    paused = count()  # threads share it

    def work(piece: slice) -> None:
        # Those that follow each other with the same loop take few calls.
        first = piece.start
        for loop, same in groupby(items[piece], key=itemgetter(0)):
            now = time.monotonic_ns()
            problems = [problem for _, problem in same]
            until = [now + k * soon for k in range(1, len(problems) + 1)]
            some = loop.solve_some(problems, until, paused)
            found[first : first + len(problems)] = some
            first += len(problems)

    share(len(items), threads, work, len(items) // PROBLEMS_PER_PIECE)
    return [each for each in found if each is not None]


@final
class PausingSearch:
    """A search for a way that may pause, and then goes on as if it had not.

    Attributes:
        found: What it has found until it paused; None before it begins.
    """

    def __init__(
        self,
        loop: NativeLoop,
        problem: Problem,
        begun: tuple[LoopMemory, object, Found] | None = None,
    ) -> None:
        """Take memory for a problem, until the block ends.

        begun: That in which a search has paused, what must live as long, and what it
            has found; by default it begins.
        """
        self._loop, self._problem = loop, problem
        self.found: Found | None = None
        if begun is None:
            self._memory = loop.ground.taken()
            self._owned = self._memory.begin(problem)
        else:
            self._memory, self._owned, self.found = begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the memory of a search that does not go on."""
        self._loop.ground.put_back(self._memory)

    def run(self, until: int = 0, deadline: int | None = None) -> Found:
        """Search until a time [ns], 0 for the deadline; it pauses at samples alone.

        A way that is found until then is shortened and proven however long that takes.

        deadline: Another deadline than that of the problem [ns].
        """
        if deadline is not None:
            self._memory.set_deadline(deadline)
        self._memory.run(self._loop.ready.native, self._problem, until)
        self.found = self._memory.found
        return self.found


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
    return hasher(b"".join(sources)).hexdigest()
