"""What closes a loop of links: frames that coincide, or a rod between two."""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec

from armillary.errors import ModelError, quote

__all__ = ["Closure", "Loop", "Rod", "store_loops"]


class Loop(msgspec.Struct, frozen=True, tag_field="loop"):
    """A constraint between two frames, which makes the joints between them a loop.

    Attributes:
        a: A frame: its name in the manipulator, or `manipulator/frame` in a cell.
        b: Another frame, on another link.
    """

    a: str
    b: str

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return f"the {type(self).__name__} of {quote(self.a)} and {quote(self.b)}"

    @property
    def joint(self) -> str:
        """Return the joint whose coordinate it takes, if it takes one."""
        return ""

    def scaled(self, factor: float) -> Any:
        """Return it with all lengths `factor` times as long."""
        return self


class Closure(Loop, frozen=True, tag="closure"):
    """Two frames coincide, in all or some directions, in the axes of `a`.

    A ball joint closes the position alone, a hinge about z the position and the
    rotations `xy`, a weld everything.

    Attributes:
        a: A frame: its name in the manipulator, or `manipulator/frame` in a cell.
        b: The frame that coincides with it.
        position: The directions x, y, z in which the origins coincide, such as `xy`.
        rotation: The axes about which `b` is not turned: two of them make the third
            axes parallel, three all axes.
        name: For messages; may be empty.
    """

    position: str = "xyz"
    rotation: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        """Check the axes.

        Raises:
            ModelError: They are not letters of xyz, each once, or there are none.
        """
        for what in ("position", "rotation"):
            text = getattr(self, what)
            if not set(text) <= set("xyz") or len(set(text)) < len(text):
                raise ModelError(
                    f"In {self.label} {what}= takes letters of 'xyz', each once; not "
                    f"{quote(text)}."
                )
        if not self.position and not self.rotation:
            raise ModelError(
                f"Nothing coincides in {self.label}: name axes in position= or "
                "rotation=."
            )

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return f"loop {quote(self.name)}" if self.name else super().label


class Rod(Loop, frozen=True, tag="rod"):
    """A rod with a ball at each end: the origins of two frames keep a distance.

    The distance is `length`, plus the coordinate of a joint in metres for a rod that
    telescopes, such as the leg of a hexapod.

    Attributes:
        a: A frame: its name in the manipulator, or `manipulator/frame` in a cell.
        b: The frame at the other end.
        length: The distance of their origins [m].
        by: Name of a joint whose coordinate is added to it; none where it is empty.
        name: For messages; may be empty.
    """

    length: float = 0.0
    by: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        """Check the length.

        Raises:
            ModelError: It is not finite, or not above 0 with no joint to add to it.
        """
        try:
            length = float(self.length)
        except (TypeError, ValueError):
            length = math.nan
        if not math.isfinite(length):
            raise ModelError(
                f"The length of {self.label} is {self.length!r}; it must be a number "
                "of metres. A rod that telescopes names its joint in by=."
            )
        if length <= 0.0 and not self.by:
            raise ModelError(f"The length of {self.label} is {length}; it must be > 0.")
        msgspec.structs.force_setattr(self, "length", length)

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return f"rod {quote(self.name)}" if self.name else super().label

    @property
    def joint(self) -> str:
        """Return the joint whose coordinate it takes, if it takes one."""
        return self.by

    def scaled(self, factor: float) -> Rod:
        """Return it `factor` times as long."""
        return msgspec.structs.replace(self, length=self.length * factor)


def store_loops(struct: Any) -> None:
    """Store the field `loops` of a struct that is being made as a tuple.

    Raises:
        ModelError: It is not a list of closures and rods.
    """
    given: Any = struct.loops
    is_list = isinstance(given, (list, tuple))
    loops: tuple[Any, ...] = tuple(cast(Any, given)) if is_list else (None,)
    if all(isinstance(each, Loop) for each in loops):
        msgspec.structs.force_setattr(struct, "loops", loops)
        return
    raise ModelError(
        "loops= takes a list of loops, such as [Closure('tip', 'end')] or "
        f"[Rod('a', 'b', length=0.5)]; not {given!r}."
    )
