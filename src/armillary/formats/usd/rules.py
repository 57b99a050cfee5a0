"""Rules of collisions: filtered pairs, collision groups, robots against themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final

import msgspec

from armillary.formats.diagnostic import Severity
from armillary.formats.usd.joints import StageJoint
from armillary.formats.usd.scene import StagePrims
from armillary.limits import RULES
from armillary.model.rules import Rule, Rules
from armillary.model.workcell import DEFAULT_RULES

__all__ = ["SELF", "read_rules"]

SELF: Final = "physxArticulation:enabledSelfCollisions"
FILTERED: Final = "physics:filteredPairs"
REASON: Final = "usd"


def read_rules(
    scene: StagePrims,
    owners: Mapping[str, str],
    robots: Mapping[str, Sequence[str]],
    joints: Iterable[StageJoint],
) -> Rules:
    """Return the rules of a stage.

    Args:
        scene: The prims.
        owners: The full name of the link of each body and of each part that stands
            still, by its path.
        robots: Paths of the bodies of each manipulator of several links, by its name.
        joints: Of the stage.
    """
    rules: Rules = DEFAULT_RULES
    tested = [name for name, bodies in robots.items() if _is_tested(scene, bodies)]
    if tested:
        rules = rules.include_self(*tested)
    finder = _Finder(scene, owners)
    pairs: dict[tuple[str, str], bool] = {}
    for path, prim in scene.prims.items():
        for target in prim.targets.get(FILTERED, ()):
            finder.add(pairs, path, target)
        if prim.type == "PhysicsCollisionGroup":
            _add_group(scene, finder, pairs, path)
    for joint in joints:
        if joint.collides and all(body in owners for body in joint.bodies):
            one, other = (owners[body] for body in joint.bodies)
            pairs[one, other] = True
    listed = tuple(
        Rule(a=one, b=other, tested=tested, reason=REASON)
        for (one, other), tested in pairs.items()
    )
    if not listed:
        return rules
    return msgspec.structs.replace(rules, rules=(*rules.rules, *listed))


def _is_tested(scene: StagePrims, bodies: Sequence[str]) -> bool:
    """Return whether a robot is tested against itself: unless PhysX says no."""
    for body in bodies:
        for each in scene.above(body):
            prim = scene.prims.get(each)
            if prim is not None and prim.values.get(SELF) is not None:
                return prim.values[SELF] is not False
    return True


class _Finder:
    """Finds the links of what relationships name."""

    def __init__(self, scene: StagePrims, owners: Mapping[str, str]) -> None:
        self._scene = scene
        self._owners = owners
        self._found: dict[str, tuple[str, ...]] = {}

    def links(self, path: str) -> tuple[str, ...]:
        """Return the links in a prim, or else that of which it is a part."""
        if path not in self._found:
            inside = [
                name
                for each, name in self._owners.items()
                if each == path or each.startswith(f"{path}/")
            ]
            if not inside:
                above = (each for each in self._scene.above(path))
                inside = [self._owners[e] for e in above if e in self._owners][:1]
            self._found[path] = tuple(inside)
        return self._found[path]

    def add(self, pairs: dict[tuple[str, str], bool], one: str, other: str) -> None:
        """Add that what is in one prim is not tested against what is in another."""
        for a, b in product(self.links(one), self.links(other)):
            if a != b and (b, a) not in pairs and len(pairs) <= RULES.most:
                pairs[a, b] = False


def _add_group(
    scene: StagePrims, finder: _Finder, pairs: dict[tuple[str, str], bool], path: str
) -> None:
    """Add the pairs of a collision group and those that it filters."""
    prim = scene.prims[path]
    for name in ("physics:invertFilteredGroups", "physics:mergeGroup"):
        if prim.values.get(name):
            scene.report.unsupported.add(name, scene.at(path), Severity.WARNING)
    own = prim.targets.get("collection:colliders:includes", ())
    for target in prim.targets.get("physics:filteredGroups", ()):
        other = scene.prims.get(target)
        if other is None:
            scene.report.tolerating("it is left out").error(
                scene.at(path),
                "unknown-group",
                f"group <{path}> filters <{target}>, which is not there",
                hint=scene.report.hint(target, scene.prims),
            )
            continue
        others = other.targets.get("collection:colliders:includes", ())
        for one, two in product(own, others):
            finder.add(pairs, one, two)
