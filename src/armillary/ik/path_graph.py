"""The shortest way through layers of answers: one layer for each pose of a path.

With answers q[k][i] to pose k, in all multiples of 2 pi that limits allow, the way is
the sequence i[k] of least cost (Viterbi 1967):

    C[k][i] = min_j C[k-1][j] + c(q[k-1][j], q[k][i]),    c = s^2 if s <= largest step
                                                          c = jump (1 + 1e-6 s) else

where s is the largest weighted step of a joint, and one jump costs more than all steps
of a way without one. So few pairs are compared: those a small step apart
(`WholeTurns.pairs`), and each answer with the cheapest before, from which a jump comes
if there must be one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.ik.method import Candidates

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

SLACK = 1e-9
MOST_TURNS = 4  # of one joint: where more are within limits, those around the start
MOST_STATES = 1024  # combinations of turns of all joints


class WholeTurns:
    """The whole turns by which joints may be away from an answer.

    A joint that turns without limits is compared up to whole turns. One whose limits
    are more than a turn apart has a state for each turn.

    Attributes:
        endless: Which joints turn without limits, shape (n,).
        grid: The turns of each state, shape (states, n).
    """

    def __init__(
        self, turning: Truths, limits: tuple[Array, Array], around: Array
    ) -> None:
        """Prepare for joints.

        Args:
            turning: Which of them return to the same pose after a turn, shape (n,).
            limits: Least and greatest q, each of shape (n,).
            around: Where the turns are that count if there are too many, shape (n,).
        """
        lower, upper = limits
        self._upper = upper
        self.endless = turning & np.isinf(lower) & np.isinf(upper)
        several = turning & ~self.endless & (upper - lower > math.tau + SLACK)
        turns = np.ceil((upper - lower - SLACK) / math.tau)
        counts = np.where(several, np.minimum(turns, MOST_TURNS), 1.0).astype(np.int64)
        while counts.prod() > MOST_STATES:
            counts[counts.argmax()] -= 1
        fewer = several & (counts < turns)
        width = math.tau * counts
        middle = np.clip(around - 0.5 * width, lower, np.maximum(upper - width, lower))
        self._from = np.where(several, np.where(fewer, middle, lower), 0.0)
        self._lower = lower
        self.several, self._counts = several, counts
        self.grid = np.stack(
            np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1
        ).reshape(-1, len(counts))
        self._strides = np.append(np.cumprod(counts[:0:-1])[::-1], 1)

    def lowest(self, q: Array) -> Array:
        """Return q with joints that have several turns put at the lowest of them."""
        above = np.mod(q - self._from + SLACK, math.tau) - SLACK
        return np.where(self.several, self._from + above, q)

    def states(self, q: Array) -> tuple[Array, Truths]:
        """Return the states of answers, and which of them are within the limits.

        Args:
            q: Answers with the lowest turns, shape (m, n).

        Returns:
            Joint positions, shape (m, states, n), and truths, shape (m, states).
        """
        full = q[:, None] + math.tau * self.grid
        within = (full <= self._upper + SLACK) | ~self.several
        return full, np.asarray(within.all(axis=2))

    def pairs(
        self, a: Array, b: Array, largest_step: Array, weights: Array
    ) -> tuple[Indices, Indices, Array]:
        """Return which answers are a small step apart, whole turns left out.

        Args:
            a: Answers, shape (k, n).
            b: Answers to the next pose, shape (m, n).
            largest_step: The most that each joint moves, shape (n,).
            weights: How much a step of each counts, shape (n,).

        Returns:
            Indices in a and in b, in the order of these, and the largest weighted step
            of each pair, each of shape (p,).
        """
        from_a = to_b = np.zeros(0, np.int64)
        size = np.zeros(0)
        for k, turns in enumerate(self.several | self.endless):
            # The first joint, of all pairs, leaves few of them for the others.
            step = b[to_b, k] - a[from_a, k] if k else b[:, k, None] - a[:, k]
            if turns:
                step -= math.tau * np.round(step / math.tau)
            step = np.abs(step)
            near = np.nonzero(step <= largest_step[k])
            step = weights[k] * step[near]
            if k:
                from_a, to_b = from_a[near], to_b[near]
                size = np.maximum(size[near], step)
            else:
                to_b, from_a = near
                size = step
        return from_a, to_b, size

    def sources(self, step: Array) -> Indices:
        """Return the state from which each state is entered by a small step.

        Args:
            step: From one lowest answer to the next, shape (p, n).

        Returns:
            Indices, shape (p, states); -1 where the limits forbid that.
        """
        turns = np.where(self.several, np.round(step / math.tau), 0.0).astype(np.int64)
        if not turns.any():
            states = np.arange(len(self.grid))
            return np.broadcast_to(states, (len(step), len(states)))
        kinds, pairs = np.unique(turns, axis=0, return_inverse=True)
        before = self.grid + kinds[:, None]
        exists = ((before >= 0) & (before < self._counts)).all(axis=2)
        states = np.where(exists, (before * self._strides).sum(axis=2), -1)
        return states[pairs.ravel()]

    def steps(self, a: Array, b: Array) -> Array:
        """Return the steps from a to b, whole turns of endless joints left out."""
        step = b - a
        return np.where(self.endless, step - math.tau * np.round(step / math.tau), step)

    def unwound(self, q: Array, start: Array | None) -> Array:
        """Return a way, (count, n), on which no endless joint turns needlessly."""
        q = np.where(self.several, np.clip(q, self._lower, self._upper), q)
        came = q[:1] if start is None else start[None]
        steps = np.diff(q, axis=0, prepend=came)
        turns = np.cumsum(np.round(steps / math.tau), axis=0)
        return np.where(self.endless, q - math.tau * turns, q)


def through(
    layers: Candidates,
    turns: WholeTurns,
    largest_step: float | Array,
    start: Array | None,
    weights: Array | None = None,
) -> Candidates:
    """Return the way through layers that `shortest` finds, one candidate for each pose.

    Where no candidate succeeds, the first is returned.
    """
    chosen = np.zeros(len(layers.q), np.int64)
    some = np.flatnonzero(layers.success.any(axis=1))
    q = layers.q[:, 0].copy()
    if some.size:
        most = np.broadcast_to(largest_step, q.shape)[some]
        if weights is None:
            weights = np.ones_like(turns.endless, np.float64)
        some_layers = layers.at(some)
        chosen[some], q[some] = shortest(some_layers, turns, most, start, weights)
    way = layers.chosen(chosen)
    way.q[:, 0] = q
    return way


def shortest(
    layers: Candidates,
    turns: WholeTurns,
    largest_step: Array,
    start: Array | None,
    weights: Array,
) -> tuple[Indices, Array]:
    """Return the way with the fewest jumps, and of those the least squares of steps.

    It is found by dynamic programming (Viterbi 1967) over the answers of each layer in
    each of their turns; a jump is a step of a joint by more than `largest_step`.

    Args:
        layers: At least one, each with an answer.
        turns: Which multiples of 2 pi the joints may be apart.
        largest_step: Of each joint to each layer, shape (count, n) [m or rad].
        start: Where the arm comes from, shape (n,).
        weights: How much a step of each joint counts, shape (n,).

    Returns:
        Which answer of each layer, shape (count,), and q there, shape (count, n).
    """
    # More than all steps together, so that jumps are counted first; among jumps the
    # shorter ones are better.
    most = min(float((largest_step * weights).max()), 100.0)
    jump = 2.0 * (1.0 + (len(layers.q) + 1) * most * most)

    def jumped(size: Array) -> Array:
        return jump * (1.0 + 1e-6 * np.minimum(size, 1e3))

    width = len(turns.grid)
    known: list[tuple[Indices, Array]] = []  # of each layer: which answers, lowest q
    back: list[Indices] = []  # of each layer: the state before each state
    cost, full = np.zeros(0), np.zeros(0)
    for k, success in enumerate(layers.success):
        which = np.flatnonzero(success)
        q = turns.lowest(layers.q[k, which])
        now, within = turns.states(q)
        entered = np.full((len(q), width), np.inf)
        source = np.zeros((len(q), width), np.int64)
        if k:
            before = known[-1][1]
            _enter(cost, before, q, turns, largest_step[k], weights, entered, source)
            least = int(cost.argmin())
            from_least = turns.steps(full.reshape(-1, q.shape[1])[least], now)
            size = (weights * np.abs(from_least)).max(axis=2)
            leap = cost.flat[least] + jumped(size)
            source[leap < entered] = least
            entered = np.minimum(entered, leap)
        elif start is None:
            entered[:] = 0.0
        else:
            steps = np.abs(turns.steps(start, now))
            size = (weights * steps).max(axis=2)
            is_small = (steps <= largest_step[0]).all(axis=2)
            entered = np.where(is_small, size * size, jumped(size))
        cost, full = np.where(within, entered, np.inf), now
        known.append((which, q))
        back.append(source)
    chosen, way = _read_back(known, back, turns, int(cost.argmin()))
    return chosen, turns.unwound(way, start)


def _read_back(
    known: list[tuple[Indices, Array]],
    back: list[Indices],
    turns: WholeTurns,
    state: int,
) -> tuple[Indices, Array]:
    """Return the answers of the way that ends in a state, and q there.

    Args:
        known: Of each layer which answers succeed, and the lowest q of these.
        back: Of each layer the state before each state.
        turns: Which multiples of 2 pi the joints may be apart.
        state: The state of the last layer.
    """
    chosen = np.empty(len(known), np.int64)
    way = np.empty((len(known), turns.grid.shape[1]))
    for k in range(len(known) - 1, -1, -1):
        which, q = known[k]
        answer, turn = divmod(state, len(turns.grid))
        chosen[k] = which[answer]
        way[k] = q[answer] + math.tau * turns.grid[turn]
        state = int(back[k][answer, turn])
    return chosen, way


def _enter(
    cost: Array,
    before: Array,
    q: Array,
    turns: WholeTurns,
    largest_step: Array,
    weights: Array,
    entered: Array,
    source: Indices,
) -> None:
    """Write the least cost at which states are entered without a jump, and from where.

    Args:
        cost: Of the states before, shape (a, states).
        before: Lowest q of the answers before, shape (a, n).
        q: Of those now, shape (b, n).
        turns: Which multiples of 2 pi the joints may be apart.
        largest_step: Above which a step of each joint is a jump, shape (n,).
        weights: How much a step of each counts, shape (n,).
        entered: Written, shape (b, states).
        source: Written, shape (b, states).
    """
    a, b, size = turns.pairs(before, q, largest_step, weights)
    if not len(a):
        return
    # Pairs come in the order of b, so those that enter one answer are a run, over which
    # `reduceat` takes the least; of equal ones the first counts.
    state = turns.sources(q[b] - before[a])
    total = np.where(
        state >= 0, cost[a[:, None], state] + (size * size)[:, None], np.inf
    )
    firsts = np.flatnonzero(np.diff(b, prepend=-1))
    least = np.minimum.reduceat(total, firsts, axis=0)
    group = np.cumsum(np.diff(b, prepend=-1) > 0) - 1
    pairs = np.where(total == least[group], np.arange(len(b))[:, None], len(b))
    pair = np.minimum.reduceat(pairs, firsts, axis=0)
    entered[b[firsts]] = least
    width = cost.shape[1]
    columns = np.arange(width, dtype=np.int64)
    source[b[firsts]] = a[pair] * width + np.maximum(state[pair, columns], 0)
