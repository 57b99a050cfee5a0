"""Limits that couple joints: bounds of a weighted sum of their coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy.typing as npt

from armillary.errors import ArmillaryError, ModelError, quote
from armillary.model.drive import Drive
from armillary.model.fields import EMPTY, Floats, store_tuples
from armillary.model.limit_rows import LimitRows
from armillary.model.link import Link

if TYPE_CHECKING:
    from armillary.model.fields import TypedField

    Joints = TypedField[tuple[str, ...], Sequence[str] | Mapping[str, float]]
else:
    Joints = tuple[str, ...]

__all__ = [
    "CoupledLimit",
    "Driven",
    "coupled_faults",
    "limit_rows_of",
    "linear_drive",
    "no_room",
]

INFINITE: Final = math.inf

Driven = Callable[[str], Drive]
"""What finds how q moves a joint of a name; it raises where nothing linear does."""


class CoupledLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Keep lower <= sum_k coefficients_k q_k <= upper, for some joints.

    On a palletiser whose rods are driven from the base it is the angle between upper
    arm and forearm that is limited, which is the sum or the difference of two joints.

    Attributes:
        joints: Names of joints; or, where a limit is made, their coefficients by name,
            as in `joints={"j2": 1.0, "j3": 1.0}`.
        coefficients: One for each joint, not all of them 0.
        lower: Least value of the sum; infinite where there is none. Its unit is that of
            the coefficients times the joints': m or rad for coefficients of 1.
        upper: Greatest value of the sum, likewise.
        name: For messages; by default the sum.
    """

    joints: Joints
    coefficients: Floats = EMPTY
    lower: float = -INFINITE
    upper: float = INFINITE
    name: str = ""

    def __post_init__(self) -> None:
        """Store plain numbers and check them.

        Raises:
            ModelError: A number is not finite, a joint has no name, all coefficients
                are 0, or there is not one for each joint; a joint is named twice;
                neither limit is given, or lower is not below upper.
        """
        given: Any = self.joints
        if isinstance(given, Mapping):
            pairs = cast("Mapping[str, float]", given)
            if self.coefficients:
                raise ModelError(
                    f"{self._label} has coefficients in joints= and in coefficients=; "
                    "leave those out."
                )
            put = msgspec.structs.force_setattr
            put(self, "joints", tuple(pairs.keys()))
            put(self, "coefficients", tuple(pairs.values()))
        if isinstance(given, str):
            raise ModelError(f"{self._label} takes a list of joints, not {given!r}.")
        store_tuples(self, "joints")
        for name in ("coefficients", "lower", "upper"):
            self._store(name)
        fault = self._fault()
        if fault:
            raise ModelError(f"{self._label} {fault}")

    def _store(self, name: str) -> None:
        value = getattr(self, name)
        try:
            plain = tuple(map(float, value)) if name == "coefficients" else float(value)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{self._label} takes numbers for {name}, not {value!r}."
            ) from error
        msgspec.structs.force_setattr(self, name, plain)

    def _fault(self) -> str:
        """Return what is wrong, empty if nothing is."""
        return self._sum_fault() or self._limit_fault()

    def _sum_fault(self) -> str:
        joints, coefficients = self.joints, self.coefficients
        for joint in cast("tuple[Any, ...]", joints):
            if not isinstance(joint, str):
                return f"takes names of joints, not {joint!r}."
        if len(joints) != len(coefficients):
            return (
                f"names {len(joints)} joints and has {len(coefficients)} coefficients; "
                'give one for each, as in joints={"j2": 1.0, "j3": 1.0}.'
            )
        if len(set(joints)) < len(joints):
            return "names a joint twice; add its coefficients."
        if not all(map(math.isfinite, coefficients)):
            return f"has a coefficient that is not finite: {coefficients}."
        if not any(coefficients):
            return "has no coefficient other than 0, so it limits nothing."
        return ""

    def _limit_fault(self) -> str:
        lower, upper = self.lower, self.upper
        if math.isnan(lower) or math.isnan(upper):
            return "has a limit that is NaN; leave it out instead."
        if lower == INFINITE or upper == -INFINITE:
            return f"leaves nothing: from {lower:g} to {upper:g}."
        if lower == -INFINITE and upper == INFINITE:
            return "has neither lower= nor upper=."
        if lower > upper:
            return f"is swapped: lower {lower:g} is above upper {upper:g}."
        if lower == upper:
            return (
                f"holds its sum at {lower:g}: give a joint a Coupling to the other "
                "instead."
            )
        return ""

    @property
    def label(self) -> str:
        """Return its name, else the sum that it limits."""
        return self.name or self.sum

    @property
    def sum(self) -> str:
        """Return what it limits, such as `j2 - 0.5 j3`."""
        text = ""
        for joint, c in zip(self.joints, self.coefficients, strict=False):
            sign = " - " if c < 0.0 else " + "
            size = "" if abs(c) == 1.0 else f"{abs(c):g} "
            text += f"{sign}{size}{joint}"
        return ("-" if text.startswith(" - ") else "") + text[3:]

    @property
    def _label(self) -> str:
        name = f" {quote(self.name)}" if self.name else ""
        return f"The coupled limit{name}"

    def __str__(self) -> str:
        ends = [""] * 2
        if self.lower > -INFINITE:
            ends[0] = f"{self.lower:g} <= "
        if self.upper < INFINITE:
            ends[1] = f" <= {self.upper:g}"
        return f"{ends[0]}{self.sum}{ends[1]}"

    def scaled(self, rates: Sequence[float]) -> CoupledLimit:
        """Return the limit of joints whose coordinates are multiplied.

        rates: By how much, for each joint.
        """
        # c q = (c / rate) q', all times the first rate: lengths alone keep their c.
        first = rates[0]
        return msgspec.structs.replace(
            self,
            coefficients=tuple(
                c * first / rate
                for c, rate in zip(self.coefficients, rates, strict=True)
            ),
            lower=self.lower * first,
            upper=self.upper * first,
        )


def limit_rows_of(
    limits: Sequence[tuple[str, CoupledLimit]], driven: Driven, count: int
) -> LimitRows:
    """Return limits as rows A q <= b, an upper limit before the lower one.

    Args:
        limits: With the label of each for messages.
        driven: How q moves a joint.
        count: How many coordinates q has.

    Raises:
        ArmillaryError: A joint cannot be found, or is not linear in q; or what remains
            of a sum, some of whose joints follow others, is 0.
    """
    rows: list[list[float]] = []
    ends: list[float] = []
    labels: list[str] = []
    for label, limit in limits:
        row, offset = [0.0] * count, 0.0
        for joint, c in zip(limit.joints, limit.coefficients, strict=True):
            try:
                drive = driven(joint)
            except ArmillaryError as error:
                raise type(error)(
                    f"The coupled limit {quote(label)}: {error}"
                ) from error
            row[drive.of] += c * drive.multiplier
            offset += c * drive.offset
        if not any(row):
            raise ModelError(
                f"The coupled limit {quote(label)} limits nothing: its joints follow "
                "others, and their sum is constant."
            )
        for side, end in ((1.0, limit.upper), (-1.0, limit.lower)):
            if math.isfinite(end):
                rows.append([side * c + 0.0 for c in row])  # no -0.0
                ends.append(side * (end - offset))
                labels.append(label)
    return LimitRows.of(rows, ends, labels, count)


def linear_drive(joint: str, link: Link, drives: Sequence[Drive], count: int) -> Drive:
    """Return how q moves a joint, where that is linear.

    Args:
        joint: Its name, for messages.
        link: The link that it moves.
        drives: What moves it, by places in q and behind that of passive joints.
        count: How many coordinates q has.

    Raises:
        ModelError: It is fixed, a mechanism, or determined by loops.
    """
    if not link.has_coordinate:
        why = "is a mechanism" if link.moves else "is fixed"
        raise ModelError(f"Joint {quote(joint)} {why}, so it has no coordinate.")
    (drive,) = drives
    if drive.of >= count:
        raise ModelError(
            f"Joint {quote(joint)} is passive: loops determine it, so it is not linear "
            "in q. Limit the joints that move it, or give it limits of its own."
        )
    return drive


def no_room(rows: LimitRows, lower: npt.ArrayLike, upper: npt.ArrayLike) -> str:
    """Return why limits leave joints no room, empty where they do.

    Args:
        rows: The rows.
        lower: Least coordinates, shape (n,).
        upper: Greatest coordinates, shape (n,).
    """
    room = rows.room_within(lower, upper)
    if room.radius > 0.0:
        return ""
    names = ", ".join(map(quote, dict.fromkeys(rows.labels)))
    return (
        f"The coupled limits {names} leave no room within the limits of their joints: "
        "no q meets all of them, or only some on the edge of both."
    )


def coupled_faults(
    limits: Sequence[CoupledLimit], driven: Driven
) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with the limits of a manipulator: in which, a sentence."""
    seen: set[str] = set()
    for place, limit in enumerate(limits):
        if limit.name and limit.name in seen:
            text = f"Two coupled limits are called {quote(limit.name)}; rename one."
            yield place, text
        seen.add(limit.name)
        for joint in limit.joints:
            try:
                driven(joint)
            except ArmillaryError as error:
                yield place, f"The coupled limit {quote(limit.label)}: {error}"
