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
    assert set(package.__all__) <= set(dir(package))
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


HOLDING = """
import importlib, sys, threading
from armillary.forks import IMPORT_LOCK

held, done = threading.Event(), threading.Event()
is_waited_for = []

def hold():
    with IMPORT_LOCK:
        held.set()
        is_waited_for.append(not done.wait(30.0))

thread = threading.Thread(target=hold)
thread.start()
held.wait()
importlib.import_module(sys.argv[1])
done.set()
thread.join()
print(is_waited_for)
"""


@pytest.mark.parametrize(
    "name", ["shapes", "testing", "collision.check", "control.controller"]
)
def test_a_module_that_is_imported_waits_for_no_other_thread(name: str):
    """The other may wait for the lock of this module, which ends both."""
    done = subprocess.run(
        [sys.executable, "-c", HOLDING, f"armillary.{name}"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[False]"


def test_a_mapping_knows_its_names_without_importing():
    names = LateNames("armillary.nowhere", {"One": "one", "Two": "two"})
    assert list(names) == ["One", "Two"]
    assert len(names) == 2
    assert "One" in names
    assert names.get("Three") is None
    assert repr(names) == "<names of armillary.nowhere: One, Two>"
    with pytest.raises(ModuleNotFoundError):
        names["One"]
