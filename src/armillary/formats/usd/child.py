"""Read stages of USD; run by its path in a process of its own, by `process.py`.

The library that reads USD is not made for hostile files: some end the process. So it
runs here, confined before it reads any, and what it finds goes out as plain data, which
`process.py` checks and all others read.
"""

from __future__ import annotations

import base64
import importlib
import json
import math
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

os.environ["PXR_WORK_THREAD_LIMIT"] = "1"  # threads could not be started
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# pxr is imported where it is known to be there; it has no types.
Gf: Any = importlib.import_module("pxr.Gf")
Sdf: Any = importlib.import_module("pxr.Sdf")
Tf: Any = importlib.import_module("pxr.Tf")
Usd: Any = importlib.import_module("pxr.Usd")
UsdGeom: Any = importlib.import_module("pxr.UsdGeom")
UsdPhysics: Any = importlib.import_module("pxr.UsdPhysics")
UsdShade: Any = importlib.import_module("pxr.UsdShade")
Vt: Any = importlib.import_module("pxr.Vt")

RESERVED = 1 << 30
"""Addresses that the library and its threads reserve without using them [bytes]."""

FIRST = Usd.TimeCode.EarliestTime()
"""Values are those at the start of an animation, or those without one."""

ATTRIBUTES = (
    *("physics", "physx", "state:", "drive:", "limit:", "newton:", "mjc:"),
    "armillary:",
)
"""What names of attributes begin with that are passed on, where they are authored."""
LINKS = ("physics", "physx", "newton", "coll")
"""The same of relationships."""
OF_JOINTS = ("physics:axis", "physics:lowerLimit", "physics:upperLimit")
"""Attributes of joints that are passed on where they are not authored, too."""

QUATERNIONS = (Gf.Quatd, Gf.Quatf, Gf.Quath)

SHAPES = {
    "Cube": ("size",),
    "Sphere": ("radius",),
    "Cylinder": ("radius", "height", "axis"),
    "Cylinder_1": ("radiusTop", "radiusBottom", "height", "axis"),
    "Capsule": ("radius", "height", "axis"),
    "Capsule_1": ("radiusTop", "radiusBottom", "height", "axis"),
    "Cone": ("radius", "height", "axis"),
    "Plane": ("width", "length", "axis"),
    "Mesh": (),
}
OF_MATERIALS = ("diffuseColor", "diffuse_color_constant", "diffuse_tint", "base_color")
OPACITY = ("opacity", "opacity_constant")


OF_CONFINED: dict[str, Any] = {}
"""The functions of `confined_process`, by name."""


class Refused(Exception):
    """A stage that is not read: an id of diagnostics, what is wrong, and where."""


# Layers


def opened(path: str) -> Any:
    """Return a layer.

    Raises:
        Refused: It is faulty.
    """
    try:
        layer = Sdf.Layer.FindOrOpen(path)
    except Tf.ErrorException as error:
        raise Refused("bad-usd", reason(error), path) from error
    if layer is None:
        raise Refused("bad-usd", "this is not a layer of USD", path)
    return layer


def reason(error: BaseException) -> str:
    """Return what the library says first, without its own file names."""
    first = str(error).strip().split("\n\tError in")[0]
    text = " ".join(first.rpartition(" : '")[2].removesuffix("'").split())
    return text[:500] or type(error).__name__


def walked(root: str, ask: Callable[..., Any], most: int) -> list[Any]:
    """Return all layers of a stage, each reference of which the asker allows.

    Each reference becomes the absolute path that the asker says, or nothing. All layers
    are open when the stage is composed, so that it opens no others.
    """
    layers: dict[str, Any] = {}
    waiting = [root]
    while waiting:
        path = waiting.pop()
        if path in layers:
            continue
        if len(layers) >= most:
            raise Refused("include-limit", f"more than {most} layers", path)
        layers[path] = layer = opened(path)
        for reference in sorted(layer.GetCompositionAssetDependencies()):
            found = ask(find=reference, layer=path) if reference else ""
            if found:
                waiting.append(found)
            if found != reference:
                layer.UpdateCompositionAssetDependency(reference, found)
    return list(layers.values())


# Values as plain data


def plain(value: Any) -> Any:
    """Return a value as what JSON holds; None for others."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Sdf.AssetPath):
        return value.path
    if isinstance(value, QUATERNIONS):
        return [value.real, *value.imaginary]
    try:
        return [
            each if isinstance(each, float) else plain(each)
            for each in islice(value, 1000)
        ]
    except TypeError:
        return None


def got(attribute: Any) -> Any:
    """Return the value of an attribute, None without one."""
    return attribute.Get(FIRST) if attribute else None


def is_never_visible(prim: Any) -> bool:
    """Return whether a prim is hidden at all times; parts may appear later."""
    attribute = prim.GetAttribute("visibility")
    times = attribute.GetTimeSamples()
    return all(attribute.Get(time) == "invisible" for time in times or (FIRST,))


def is_text(layer: Any) -> bool:
    """Return whether a layer is a file of text."""
    return bool(layer.realPath) and layer.GetFileFormat().formatId == "usda"


class PrimKind(NamedTuple):
    """What all prims of a type are: to ask each prim takes longer than the rest."""

    is_image: bool
    is_placed: bool
    is_drawn: bool


def encoded(array: Any, kind: str) -> str:
    """Return an array of numbers as text."""
    import numpy as np

    return base64.b64encode(np.asarray(array, dtype=kind).tobytes()).decode()


class StageReader:
    """All of a stage that is read, as plain data."""

    def __init__(self, stage: Any, most: int, layers: Sequence[Any] = ()) -> None:
        self._stage = stage
        self._most = most
        self._has_text = any(is_text(layer) for layer in layers[1:])
        self._poses = UsdGeom.XformCache(FIRST)
        self._kinds: dict[str, PrimKind] = {}
        self._colours: dict[str, Any] = {}

    def record(self) -> dict[str, Any]:
        """Return what is of the stage as a whole, and its prims."""
        stage = self._stage
        default = stage.GetDefaultPrim()
        return {
            "metres": float(UsdGeom.GetStageMetersPerUnit(stage)),
            "kilograms": float(UsdPhysics.GetStageKilogramsPerUnit(stage)),
            "up": str(UsdGeom.GetStageUpAxis(stage)),
            "default": str(default.GetPath()) if default else "",
            "prims": list(self._prims()),
        }

    def _prims(self) -> Iterator[dict[str, Any]]:
        # What is inherited: each prim is visited after its parent.
        hidden: dict[str, tuple[bool, str]] = {}
        shapes: list[tuple[Any, dict[str, Any]]] = []
        proxies = Usd.TraverseInstanceProxies()
        for count, prim in enumerate(Usd.PrimRange.Stage(self._stage, proxies)):
            if count >= self._most:
                raise Refused("too-many-prims", f"more than {self._most} prims", "")
            path = prim.GetPath().pathString
            kind = self._kind(prim)
            # What is not authored is not asked for: their names alone are cheaper.
            names = prim.GetAuthoredPropertyNames()
            is_hidden, purpose = hidden.get(path.rpartition("/")[0], (False, ""))
            if kind.is_image:
                if not is_hidden and "visibility" in names:
                    is_hidden = is_never_visible(prim)
                if "purpose" in names:
                    purpose = got(prim.GetAttribute("purpose")) or purpose
            hidden[path] = is_hidden, purpose
            record = self._prim(prim, path, kind, names)
            if self._has_text:
                record["specs"] = list(self._specs(prim))
            if record["type"] in SHAPES:
                record["hidden"] = is_hidden
                record["purpose"] = purpose
                shapes.append((prim, record))
            yield record
        self._add_colours(shapes)

    def _specs(self, prim: Any) -> Iterator[list[str]]:
        """Yield where layers that are text have a prim, the strongest first."""
        root = self._stage.GetRootLayer()
        for spec in prim.GetPrimStack():
            layer = spec.layer
            if is_text(layer):
                name = "" if layer == root else layer.realPath
                yield [name, spec.path.StripAllVariantSelections().pathString]

    def _kind(self, prim: Any) -> PrimKind:
        name = prim.GetTypeName()
        if name not in self._kinds:
            self._kinds[name] = PrimKind(
                is_image=prim.IsA(UsdGeom.Imageable),
                is_placed=prim.IsA(UsdGeom.Xformable),
                is_drawn=prim.IsA(UsdGeom.Gprim) or prim.IsA(UsdGeom.PointInstancer),
            )
        return self._kinds[name]

    def _prim(
        self, prim: Any, path: str, kind: PrimKind, names: list[str]
    ) -> dict[str, Any]:
        type_name = str(prim.GetTypeName())
        record: dict[str, Any] = {"path": path, "type": type_name}
        if prim.HasAuthoredDisplayName():
            record["name"] = str(prim.GetDisplayName())
        # Also those that this library does not know itself.
        schemas = prim.GetPrimTypeInfo().GetAppliedAPISchemas()
        if schemas:
            record["schemas"] = [str(each) for each in schemas]
        if kind.is_placed:
            matrix: Any = memoryview(
                self._poses.GetLocalToWorldTransform(prim)
            ).tolist()
            record["pose"] = [row[j] for j in range(3) for row in matrix]
        model_kind = prim.GetMetadata("kind")
        if model_kind in {"component", "assembly"}:
            record["kind"] = model_kind
        values, links = properties(prim, type_name, names)
        if links:
            record["targets"] = links
        if type_name in SHAPES:
            self._add_shape(prim, type_name, names, values, record)
        if kind.is_drawn:
            record["drawn"] = True
        if values:
            record["values"] = values
        return record

    def _add_shape(
        self,
        prim: Any,
        kind: str,
        names: list[str],
        values: dict[str, Any],
        record: dict[str, Any],
    ) -> None:
        for name in SHAPES[kind]:
            values[name] = plain(got(prim.GetAttribute(name)))
        if kind == "Mesh":
            points = prim.GetAttribute("points")
            record["has_points"] = "points" in names and points.HasAuthoredValue()
            if values.get("physics:approximation", "") in {
                "boundingCube",
                "boundingSphere",
            }:
                record["box"] = boxed(got(points))

    def _add_colours(self, shapes: list[tuple[Any, dict[str, Any]]]) -> None:
        """Add the colours of shapes: of their bound materials, or their own."""
        prims = [prim for prim, _ in shapes]
        bound = UsdShade.MaterialBindingAPI.ComputeBoundMaterials(prims)[0]
        for (prim, record), material in zip(shapes, bound, strict=True):
            colour = self._colour(prim, material)
            if colour is not None:
                record["colour"] = colour

    def _colour(self, prim: Any, material: Any) -> list[float] | None:
        if material:
            path = material.GetPath().pathString
            if path not in self._colours:
                self._colours[path] = material_colour(material)
            if self._colours[path] is not None:
                return self._colours[path]
        primvars = UsdGeom.PrimvarsAPI(prim)
        colour = primvars.FindPrimvarWithInheritance("displayColor")
        values = colour.Get(FIRST) if colour else None
        if not values or len(values) != 1:
            return None
        opacity = primvars.FindPrimvarWithInheritance("displayOpacity")
        opaque = opacity.Get(FIRST) if opacity else None
        return [*plain(values[0]), float(opaque[0]) if opaque else 1.0]


def properties(
    prim: Any, kind: str, names: list[str]
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the attributes and relationships of a prim that are passed on.

    names: Of all of its properties that are authored.
    """
    values: dict[str, Any] = {}
    links: dict[str, list[str]] = {}
    for name in names:
        if name.startswith(ATTRIBUTES) and (found := prim.GetAttribute(name)):
            values[name] = plain(found.Get(FIRST))
        elif name.startswith(LINKS) and (found := prim.GetRelationship(name)):
            links[name] = [target.pathString for target in found.GetTargets()]
    if "Joint" in kind:
        for name in OF_JOINTS:
            if name not in values:
                values[name] = plain(got(prim.GetAttribute(name)))
    return values, links


def material_colour(material: Any) -> list[float] | None:
    """Return the plain colour of a material, None without one."""
    source = material.ComputeSurfaceSource("")[0]
    if not source:
        source = material.ComputeSurfaceSource("mdl")[0]
    if not source:
        return None
    colour, opacity = None, 1.0
    for name in OF_MATERIALS:
        given = source.GetInput(name)
        if not given or given.HasConnectedSource():
            continue
        colour = plain(given.Get(FIRST))
        if colour is not None:
            break
    for name in OPACITY:
        given = source.GetInput(name)
        value = given.Get(FIRST) if given else None
        if isinstance(value, float):
            opacity = value
    numbers: Any = colour
    if not isinstance(numbers, list) or len(cast("list[Any]", numbers)) < 3:
        return None
    return [*numbers[:3], opacity]


def boxed(points: Any) -> list[float] | None:
    """Return the ends of the box around points, and the radius about its middle."""
    if not points:
        return None
    import numpy as np

    rows = np.asarray(points, dtype=float)
    low, high = rows.min(axis=0), rows.max(axis=0)
    radius = float(np.sqrt(((rows - (low + high) / 2) ** 2).sum(axis=1).max()))
    return [*low.tolist(), *high.tolist(), radius]


# Meshes


def meshes(stage: Any, ask: Callable[..., Any], most: int) -> None:
    """Send the numbers and colours of each mesh of a stage."""
    proxies = Usd.TraverseInstanceProxies()
    for count, prim in enumerate(Usd.PrimRange.Stage(stage, proxies)):
        if count >= most:
            raise Refused("too-many-prims", f"more than {most} prims", "")
        if prim.GetTypeName() == "Mesh":
            ask(mesh=str(prim.GetPath()), **mesh_record(prim))


def mesh_record(prim: Any) -> dict[str, Any]:
    """Return the numbers of a mesh, and the colours of its polygons if they differ."""
    mesh = UsdGeom.Mesh(prim)
    sizes: Any = got(mesh.GetFaceVertexCountsAttr()) or ()
    record: dict[str, Any] = {
        "points": encoded(got(mesh.GetPointsAttr()) or [], "<f4"),
        "corners": encoded(got(mesh.GetFaceVertexIndicesAttr()) or [], "<i4"),
        "sizes": encoded(sizes, "<i4"),
        "holes": encoded(got(mesh.GetHoleIndicesAttr()) or [], "<i4"),
        "left": got(mesh.GetOrientationAttr()) == "leftHanded",
    }
    colours = UsdGeom.PrimvarsAPI(prim).GetPrimvar("displayColor")
    if colours and str(colours.GetInterpolation()) == "uniform":
        flat = colours.ComputeFlattened(FIRST)
        opaque = UsdGeom.PrimvarsAPI(prim).GetPrimvar("displayOpacity")
        opacity = opaque.ComputeFlattened(FIRST) if opaque else None
        if flat is not None and len(flat) == len(sizes):
            record["colours"] = encoded(flat, "<f4")
            if opacity is not None and len(opacity) == len(sizes):
                record["opacities"] = encoded(opacity, "<f4")
    looks: list[Any] = []
    for subset in UsdShade.MaterialBindingAPI(prim).GetMaterialBindSubsets():
        material = UsdShade.MaterialBindingAPI(subset.GetPrim()).ComputeBoundMaterial()
        faces: Any = got(subset.GetIndicesAttr()) or ()
        colour = material_colour(material[0]) if material[0] else None
        looks.append([encoded(faces, "<i4"), colour])
    if looks:
        record["subsets"] = looks
    return record


# The process


def warmed() -> None:
    """Have the library read what it needs of its own: later it may open nothing."""
    text = '#usda 1.0\ndef Xform "a" {\ndef Mesh "m" {}\n'
    text += 'def PhysicsRevoluteJoint "j" {}\n}\n'
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(text)
    stage = Usd.Stage.Open(layer)
    StageReader(stage, 10).record()
    layer.ExportToString()
    for ending in (".usdc", ".usd"):
        Sdf.Layer.CreateAnonymous(ending)
    Sdf.FileFormat.FindByExtension("usdz")
    Usd.SchemaRegistry()
    Vt.FloatArray([1.0])
    math.sqrt(1.0)
    mesh_record(stage.GetPrimAtPath("/a/m"))


def main() -> None:
    """Answer one request on the standard input.

    A line comes in: the file, folders, what is asked, and limits. Lines go out: `find`,
    a reference of a layer, which a line with a path or nothing answers; `mesh`, one of
    the meshes, which an empty line answers; then `scene` or `error`.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = sys.stderr
    request = json.loads(sys.stdin.readline())

    def ask(**fields: Any) -> Any:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()
        return json.loads(sys.stdin.readline())

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    confine = OF_CONFINED["confine"]
    confine(request["memory"], request["folders"], request["seconds"], RESERVED)
    try:
        layers = walked(request["path"], ask, request["layers"])
        stage = composed(layers[0], request["variants"])
        if request["meshes"]:
            meshes(stage, ask, request["prims"])
        reader = StageReader(stage, request["prims"], layers)
        answer(scene=reader.record())
    except Refused as refusal:
        answer(error=list(refusal.args))
    except (Exception, RecursionError) as error:
        answer(error=["bad-usd", reason(error), request["path"]])
    sys.stderr.flush()
    os._exit(0)  # what else Python does at its end is not allowed


def composed(root: Any, variants: dict[str, str]) -> Any:
    """Return the stage of a layer with some variants chosen.

    variants: By the names of sets.

    Raises:
        Refused: A set or a variant does not exist.
    """
    stage = Usd.Stage.Open(root)
    left = dict(variants)
    session = stage.GetSessionLayer()
    with Usd.EditContext(stage, session):
        for prim in stage.Traverse() if left else ():
            for name in prim.GetVariantSets().GetNames():
                if name not in variants:
                    continue
                chosen = prim.GetVariantSet(name)
                known = list(chosen.GetVariantNames())
                if variants[name] not in known:
                    message = (
                        f"variant set {name!r} of {prim.GetPath()} has no variant "
                        f"{variants[name]!r}; it has {', '.join(known)}"
                    )
                    raise Refused("unknown-variant", message, "")
                chosen.SetVariantSelection(variants[name])
                left.pop(name, None)
    if left:
        message = f"no prim has a variant set {next(iter(left))!r}"
        raise Refused("unknown-variant", message, "")
    return stage


if __name__ == "__main__":
    OF_CONFINED.update(runpy.run_path(sys.argv[1]))
    warmed()
    if sys.argv[2:] == ["serve"]:
        OF_CONFINED["serve_forks"](main, prepare=warmed, idle=60.0)
    main()
