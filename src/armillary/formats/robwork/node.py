"""RobWork's frames as files give them, before they become links and frames of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.robwork.notes import Notes
from armillary.formats.xml import Element
from armillary.model.coupling import Coupling
from armillary.model.joint import Joint
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.shape import Shape
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["SEPARATOR", "WORLD_FRAME", "Depend", "Node", "Scope", "Step"]

WORLD_FRAME: Final = "WORLD"
"""The name of the world in RobWork."""

SEPARATOR: Final = "."

Scope = tuple[str, ...]
"""The device and the chains around a frame, whose names stand before its own."""


@dataclass(frozen=True, slots=True)
class Step:
    """One coordinate of a joint: what it adds to the frame's name, and how it moves.

    The last step of a joint adds nothing.
    """

    suffix: str
    joint: Joint


@dataclass(frozen=True, slots=True)
class Depend:
    """Which joint a joint follows, as written, and how."""

    on: str
    gain: float
    offset: float
    place: Place


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """A frame of RobWork.

    Attributes:
        element: That declares it.
        scope: The device and chains around it.
        name: As written.
        refframe: As written; empty if not given.
        type: `Fixed`, `Movable`, `EndEffector` or the type of a joint.
        daf: Whether it may be attached to other frames.
        pose: Constant pose in its parent, X_PF for a frame that does not move.
        steps: The coordinates of a joint, innermost first; the first holds the pose.
        passive: Whether the joint is none of the device's own.
        depend: Which joint it follows.
        coupling: The same, once that joint is known.
        parent: Full name of the frame that it hangs on, once that is known.
        limits: Of a joint with one coordinate.
        visuals: What is drawn.
        collisions: What may touch.
        notes: What else is said of it.
        full_name: Unique in the workcell: `Device.Chain.Frame`.
        local_name: Unique in the device: `Chain.Frame`.
    """

    element: Element
    scope: Scope
    name: str
    refframe: str = ""
    type: str = "Fixed"
    daf: bool = False
    pose: Pose = IDENTITY
    steps: tuple[Step, ...] = ()
    passive: bool = False
    depend: Depend | None = None
    coupling: Coupling | None = None
    parent: str = ""
    limits: Limits = UNLIMITED
    visuals: list[Shape] = field(default_factory=list[Shape])
    collisions: list[Shape] = field(default_factory=list[Shape])
    notes: Notes = field(default_factory=Notes)
    full_name: str = field(init=False)
    local_name: str = field(init=False)

    def __post_init__(self) -> None:
        """Put the names together."""
        self.full_name = SEPARATOR.join((*self.scope, self.name))
        self.local_name = SEPARATOR.join((*self.scope[1:], self.name))

    @property
    def place(self) -> Place:
        """Return where it is declared."""
        return self.element.place

    @property
    def moves(self) -> bool:
        """Return whether it is a joint."""
        return bool(self.steps)

    @property
    def coordinate(self) -> str:
        """Return the name of the coordinate of a joint that has one."""
        return self.notes.coordinate or self.local_name

    @property
    def is_movable(self) -> bool:
        """Return whether a state may put it elsewhere."""
        return self.daf or self.type == "Movable"

    @property
    def is_bare(self) -> bool:
        """Return whether it only marks a place: it has no body and does not move."""
        return not (self.moves or self.visuals or self.collisions)

    @property
    def is_untouched(self) -> bool:
        """Return whether nothing is said of it."""
        return not (self.visuals or self.collisions or self.notes.all)

    def __str__(self) -> str:
        return f"frame {quote(self.full_name)}"
