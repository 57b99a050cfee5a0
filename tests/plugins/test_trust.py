"""Code of plug-ins runs where the caller or the user allows it, and nowhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import FormatError, PluginError
from armillary.formats import registry
from armillary.formats.joint_types import PluginJoints
from armillary.model.joints.opaque import OpaqueJoint

LIFT = """
import armillary as arm
from armillary.errors import FormatError

class Lift(arm.Joint):
    stroke: float
    unit = arm.METRE

    def pose(self, q):
        return arm.Pose.translation(0, 0, self.stroke * q)

class Revolute(arm.Joint):
    def pose(self, q):
        return arm.Pose.translation(q, 0, 0)
"""
HOSTILE = "import sys; sys.stolen = True; raise SystemExit(7)"
Install = Callable[..., None]


def text_of(joint: dict[str, object]) -> str:
    """A native file of a lift whose cab hangs on a joint."""
    cab = {"name": "cab", "parent": "shaft", "joint": joint}
    manipulator = {"name": "lift", "links": [{"name": "shaft"}, cab]}
    head = {"format": "armillary cell", "version": 1, "name": "house"}
    return json.dumps({**head, "manipulators": [manipulator]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "house.cell.json"
    path.write_text(text_of({"type": "Lift", "stroke": 2.0, "extra": [1, {"a": None}]}))
    return path


@pytest.fixture
def lift(tmp_path: Path) -> Path:
    path = tmp_path / "lift.cell.json"
    path.write_text(text_of({"type": "Lift", "stroke": 2.0}))
    return path


def joint_in(cell: arm.Cell) -> arm.Joint:
    return cell.manipulators[0].link("cab").joint


# Not allowed.


def test_what_is_not_allowed_is_never_imported(install: Install, file: Path, config):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": HOSTILE})
    install("acme-odd", {"Lift": "no module at all", "Lift2": "os:system"})
    config.write_text("plugins = ['another']\n")
    cell, report = registry.read(file)
    assert isinstance(joint_in(arm.Cell.of(cell)), OpaqueJoint)
    with pytest.raises(arm.errors.JointError):
        arm.Cell.of(cell).fk("cab")
    (found,) = report.diagnostics
    assert found.code == "unknown-joint-type"
    assert not hasattr(sys, "stolen")
    assert "acme_lift" not in sys.modules


def test_it_stays_opaque_and_round_trips_byte_for_byte(
    install: Install, file: Path, tmp_path: Path
):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": LIFT})
    arm.save(arm.load(file), tmp_path / "a.cell.json")
    arm.save(arm.load(tmp_path / "a.cell.json"), tmp_path / "b.cell.json")
    data = (tmp_path / "a.cell.json").read_bytes()
    assert data == (tmp_path / "b.cell.json").read_bytes()
    held = json.loads(data)["manipulators"][0]["links"][1]["joint"]
    assert held == {"type": "Lift", "stroke": 2.0, "extra": [1, {"a": None}]}
    assert "acme_lift" not in sys.modules


def test_a_question_that_needs_it_says_who_offers_it(
    install: Install, file: Path, config: Path
):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": LIFT})
    cell = arm.load(file)
    assert np.allclose(cell.fk("shaft")([0.3]), np.eye(4))  # needs no such joint
    with pytest.raises(arm.errors.JointError) as caught:
        cell.fk("cab")
    text = str(caught.value)
    assert "Joint type 'Lift' is not known here, so it cannot move." in text
    assert "Plug-in acme 1.2 offers it, but was not allowed." in text
    assert "plugins=['acme']" in text
    assert f"the configuration file {config}: plugins = ['acme']." in text


def test_the_finding_says_so_too(install: Install, file: Path):
    install("acme", {"Lift": "acme_lift:Lift"})
    install("best", {"Lift": "best_lift:Lift"})
    _, report = registry.read(file)
    (found,) = report.diagnostics
    assert "Plug-ins acme 1.2 and best 1.2 offer it" in found.hint
    assert "plugins=['acme']" in found.hint


def test_without_any_offer_the_class_is_asked_for(file: Path):
    with pytest.raises(arm.errors.JointError, match=r"joints=\[\.\.\.\]"):
        arm.load(file).fk("cab")


@pytest.mark.parametrize(
    "word", ["acme_lift:Lift", "acme_lift.Lift", "acme", "os", "./acme_lift.py", "_x"]
)
def test_a_files_word_loads_nothing(
    install: Install, tmp_path: Path, config: Path, word: str
):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": HOSTILE})
    config.write_text("plugins = ['acme']\n")
    joint = {"type": word, "library": "acme_lift.so", "plugins": ["acme"]}
    path = tmp_path / "x.cell.json"
    path.write_text(text_of(joint))
    assert isinstance(joint_in(arm.load(path, plugins=["acme"])), OpaqueJoint)
    assert "acme_lift" not in sys.modules


# Allowed.


@pytest.mark.parametrize("name", ["acme-lifts", "Acme_Lifts", "acme.lifts"])
def test_allowed_by_the_caller(install: Install, lift: Path, name: str):
    install("acme-lifts", {"Lift": "acme_lift:Lift"}, {"acme_lift": LIFT})
    cell = arm.load(lift, plugins=[name])
    assert cell.fk("cab")([0.25])[2, 3] == 0.5
    arm.save(cell, lift.with_name("b.cell.json"))
    assert arm.load(lift.with_name("b.cell.json"), plugins=(name,)) == cell


def test_allowed_by_the_configuration(install: Install, lift: Path, config: Path):
    install("acme-lifts", {"Lift": "acme_lift:Lift"}, {"acme_lift": LIFT})
    config.write_text("plugins = ['acme-lifts', 'not-installed']\n")
    assert arm.load(lift).fk("cab")([0.25])[2, 3] == 0.5


def test_only_what_a_file_holds_is_imported(install: Install, lift: Path):
    modules = {"acme_lift": LIFT, "acme_crank": HOSTILE}
    install("acme", {"Lift": "acme_lift:Lift", "Crank": "acme_crank:Crank"}, modules)
    arm.load(lift, plugins=["acme"])
    assert "acme_lift" in sys.modules
    assert "acme_crank" not in sys.modules


def test_actins_names_find_it_too(install: Install, lift: Path, tmp_path: Path):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": LIFT})
    cell = arm.load(lift, plugins=["acme"])
    path = tmp_path / "lift.actin.xml"
    arm.save(cell, path)
    assert joint_in(arm.load(path, plugins=["acme"])) == joint_in(cell)
    opaque = arm.load(path)
    with pytest.raises(arm.errors.JointError, match=r"Plug-in acme 1\.2 offers it"):
        opaque.fk("cab")
    arm.save(opaque, tmp_path / "again.actin.xml")
    again = arm.load(tmp_path / "again.actin.xml", plugins=["acme"])
    assert joint_in(again) == joint_in(cell)


def test_a_broken_plug_in_is_an_error_of_actins_reader(
    install: Install, lift: Path, tmp_path: Path
):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": LIFT})
    cell = arm.load(lift, plugins=["acme"])
    arm.save(cell, tmp_path / "lift.actin.xml")
    install("bad", {"Lift": "nowhere:Lift"})
    with pytest.raises(FormatError, match=r"error\[bad-plugin\]: .* bad 1\.2"):
        arm.load(tmp_path / "lift.actin.xml", plugins=["bad"])


def test_a_callers_class_goes_first(install: Install, lift: Path):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": HOSTILE})

    class Lift(arm.Joint):
        stroke: float

        def pose(self, q):
            return arm.Pose.rotation_z(q)

    cell = arm.load(lift, plugins=["acme"], joints=[Lift])
    assert type(joint_in(cell)) is Lift
    assert "acme_lift" not in sys.modules


def test_a_built_in_type_cannot_be_shadowed(
    install: Install, tmp_path: Path, config: Path
):
    install("acme", {"Revolute": "acme_lift:Revolute"}, {"acme_lift": LIFT})
    config.write_text("plugins = ['acme']\n")
    path = tmp_path / "x.cell.json"
    path.write_text(text_of({"type": "Revolute"}))
    cell = arm.load(path, plugins=["acme"])
    assert type(joint_in(cell)) is arm.joints.Revolute
    assert "acme_lift" not in sys.modules
    assert list(PluginJoints(["acme"])) == []


# Broken.


@pytest.mark.parametrize(
    ("target", "source", "why"),
    [
        ("acme_lift:Lift", "raise RuntimeError('no licence')", "no licence"),
        ("acme_lift:Lift", "raise SystemExit(3)", "SystemExit: 3"),
        ("acme_lift:Lift", "def broken(:", "SyntaxError"),
        ("acme_lift:Lift", "x = 1", "AttributeError"),
        ("acme_lift:Lift", "Lift = 3", "it offers 3, not a subclass of Joint"),
        ("acme_lift:Lift", "class Lift: pass", "not a subclass of Joint"),
        ("acme_lift:Lift", LIFT.replace("Lift", "Hoist") + "\nLift = Hoist", "'Hoist'"),
        ("nowhere:Lift", "", "ModuleNotFoundError"),
        ("acme_lift", "", "not of the form module:Name"),
        ("", "", "not of the form module:Name"),
        ("../acme_lift.py:Lift", "", "not of the form module:Name"),
    ],
)
def test_a_broken_plug_in_is_named(
    install: Install, file: Path, target: str, source: str, why: str
):
    install("acme-lifts", {"Lift": target}, {"acme_lift": source})
    with pytest.raises(FormatError) as caught:
        arm.load(file, plugins=["acme-lifts"])
    (found,) = caught.value.diagnostics
    assert found.code == "bad-plugin"
    assert found.place.line == 1
    assert found.message.startswith("Plug-in acme-lifts 1.2 ")
    assert "'Lift'" in found.message
    assert why in found.message


def test_two_of_one_name_are_both_named(install: Install, file: Path, config: Path):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": HOSTILE})
    install("best", {"Lift": "acme_lift:Lift"})
    config.write_text("plugins = ['best']\n")
    with pytest.raises(
        FormatError,
        match=r"plug-ins acme 1\.2 and best 1\.2\. Allow one of them",
    ):
        arm.load(file, plugins=["acme"])
    assert "acme_lift" not in sys.modules


def test_one_of_two_may_be_allowed(install: Install, lift: Path):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": LIFT})
    install("best", {"Lift": "nowhere:Lift"})
    assert arm.load(lift, plugins=["acme"]).fk("cab")([1.0])[2, 3] == 2.0


def test_a_broken_plug_in_hurts_nobody_who_does_not_need_it(
    install: Install, tmp_path: Path, config: Path
):
    install("acme", {"Lift": "nowhere:Lift"})
    config.write_text("plugins = [")
    path = tmp_path / "x.cell.json"
    path.write_text(text_of({"type": "Prismatic"}))
    assert arm.load(path, plugins=["acme"]).fk("cab")([0.5])[2, 3] == 0.5


def test_a_wrong_configuration_is_reported_where_it_counts(file: Path, config: Path):
    config.write_text("plugins = 3")
    with pytest.raises(FormatError, match=r"bad-plugin.*config\.toml must list"):
        arm.load(file)


def test_names_of_plug_ins_exist(install: Install, file: Path):
    install("acme-lifts", {"Lift": "acme_lift:Lift"})
    with pytest.raises(arm.errors.UnknownName) as caught:
        arm.load(file, plugins=["acme-lift"])
    assert "no plug-in named 'acme-lift'. Did you mean 'acme-lifts'?" in str(
        caught.value
    )


def test_a_text_is_not_a_list(file: Path):
    with pytest.raises(arm.errors.ModelError, match=r"plugins=\['acme'\]"):
        arm.load(file, plugins="acme")


def test_listing_imports_nothing_and_missing_names_are_missing(install: Install):
    install("acme", {"Lift": "acme_lift:Lift"}, {"acme_lift": HOSTILE})
    joints = PluginJoints(["acme"])
    assert list(joints) == ["Lift"]
    assert len(joints) == 1
    assert "Lift" in joints and "Crank" not in joints
    with pytest.raises(KeyError):
        joints["Crank"]
    assert "acme_lift" not in sys.modules
    with pytest.raises(PluginError, match="SystemExit: 7"):
        joints["Lift"]
    del sys.stolen  # type: ignore[attr-defined]
