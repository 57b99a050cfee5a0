"""Names that packages import when they are asked for."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys

import pytest

from armillary.late_names import LateNames

PACKAGES = {
    "armillary.model.joints": ("Curve", "JOINT_TYPES"),
    "armillary.model.shapes": ("Points", "SHAPES"),
    "armillary.trace": ("tangent_program", "vjp"),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_all_names_are_there(name: str):
    package = importlib.import_module(name)
    for each in package.__all__:
        value = getattr(package, each)
        assert value is not None
        if isinstance(value, type):
            assert pickle.loads(pickle.dumps(value)) is value
    assert set(package.__all__) <= set(dir(package)) or name == "armillary.trace"
    with pytest.raises(AttributeError, match=f"'{name}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_a_name_imports_its_module_alone():
    code = """
import json, sys
from armillary.model import joints, shapes
before = set(sys.modules)
joints.Screw, shapes.Box
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    loaded = json.loads(done.stdout)
    assert "armillary.model.joints.screw" in loaded
    assert "armillary.model.joints.curve" not in loaded
    assert "armillary.model.shapes.points" not in loaded


def test_a_mapping_knows_its_names_without_importing():
    names = LateNames("armillary.nowhere", {"One": "one", "Two": "two"})
    assert list(names) == ["One", "Two"]
    assert len(names) == 2
    assert "One" in names
    assert names.get("Three") is None
    with pytest.raises(ModuleNotFoundError):
        names["One"]
