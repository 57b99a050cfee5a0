"""Named joint positions: a manipulator at home, at rest, with its fingers open."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from armillary.errors import ModelError, quote
from armillary.model.fields import EMPTY, Floats, TupleOf, store_tuples


class Posture(msgspec.Struct, frozen=True, kw_only=True):
    """Joint positions that have a name; joints that it leaves out may be anywhere.

    Attributes:
        name: Unique in its manipulator.
        joints: Names of joints of the manipulator that have a place in q.
        q: Their positions, in the same order [m or rad].
    """

    name: str
    joints: TupleOf[str] = EMPTY
    q: Floats = EMPTY

    def __post_init__(self) -> None:
        """Store plain numbers and check them.

        Raises:
            ModelError: A position is not a finite number, a joint is named twice, or
                there are more joints than numbers, or fewer.
        """
        try:
            q = tuple(map(float, self.q))
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"Posture {quote(self.name)} takes numbers, not {self.q!r}."
            ) from error
        store_tuples(self, "joints")
        msgspec.structs.force_setattr(self, "q", q)
        if len(q) != len(self.joints):
            raise ModelError(
                f"Posture {quote(self.name)} has {len(q)} positions for "
                f"{len(self.joints)} joints."
            )
        if len(set(self.joints)) < len(q):
            raise ModelError(f"Posture {quote(self.name)} names a joint twice.")
        if not all(map(math.isfinite, q)):
            raise ModelError(
                f"Posture {quote(self.name)} holds a number that is not finite: {q}."
            )


def posture_faults(
    postures: Sequence[Posture], joint_names: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with the postures of a manipulator: in which, a sentence.

    joint_names: Of the joints that have a place in q.
    """
    known = set(joint_names)
    seen: set[str] = set()
    for place, posture in enumerate(postures):
        if posture.name in seen:
            yield place, f"Two postures are called {quote(posture.name)}; rename one."
        seen.add(posture.name)
        for joint in posture.joints:
            if joint not in known:
                yield (
                    place,
                    f"Posture {quote(posture.name)} names the joint {quote(joint)}, "
                    "which has no place in q here.",
                )
