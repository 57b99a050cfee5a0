"""The published JSON Schema of the native format, made from the same structs.

python -m armillary.formats.native.schema > docs/schema/cell.schema.json
"""

from __future__ import annotations

import inspect
import itertools
import re
import sys
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from armillary.formats.json import to_text
from armillary.formats.native.wire import (
    FORMAT_NAME,
    JOINT_REFERENCE,
    VERSION,
    cell_in_file,
    derived,
)
from armillary.formats.records import PRECURSOR, TYPE, PoseInFile
from armillary.model.joints import JOINT_TYPES

__all__ = ["schema_text"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
DEEPEST: Final = 16
TEMPLATE: Final = "#/$defs/{name}"
ONE_ROTATION: Final = ("rotation", "quaternion_wxyz", "rpy")

Schema = dict[str, Any]


def schema_text() -> str:
    """Return the JSON Schema of `*.cell.json`.

    It says what a file may hold; the rules of a tree of links are checked when a file
    is read.
    """
    joints = {
        tag: derived(kind, kind.__name__, tag_field=TYPE, tag=tag)
        for tag, kind in JOINT_TYPES.items()
    }
    kinds = [cell_in_file(), *joints.values()]
    (cell, *_), components = msgspec.json.schema_components(
        kinds, ref_template=TEMPLATE
    )
    definitions = dict(components)
    for definition in definitions.values():
        _complete(definition)
    definitions["Joint"] = _any_joint(joints)
    head = definitions["Cell"]["properties"]
    head["format"], head["version"] = {"const": FORMAT_NAME}, {"const": VERSION}
    pairs = itertools.combinations(ONE_ROTATION, 2)
    pose = definitions[PoseInFile.__name__]
    pose["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}
    schema = {
        "$schema": DIALECT,
        "title": "armillary cell",
        **cell,
        "$defs": dict(sorted(definitions.items())),
    }
    text = to_text(_shortened(schema), depth=DEEPEST).decode()
    return text.replace(PoseInFile.__name__, "Pose")


def _any_joint(joints: Mapping[str, type[msgspec.Struct]]) -> Schema:
    """Return the schema of a joint of any type, those of other people too."""
    names = [TEMPLATE.format(name=struct.__name__) for struct in joints.values()]
    other: Schema = {
        "description": "A joint of a type that armillary does not bring along.",
        "type": "object",
        "properties": {
            TYPE: {"type": "string", "minLength": 1, "not": {"enum": list(joints)}},
            PRECURSOR: {"$ref": TEMPLATE.format(name=PoseInFile.__name__)},
        },
        "required": [TYPE],
    }
    return {
        "description": "A joint of one coordinate, by its type.",
        "anyOf": [*({"$ref": name} for name in names), other],
    }


def _complete(definition: Schema) -> None:
    """Tell of each part what the docstrings of its struct do, and where joints are."""
    documentation = inspect.cleandoc(str(definition.get("description", "")))
    summary, _, _ = documentation.partition("\n\n")
    definition["description"] = " ".join(summary.split())
    descriptions = _attributes(documentation)
    for name, part in definition.get("properties", {}).items():
        if part.get("$ref") == JOINT_REFERENCE:
            part.clear()
            part["$ref"] = JOINT_REFERENCE
        if name in descriptions:
            part["description"] = descriptions[name]


def _shortened(part: Any) -> Any:
    """Return a schema whose arrays of equal items say so once; null comes last."""
    if isinstance(part, list):
        return [_shortened(item) for item in cast(list[Any], part)]
    if not isinstance(part, dict):
        return part
    shortened = {key: _shortened(item) for key, item in cast(Schema, part).items()}
    items = shortened.get("prefixItems")
    if items and all(item == items[0] for item in items):
        del shortened["prefixItems"]
        shortened["items"] = items[0]
    if choices := shortened.get("anyOf"):
        # Versions of msgspec differ in where they list null.
        shortened["anyOf"] = sorted(
            choices, key=lambda choice: choice == {"type": "null"}
        )
    return shortened


def _attributes(documentation: str) -> dict[str, str]:
    """Return what docstrings say about attributes, the first word on each counting."""
    texts: dict[str, str] = {}
    for block in re.findall(r"Attributes:\n((?:    .*\n?)+)", documentation):
        for entry in re.split(r"^    (?=\w)", block, flags=re.MULTILINE)[1:]:
            name, _, text = entry.partition(":")
            texts.setdefault(name, " ".join(text.split()))
    return texts


if __name__ == "__main__":
    sys.stdout.write(schema_text())
