"""SDF to a cell: each model of a world a manipulator."""

from __future__ import annotations

import os
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions, later
from armillary.formats.sdf.cells import SdfCellBuilder
from armillary.formats.sdf.files import SdfFiles
from armillary.formats.sdf.links import LinkReader
from armillary.formats.sdf.models import ModelReader
from armillary.formats.sdf.scopes import Scope
from armillary.formats.xml import Element, report_unused
from armillary.model.workcell import Workcell

__all__ = ["read"]

# What a cell has no place for: attributes and children of elements.
FOREIGN: Final = {
    "sdf": ("actor", "light"),
    "gazebo": ("actor", "light"),
    "world": (
        *("physics", "scene", "light", "plugin", "gui", "gravity", "magnetic_field"),
        *("atmosphere", "wind", "audio", "actor", "road", "spherical_coordinates"),
    ),
    "model": (
        *("plugin", "gripper", "allow_auto_disable", "enable_wind", "namespace"),
        *("description", "model_state", "light"),
    ),
    "include": ("plugin", "namespace", "model_state"),
    "link": (
        *("gravity", "enable_wind", "kinematic", "must_be_base_link", "sensor"),
        *("velocity_decay", "projector", "audio_sink", "audio_source", "battery"),
        *("light", "particle_emitter", "plugin", "damping"),
    ),
    "inertial": ("auto_inertia_params", "fluid_added_mass"),
    "joint": ("physics", "sensor", "plugin"),
    "axis": ("initial_position",),
    "axis2": ("initial_position",),
    "limit": ("stiffness", "dissipation"),
    "collision": (*("laser_retro", "max_contacts", "auto_inertia_params", "surface"),),
    "visual": (*("cast_shadows", "laser_retro", "visibility_flags", "meta", "plugin"),),
    "material": (
        *("script", "shader", "render_order", "lighting", "specular", "shininess"),
        *("emissive", "double_sided", "pbr"),
    ),
    "mesh": ("optimization", "convex_decomposition"),
}
DOUBTFUL: Final = ("state", "population")
"""What moves or adds models when Gazebo runs a world."""


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the cell in a world or a model.

    Raises:
        FormatError: With all diagnostics, if the file is faulty.
    """
    of_urdf = later("sdf.included_urdf", "urdf_as_sdf")
    files = SdfFiles(data, path, options.roots, report, of_urdf)
    report.raise_if_errors()
    models = ModelReader(files, LinkReader(files, report), report)
    world, name = _world(files, models, path, report)
    report.raise_if_errors()
    cell = SdfCellBuilder(world, report).cell(name)
    for file in files.all:
        report_unused(file.root, report, foreign=FOREIGN, asides=("plugin",))
    report.raise_if_errors()
    return cell


def _world(
    files: SdfFiles, models: ModelReader, path: str, report: Report
) -> tuple[Scope, str]:
    """Return the first world of a file, or one of its models, and the cell's name."""
    root = files.first.root
    worlds, alone = root.children_named("world"), root.children_named("model")
    for other in worlds[1:]:
        what = "a further <world> of a file, of which the first one is read,"
        report.unsupported.add(what, other.place)
    if worlds:
        if alone:
            report.unsupported.add("a <model> beside a <world>", alone[0].place)
        element = worlds[0]
        _report_doubtful(element, report)
        world = models.world(element, files.first)
        if not element.attributes.get("name"):
            message = f"{element.label} has no name; it is called {quote(world.name)}"
            report.warning(element.place, "missing-name", message)
        return world, world.name
    if not alone:
        names = {child.name for child in root.children}
        hint = "" if names else "The file is empty."
        if names & {"actor", "light"}:
            hint = "A cell holds neither actors nor lights."
        message = f"{root.label} holds no world and no model"
        report.error(root.place, "no-model", message, hint=hint)
        report.raise_if_errors()
    world = models.models(alone, files.first)
    name = os.path.basename(path).split(".")[0] or "cell"
    first = next(world.of_kind("model"), None)
    if len(alone) == 1 and first is not None:
        name = first.full_name
    return world, name


def _report_doubtful(world: Element, report: Report) -> None:
    for child in world.children_named(*DOUBTFUL):
        report.unsupported.add(f"<{child.name}>", child.place, Severity.WARNING)
