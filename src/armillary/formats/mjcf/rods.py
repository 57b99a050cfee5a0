"""Rods of loops: a tendon between two sites whose length a constraint holds.

MuJoCo measures tendons from their length where all joints are as in the file. With one
tendon it holds `L1 = L1_0 + c0`, with two `L1 = L1_0 + c0 + c1 (L2 - L2_0)`. The second
one is that of a joint whose coordinate is added to the length of the rod.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from armillary.formats.diagnostic import Report
from armillary.formats.elements import TEXT, ElementTable, Row, numbers
from armillary.formats.mjcf.document import MAIN, MjcfDocument
from armillary.formats.planar_loops import opened
from armillary.formats.xml import Element, tag
from armillary.model.link_poses import poses_of
from armillary.model.loops.equations import PlacedLoop
from armillary.model.loops.loop import Rod
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.vector import norm

__all__ = [
    "LINEAR",
    "RodElements",
    "all_coefficients",
    "lengths_at_zero",
    "rod_elements",
    "rods_of",
]

LINEAR: Final = (0.0, 1.0, 0.0, 0.0, 0.0)
"""Coefficients of constraints that give none: one follows the other."""

PULLS: Final = {"stiffness", "damping", "range", "frictionloss", "armature"}
"""Attributes of a tendon by which it does more than keep a length."""

CLOSE: Final = 1e-9
"""Lengths [m] that differ by less are the same; the one that was written counts."""

HELD: Final = ElementTable[Report](
    "tendon",
    Row("name", TEXT, default=""),
    Row("tendon1", TEXT),
    Row("tendon2", TEXT, default=None),
    Row("polycoef", numbers(None), default=LINEAR),
)
"""The constraint, as it is read and written."""


def all_coefficients(values: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the `polycoef` of a constraint; what it leaves out is that of `LINEAR`."""
    given = tuple(values["polycoef"] or LINEAR)
    return (*given, *LINEAR[len(given) :])


@dataclass(frozen=True, slots=True)
class RodElements:
    """The elements that make a rod.

    Attributes:
        element: The constraint, with its defaults.
        tendon: The spatial tendon, with its defaults.
        joint: The name of the joint that adds to the length; empty without one.
        constant: How much longer the rod is than the tendon is in the file [m], where
            that joint is at its `ref`.
        used: The elements of the file that the rod stands for.
    """

    element: Element
    tendon: Element
    joint: str
    constant: float
    used: tuple[Element, ...]

    @property
    def sites(self) -> tuple[str, str]:
        """Return the names of the sites at its ends."""
        one, other = (each.attributes["site"] for each in self.tendon.children)
        return one, other

    def length(self, found: float, report: Report) -> float:
        """Return the length of the rod.

        found: That which follows from the sites. The rest length, which has no effect
            without a stiffness, is the same number before rounding.
        """
        rest = self.tendon.numbers("springlength", None, report) or (math.inf,)
        return rest[0] if abs(rest[0] - found) < CLOSE else found


def rods_of(document: MjcfDocument) -> Iterator[RodElements]:
    """Yield the rods of a model: constraints of tendons that nothing else uses."""
    tendons = {
        each.attributes["name"]: each
        for each in document.sections.get("tendon", [])
        if "name" in each.attributes
    }
    users = [
        each.attributes.get(key, "")
        for section in ("actuator", "sensor", "equality")
        for each in document.sections.get(section, [])
        for key in ("tendon", "tendon1", "tendon2")
    ]
    for element in document.sections.get("equality", []):
        if element.name != "tendon":
            continue
        effective = document.effective(element, "equality", MAIN)
        values = HELD.read(effective, document.report)
        one = tendons.get(values["tendon1"] or "")
        coefficients = all_coefficients(values)
        is_active = effective.attributes.get("active", "true") == "true"
        if one is None or not is_active or not _is_straight(one):
            continue
        used = [element, one]
        joint = ""
        if values["tendon2"] is not None:
            other = tendons.get(values["tendon2"])
            term = None if other is None else _single_term(other)
            if other is None or term is None or any(coefficients[2:]):
                continue
            # L1 = L1_0 + c0 + c1 k (q - ref), where q adds to the length if c1 k = 1.
            joint, coefficient = term
            if abs(coefficients[1] * coefficient - 1.0) > CLOSE:
                continue
            used.append(other)
        # Tendons that motors, sensors or other constraints refer to stay tendons.
        names = {each.attributes.get("name") for each in used[1:]}
        if sum(name in names for name in users) != len(used) - 1:
            continue
        tendon = document.effective(one, "tendon", MAIN)
        yield RodElements(effective, tendon, joint, coefficients[0], tuple(used))


def _is_straight(tendon: Element) -> bool:
    """Return whether a tendon runs from one site to another, and pulls at nothing."""
    return (
        tendon.name == "spatial"
        and [each.name for each in tendon.children] == ["site", "site"]
        and all("site" in each.attributes for each in tendon.children)
        and not PULLS & tendon.attributes.keys()
    )


def _single_term(tendon: Element) -> tuple[str, float] | None:
    """Return the joint of a fixed tendon and its coefficient, if there is only one."""
    if tendon.name != "fixed" or len(tendon.children) != 1:
        return None
    (term,) = tendon.children
    try:
        return term.attributes["joint"], float(term.attributes["coef"])
    except (KeyError, ValueError):
        return None


# Written


def lengths_at_zero(cell: Workcell) -> list[float]:
    """Return the distance of the ends of each loop where all joints are at zero [m].

    Those of manipulators come first; joints that follow others are at zero, too.
    """
    free = opened(cell)
    tree = Tree.of(free)
    q = [0.0] * len(free.joint_names)

    def length(loop: PlacedLoop) -> float:
        (pose,) = poses_of(tree, q, [loop.b], loop.a)
        return float(norm(pose.position))

    return [length(loop) for loop in cell.joints.placed_loops]


def rod_elements(
    rod: Rod,
    name: str,
    sites: tuple[str, str],
    joint: str,
    at_zero: float,
) -> tuple[list[Element], Element]:
    """Return the tendons of a rod, and the constraint that holds their length.

    Args:
        rod: The rod.
        name: Of the tendon.
        sites: The names of those at its ends.
        joint: The name of the joint that adds to the length, empty without one.
        at_zero: The length of the tendon where all joints are at zero [m].
    """
    ends = [tag("site", {"site": each}) for each in sites]
    tendons = [tag("spatial", {"name": name, "springlength": rod.length}, *ends)]
    second = None
    if joint:
        second = f"{name}_{joint}"
        term = tag("joint", {"joint": joint, "coef": 1.0})
        tendons.append(tag("fixed", {"name": second}, term))
    coefficients = rod.length - at_zero, 1.0 if joint else 0.0, 0.0, 0.0, 0.0
    return tendons, HELD.write(
        name=rod.name, tendon1=name, tendon2=second, polycoef=coefficients
    )
