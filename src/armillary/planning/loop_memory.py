"""Memory in which the native loop works for a thread, and calls of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.binding import address_of
from armillary.kernel.column_function import aligned, native_lanes
from armillary.kernel.machine_type import F64
from armillary.kernel.memory import Struct
from armillary.planning.edges import EdgeTests
from armillary.planning.layout import (
    CALL,
    GROUP,
    MOST_GOALS,
    PATH_ROOM,
    PAUSED,
    STACK,
    TREE,
    WORK,
)

__all__ = ["Found", "LoopKind", "LoopMemory", "NativeCall", "Problem", "packed"]

Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]

NativeCall: TypeAlias = Callable[[int, int, int, int, int], int]
"""The function of the native loop with its setup; see `loop_code`."""

CALL_WORDS: Final = CALL.bytes // 8

DEADLINE: Final = CALL.offsets["deadline"] // 8
PAUSE: Final = CALL.offsets["pause"] // 8
RESULTS: Final = CALL.offsets["status"] // 8
"""Where a problem has its deadline, when it pauses, and from where on its results are;
the length comes last."""

LONG_AGO: Final = 1
"""A deadline that has passed [ns]."""

UNINTERRUPTED: Final = 50_000_000
"""How long the main thread itself is busy with a problem [ns]."""

USUAL_GOALS: Final = 64
"""For so many goals less one there is room; more of them take memory of their own."""


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
        length: The weighted length.
        counts: Edges, joint positions, motions to be proven, samples and nodes.
    """

    status: int
    q: Array
    goal: int
    length: float
    counts: tuple[int, ...]

    @classmethod
    def of(cls, row: Sequence[int], q: Array, length: float) -> Self:
        """Return what the words of `layout.CALL` say from `status` on to `nodes`."""
        status, _, goal, *counts = row
        return cls(status, q, goal, length, tuple(counts))


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
class LoopMemory:
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

    def begin(self, problem: Problem) -> object:
        """Write down a problem in the space of a loop.

        It returns what must live as long as that is searched.
        """
        start, goals, seed, deadline, improve = problem
        count = len(goals)
        verdicts = self.verdicts
        if count >= len(verdicts):
            verdicts = np.empty(1 + count, np.int64)
        # In the order of the first fields of `layout.CALL`: nothing has paused.
        call, starts = self.call, (address_of(start), address_of(goals))
        given = *starts, count, seed, deadline, 0, address_of(verdicts), improve, 0, 0
        for k, word in enumerate(given):
            call[k] = word
        return problem, verdicts

    def set_deadline(self, deadline: int) -> None:
        """Let the problem end at another time [ns]; 0 for never."""
        self.call[DEADLINE] = deadline

    @property
    def found(self) -> Found:
        """Return what was found of that problem."""
        row = self.call[RESULTS : CALL_WORDS - 1].tolist()
        (length,) = self.call[CALL_WORDS - 1 :].cast("B").cast("d")
        return Found.of(row, self.path[: row[1]].copy(), length)

    def run(self, native: NativeCall, problem: Problem, until: int) -> None:
        """Run the loop; what takes long may be interrupted.

        Python raises what signals ask for between its own instructions. So the main
        thread searches for a short time first, which is enough for most problems, and
        lets another thread go on where it is not.
        """

        def run(until: int) -> None:
            self.call[PAUSE] = until
            path = address_of(self.path)
            native(*self.addresses, 1, path, PATH_ROOM)

        if threading.current_thread() is not threading.main_thread():
            run(until)
            return
        soon = time.monotonic_ns() + UNINTERRUPTED
        if problem.improve <= soon:
            is_short = 0 < until <= soon
            run(until if is_short else soon)
            if is_short or self.call[RESULTS] != PAUSED:
                return
        # `Thread.is_alive` is not asked: of a `join` that a signal ended it says False.
        done, begun = threading.Event(), threading.Lock()

        def run_there() -> None:
            if not begun.acquire(blocking=False):
                return
            try:
                run(until)
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
            # A signal may come before the thread begins; then it does nothing.
            never = begun.acquire(blocking=False)
            while not (never or done.is_set()):  # it works in this memory
                self.call[DEADLINE] = LONG_AGO
                with contextlib.suppress(KeyboardInterrupt):  # a second one
                    done.wait(0.001)

    def solve_some(
        self, native: NativeCall, problems: Sequence[Problem], until: Sequence[int]
    ) -> tuple[list[Found], object]:
        """Solve several problems, with few calls of the native loop.

        The first search that pauses is the last one that is begun, and can go on here.

        Returns:
            What is found, and what must live as long as the last one is searched.
        """
        goals = max((len(each.goals) for each in problems), default=0)
        verdicts = np.empty(1 + goals, np.int64)
        calls = np.zeros((len(problems), CALL_WORDS), np.int64)
        at = address_of(verdicts)
        calls[:, :8] = [
            (address_of(start), address_of(q), len(q), seed, deadline, 0, at, improve)
            for start, q, seed, deadline, improve in problems
        ]
        calls[:, PAUSE] = until
        found: list[Found] = []
        work, _ = self.addresses
        room, path = len(self.path), address_of(self.path)
        while len(found) < len(problems):
            first = len(found)
            where = address_of(calls) + first * CALL.bytes
            done = native(work, where, len(problems) - first, path, room)
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
            if found[-1].status == PAUSED:
                for k, word in enumerate(calls[len(found) - 1].tolist()):
                    self.call[k] = word
                break
        return found, (problems[: len(found)], verdicts)

    @classmethod
    def of(cls, n: int, nodes: int, made_for: LoopKind) -> Self:
        """Return memory for n joints, and for so many nodes of each tree."""
        kind, lanes, prover = made_for
        room = -(-nodes // (GROUP * lanes)) * GROUP * lanes
        trees: list[Words] = []  # two, and two for detours
        owned: list[npt.NDArray[Any]] = []

        def memory(count: int, kind: npt.DTypeLike = np.float64) -> int:
            array = aligned(count, np.dtype(kind))
            owned.append(array)
            return address_of(array)

        for _ in range(4):
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
                "tree": [address_of(tree) for tree in trees[:2]],
                "spare": [address_of(tree) for tree in trees[2:]],
                "columns": memory(n * lanes, kind),
                "found": memory(lanes, kind),
                "ramp": address_of(ramp),
                "ends": [memory(n * prover) for _ in range(2)],
                "how_far": memory(2 * prover),
                "rates": memory(n * lanes, kind),
                "half": memory(lanes, kind),
                "surface": [memory(n * rows) for _ in range(2)],
                "missed": memory(rows),
                "errors": memory(MOST_GOALS * rows),
                **{x: memory(n * PATH_ROOM) for x in ("points", "middles")},
                "times": memory(PATH_ROOM),
                **{x: memory(PATH_ROOM, np.int64) for x in ("gaps", "open")},
                "stack": [memory(STACK, kind) for _ in range(2)],
                "a": memory(n, kind),
                "v": memory(n, kind),
                "sample": memory(n, kind),
                "target": memory(n, kind),
                "step": memory(n, kind),
                "rows": [memory(n) for _ in range(2)],
                "raw": memory(n * PATH_ROOM),
                "nodes": memory(PATH_ROOM, np.int64),
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
