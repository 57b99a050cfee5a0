"""The prims of a stage with their poses, in metres and with z up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.files import read_bytes
from armillary.formats.usd.prim_lines import prim_lines
from armillary.formats.usd.process import PrimRecord, StageRecord
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.rotation import nearest_rotation
from armillary.spatial.vector import EYE, cross, dot, norm, rows, scale, snap_rows

__all__ = ["Affine", "PlacedPrim", "StagePrims", "has_schema", "placed_of"]

Array = npt.NDArray[np.float64]

Y_UP: Final = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""From axes of which y points up to those of which z does."""

SEARCHED: Final = 1 << 22
"""The largest size of another layer that is looked through for lines [bytes]."""
LARGEST: Final = 1e12
"""Of numbers in poses [m]."""
SHEAR: Final = 1e-5
"""The largest cosine between axes that still counts as a right angle."""

_ALWAYS_GIVEN: Final = {"physics:axis", "physics:lowerLimit", "physics:upperLimit"}
"""Attributes that joints of all types come with, see `child.py`."""

RIGID_BODY: Final = "PhysicsRigidBodyAPI"
ROOT: Final = "PhysicsArticulationRootAPI"


class Affine(NamedTuple):
    """A map of points: matrix @ point + origin."""

    matrix: Array
    origin: Array

    def then(self, inner: Affine) -> Affine:
        """Return the map of first `inner`, then this one."""
        origin = self.matrix @ inner.origin + self.origin
        return Affine(self.matrix @ inner.matrix, origin)


class PlacedPrim(NamedTuple):
    """A map as a pose after a scale.

    Attributes:
        pose: Rigid.
        scale: Along x, y, z before that; x is below 0 where the map is mirrored.
        is_sheared: Whether the two do not give the map.
    """

    pose: Pose
    scale: tuple[float, float, float]
    is_sheared: bool


def placed_of(affine: Affine) -> PlacedPrim:
    """Return a map as a pose after a scale, nearly where it is sheared.

    An axis without length gets that of a right-handed frame, and the scale 0.
    """
    a, b, c = (_three(column) for column in affine.matrix.T.tolist())
    x, y, z = affine.origin.tolist()
    position = x + 0.0, y + 0.0, z + 0.0
    sizes: list[float] = [float(norm(each)) for each in (a, b, c)]
    if min(sizes) == 0.0:
        return PlacedPrim(Pose(EYE, position), _three(sizes), False)
    a, b, c = (
        scale(1.0 / size, each) for size, each in zip(sizes, (a, b, c), strict=True)
    )
    if dot(cross(a, b), c) < 0.0:
        a, sizes[0] = scale(-1.0, a), -sizes[0]
    error = max(abs(float(dot(u, v))) for u, v in ((a, b), (a, c), (b, c)))
    turn = rows(
        tuple((u + 0.0, v + 0.0, w + 0.0) for u, v, w in zip(a, b, c, strict=True))
    )
    if error > 1e-12:
        turn = nearest_rotation(turn)
    return PlacedPrim(Pose(snap_rows(turn), position), _three(sizes), error > SHEAR)


def _three(values: Sequence[float]) -> tuple[float, float, float]:
    x, y, z = values
    return x, y, z


class _AskedValues(dict[str, Any]):
    """Values of attributes, which remember those that were asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def unread(self) -> list[str]:
        """Return the names with a namespace that nothing has asked for."""
        return [
            key
            for key in self
            if ":" in key and key not in self.asked and key not in _ALWAYS_GIVEN
        ]


def has_schema(prim: PrimRecord, schema: str) -> bool:
    """Return whether a schema is applied to a prim."""
    return schema in prim.schemas


class StagePrims:
    """The prims of a stage by their paths.

    path: The file, for messages.
    data: Its bytes; of text, messages say the line of a prim or an attribute.
    """

    def __init__(
        self, stage: StageRecord, path: str, report: Report, data: bytes = b""
    ) -> None:
        self.place: Final = Place(path)
        self._data = data
        self._layers = stage.layers
        self._known_lines: dict[str, dict[str, int]] = {}
        self.report: Final = report
        self._values = {p.path: _AskedValues(p.values) for p in stage.prims if p.values}
        self.prims: Final = {
            prim.path: msgspec.structs.replace(prim, values=self._values[prim.path])
            if prim.path in self._values
            else prim
            for prim in stage.prims
        }
        self.default: Final = stage.default
        self.metres: Final = self._unit("metersPerUnit", stage.metres)
        self.kilograms: Final = self._unit("kilogramsPerUnit", stage.kilograms)
        self._up = Y_UP if stage.up == "Y" else np.eye(3)
        if stage.up not in {"Y", "Z"}:
            message = f"the stage has {stage.up} up; it must be Y or Z"
            report.tolerating("it is read as Z").error(self.place, "bad-unit", message)
        up = rows(self._up)
        self.up_pose: Final = Pose(up, (0.0, 0.0, 0.0)) if stage.up == "Y" else IDENTITY
        self._affine: dict[str, Affine] = {}
        self._placed: dict[str, PlacedPrim] = {}
        self.bodies: Final = {
            path
            for path, prim in self.prims.items()
            if has_schema(prim, RIGID_BODY)
            and prim.values.get("physics:rigidBodyEnabled") is not False
        }
        self.roots: Final = {
            path for path, prim in self.prims.items() if has_schema(prim, ROOT)
        }

    def _lines(self, layer: str) -> dict[str, int]:
        """Return the lines of a layer, none of one that is not looked through."""
        if layer not in self._known_lines:
            lines: dict[str, int] = {}
            if not layer:
                lines = prim_lines(self._data)
            elif layer in self._layers:
                with suppress(FormatError):
                    lines = prim_lines(read_bytes(layer, SEARCHED))
            self._known_lines[layer] = lines
        return self._known_lines[layer]

    def at(self, path: str, name: str = "") -> Place:
        """Return the location of a prim, or of its attribute of a name.

        Its line is that in the strongest layer that is text and has it, or else that
        of the nearest prim above.
        """
        for each in self.above(path):
            prim = self.prims.get(each)
            specs = (prim.specs if prim is not None else ()) or (("", each),)
            names = [f".{name}", ""] if name and each == path else [""]
            for ending in names:
                for layer, spec in specs:
                    line = self._lines(layer).get(f"{spec}{ending}", 0)
                    if line:
                        return Place(layer or self.place.path, line, part=path)
        return Place(self.place.path, 0, part=path)

    def report_unread(self) -> None:
        """Report the attributes of physics that nothing has asked for."""
        for path, values in self._values.items():
            for name in values.unread():
                what = f"{quote(name)} of a {self.prims[path].type or 'prim'}"
                self.report.unsupported.add(what, self.at(path, name), Severity.NOTE)

    def _unit(self, name: str, value: float) -> float:
        if 1e-9 <= value <= 1e9:
            return value
        message = f"{name} is {value:g}, not a unit"
        self.report.tolerating("it is read as 1").error(self.place, "bad-unit", message)
        return 1.0

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """Return the paths below each prim, in their order."""
        below: dict[str, list[str]] = {}
        for path in self.prims:
            below.setdefault(parent_of(path), []).append(path)
        return below

    def affine(self, path: str) -> Affine:
        """Return the map from a prim to the world [m], z up.

        Raises:
            FormatError: It holds a number that is not finite.
        """
        if path not in self._affine:
            given = self.prims[path].pose if path in self.prims else ()
            if len(given) != 12:
                # Of what has no pose that of its parent counts.
                above = parent_of(path)
                if above:
                    return self.affine(above)
                given = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
            numbers = np.array(given).reshape(3, 4)
            if not (np.abs(numbers) <= LARGEST).all():
                self.report.error(
                    self.at(path),
                    "bad-number",
                    f"the pose of <{path}> holds a number that is not finite, or too "
                    "large",
                )
                numbers = np.eye(4)[:3]
            turned = self.metres * (self._up @ numbers)
            self._affine[path] = Affine(turned[:, :3], turned[:, 3])
        return self._affine[path]

    def placed(self, path: str) -> PlacedPrim:
        """Return the pose of a prim in the world, and the scale before it [m]."""
        if path not in self._placed:
            placed = placed_of(self.affine(path))
            if 0.0 in placed.scale:
                self.report.tolerating(
                    "its axes are taken as those of the world"
                ).error(self.at(path), "zero-scale", f"<{path}> is scaled by 0")
            self._placed[path] = placed
        return self._placed[path]

    def pose(self, path: str) -> Pose:
        """Return the rigid pose of a prim in the world, which an empty path is."""
        return self.placed(path).pose if path else IDENTITY

    def body_of(self, path: str) -> str:
        """Return the body that a prim is a part of, empty where it stands still."""
        while path and path not in self.bodies:
            path = parent_of(path)
        return path

    def above(self, path: str) -> Iterator[str]:
        """Yield a path and those of all prims above it."""
        while path:
            yield path
            path = parent_of(path)

    def name(self, path: str) -> str:
        """Return the name of a prim: that which users see, if it has one."""
        prim = self.prims.get(path)
        shown = prim.name.strip() if prim is not None else ""
        return shown or path.rpartition("/")[2]

    def component(self, path: str) -> str:
        """Return the nearest prim above that is one component, empty if none is."""
        for each in self.above(path):
            if each in self.prims and self.prims[each].kind == "component":
                return each
        return ""

    # Values of attributes

    def number(self, prim: PrimRecord, name: str, default: float) -> float:
        """Return a number, the default where there is none; NaN is an error."""
        value = prim.values.get(name)
        if value is None or isinstance(value, bool):
            return default
        if isinstance(value, (int, float)) and not math.isnan(value):
            return float(value)
        self._refuse(prim, name, value)
        return default

    def numbers(
        self, prim: PrimRecord, name: str, count: int
    ) -> tuple[float, ...] | None:
        """Return finite numbers, None where there are none."""
        given: Any = prim.values.get(name)
        if given is None:
            return None
        values = cast(list[Any], given) if isinstance(given, list) else []
        if len(values) == count and all(
            isinstance(each, (int, float)) and math.isfinite(each) for each in values
        ):
            return tuple(map(float, values))
        self._refuse(prim, name, prim.values[name])
        return None

    def text(self, prim: PrimRecord, name: str, default: str = "") -> str:
        """Return a text, the default where there is none."""
        value = prim.values.get(name)
        return value if isinstance(value, str) else default

    def turn(self, prim: PrimRecord, name: str) -> Pose:
        """Return the rotation of a quaternion, the identity without a valid one."""
        given = self.numbers(prim, name, 4)
        if given is None or given == (1.0, 0.0, 0.0, 0.0):
            return IDENTITY
        length = math.sqrt(sum(each * each for each in given))
        if not 0.5 < length < 2.0:
            if length == 0.0 and "principal" in name:
                return IDENTITY  # the default of the schema: no rotation
            self._refuse(prim, name, list(given))
            return IDENTITY
        return Pose.from_quaternion(snapped([each / length for each in given]))

    def _refuse(self, prim: PrimRecord, name: str, value: object) -> None:
        self.report.error(
            self.at(prim.path, name),
            "bad-number",
            f"{name} of {prim.label} is {str(value)[:60]}",
            hint="Correct it in the stage.",
        )


SNAPS: Final = (0.0, 0.5, math.sqrt(0.5), 1.0)


def snapped(values: Sequence[float]) -> list[float]:
    """Return numbers of single precision as the round ones that were meant.

    They stay as they are unless all of them are nearly round.
    """
    found = [
        next((each for each in SNAPS if abs(abs(value) - each) < 1e-7), None)
        for value in values
    ]
    if None in found:
        return list(values)
    pairs = zip(found, values, strict=True)
    return [math.copysign(each or 0.0, value) + 0.0 for each, value in pairs]


def parent_of(path: str) -> str:
    """Return the path of the prim above, empty for those at the top."""
    return path.rpartition("/")[0]
