"""Pairs of links that are tested for collision, and the reason for any pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from armillary.model.rules import Rule

__all__ = ["PairDecision", "Pairs"]

Indices = npt.NDArray[np.int64]


class PairDecision(NamedTuple):
    """Whether a pair is tested, and why.

    Attributes:
        tested: Whether it is.
        reason: Why, in a few words.
        rule: The rule that decides, None where none does.
        is_carried: Whether it is not tested because one carries the other.
    """

    tested: bool
    reason: str
    rule: Rule | None = None
    is_carried: bool = False

    def __str__(self) -> str:
        rule = f" by the rule: {self.rule}" if self.rule is not None else ""
        return f"{'tested' if self.tested else 'not tested'}: {self.reason}{rule}"


class Pairs(Sequence[tuple[str, str]]):
    """Pairs of links as qualified names, each once, sorted, the lesser name first.

    Obstacles of a check come behind the links of its cell, and their pairs behind those
    of links.

    Attributes:
        links: Names of the links with shapes, sorted.
        indices: The pairs as places in `links`, shape (k, 2), read-only.
    """

    __slots__ = ("_code_of", "_is_sorted", "_why", "indices", "links")

    def __init__(
        self,
        links: tuple[str, ...],
        codes: Indices,
        code_of: Callable[[str, str], int | None],
        why: Callable[[str, str], PairDecision],
        *,
        is_sorted: bool = True,
    ) -> None:
        """Hold the pairs of some codes: i n + j for the pair i < j of n links.

        code_of: Tells the code of two qualified names, None where they make no pair.
        why: Tells of any pair whether it is tested, and why.
        is_sorted: Whether the codes are.
        """
        self.links = links
        count = max(1, len(links))
        self.indices: Indices = np.stack([codes // count, codes % count], axis=-1)
        self.indices.flags.writeable = False
        self._code_of = code_of
        self._why = why
        self._is_sorted = is_sorted

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, place: int) -> tuple[str, str]: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[tuple[str, str], ...]: ...

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return tuple(self._named(self.indices[place]))
        a, b = self.indices[place]
        return self.links[a], self.links[b]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return self._named(self.indices)

    def __contains__(self, pair: object) -> bool:
        match pair:
            case (str(a), str(b)):
                code = self._code_of(a, b)
            case _:
                return False
        if code is None:
            return False
        i, j = divmod(code, len(self.links))
        if not self._is_sorted:
            return bool((self.indices == (i, j)).all(axis=1).any())
        row = np.searchsorted(self.indices[:, 0], [i, i + 1])
        column = self.indices[row[0] : row[1], 1]
        place = int(np.searchsorted(column, j))
        return place < len(column) and int(column[place]) == j

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs):
            return NotImplemented
        return len(self) == len(other) and (
            np.array_equal(self.indices, other.indices)
            if self.links == other.links
            else all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"<{len(self)} pairs of {len(self.links)} links>"

    def _named(self, indices: Indices) -> Iterator[tuple[str, str]]:
        links = self.links
        pairs: list[list[int]] = indices.tolist()
        return ((links[a], links[b]) for a, b in pairs)

    def part(self, which: Indices) -> Pairs:
        """Return some of the pairs; `why` still explains all pairs of the cell.

        which: Their positions, sorted, shape (k,).
        """
        codes = self.indices[which] @ np.array([max(1, len(self.links)), 1])
        return Pairs(
            self.links, codes, self._code_of, self._why, is_sorted=self._is_sorted
        )

    def extended(
        self,
        names: tuple[str, ...],
        places: Indices,
    ) -> Pairs:
        """Return the pairs with those of links with obstacles behind them.

        Args:
            names: The names of the obstacles, which come behind those of links.
            places: Their pairs: a link of each, and an obstacle, as places in both
                together, shape (k, 2).
        """
        made = self._copied()
        made.links = (*self.links, *names)
        made.indices = np.concatenate([self.indices, places])
        made.indices.flags.writeable = False
        return made

    def _copied(self) -> Pairs:
        made = object.__new__(Pairs)  # sooner than `copy`
        made.links, made.indices = self.links, self.indices
        made._code_of, made._why = self._code_of, self._why
        made._is_sorted = self._is_sorted
        return made

    def with_obstacles(
        self, names: tuple[str, ...], before: Pairs, qualified: Callable[[str], str]
    ) -> Pairs:
        """Return pairs that were `extended` with these names of obstacles.

        Args:
            names: The names.
            before: The pairs of links alone.
            qualified: Returns the link that a name is of.
        """
        own = len(before.links)
        made = self._copied()
        made.links = links = (*before.links, *names)
        made._is_sorted = False
        count = len(links)

        def code_of(a: str, b: str) -> int | None:
            obstacles = [links.index(x, own) for x in (a, b) if x in names]
            others = [x for x in (a, b) if x not in names]
            if not obstacles:
                code = before._code_of(a, b)
                i, j = divmod(code or 0, max(1, own))
                return None if code is None else i * count + j
            if len(others) != 1 or others[0] not in before.links:
                return None
            return before.links.index(others[0]) * count + obstacles[0]

        def why(a: str, b: str) -> PairDecision:
            if not {a, b} & {*names}:
                return before._why(a, b)
            if {a, b} <= {*names}:
                return PairDecision(False, "obstacles are not tested with each other")
            if tuple(x if x in names else qualified(x) for x in (a, b)) in made:
                return PairDecision(True, "obstacles are tested with what moves")
            return PairDecision(False, "they may touch, or the link does not move")

        made._code_of, made._why = code_of, why
        return made

    def why(self, a: str, b: str) -> PairDecision:
        """Return whether a pair of links is tested, and why.

        a, b: Links, or frames on them, bare or qualified.

        Raises:
            UnknownName: There is no such link.
            ModelError: A bare name is not unique.
        """
        return self._why(a, b)
