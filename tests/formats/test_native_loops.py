"""Closed loops in the native format: they come back, and each fault has its place."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

import armillary as arm
from armillary import Closure, Frame, Link, Manipulator, Pose, Rod
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.native.schema import schema_text
from armillary.model.joints import Prismatic
from four_bar import four_bar, linked_arms


def struts() -> Manipulator:
    """A table that two rods of one joint's length hold up."""
    across = [
        Frame(name=f"b{k}", pose=Pose.translation(0.1 + k, 0, 0)) for k in range(2)
    ]
    return Manipulator(
        name="struts",
        links=[
            Link(name="ground", frames=across),
            Link(name="leg", parent="ground", joint=Prismatic(axis=(0, 1, 0))),
            Link(name="across", parent="ground", joint=Prismatic(axis=(1, 0, 0))),
            Link(name="table", parent="across", joint=Prismatic()),
        ],
        postures=[arm.Posture(name="up", joints=["across", "table"], q=[0.6, 0.5])],
        home="up",
        loops=[
            Rod("b0", "table", length=0.7, by="leg", name="left"),
            Rod("b1", "table", length=0.7),
        ],
    )


def written(cell: arm.Cell) -> str:
    data, report = registry.write(cell.workcell, format="cell")
    assert report.diagnostics == ()
    return data.decode()


def test_loops_come_back(tmp_path):
    turned = four_bar("turned", loops=[Closure("tip", "end", "xy", "x", name="pin")])
    for k, cell in enumerate(
        [
            arm.Cell(manipulators=[four_bar(), struts(), turned]),
            linked_arms(),
            linked_arms(loops=[Rod("tip", "swing/end", length=0.2)]),
        ]
    ):
        text = written(cell)
        jsonschema.Draft202012Validator(json.loads(schema_text())).validate(
            json.loads(text)
        )
        path = tmp_path / f"{k}.cell.json"
        path.write_text(text)
        back = arm.load(path)
        assert back == cell
        assert written(back) == text
        assert back.passive_names == cell.passive_names
        np.testing.assert_array_equal(back.home.passive, cell.home.passive)


def test_frames_of_loops_of_cells_are_stored_qualified():
    (loop,) = json.loads(written(linked_arms()))["loops"]
    assert (loop["a"], loop["b"]) == ("drive/tip", "swing/end")


def faults(text: str, tmp_path) -> list[str]:
    """The errors of a file with the mark §, as people read them, HERE for its place."""
    before, _, after = text.partition("§")
    path = tmp_path / "x.cell.json"
    path.write_text(before + after)
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    with pytest.raises(FormatError) as caught:
        arm.load(path)
    here = f"{path}:{line}:{column}: "
    return [str(d).replace(here, "HERE ") for d in caught.value.diagnostics]


LOOP = '{"loop": "closure", "a": "tip", "b": "end", "position": "xy"}'


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ('"rod", "a": "ground", "b": "end"', "HERE error[bad-rod]: The length of"),
        ('"rod", "a": "ground", "b": "end", "length": -1', "HERE error[bad-rod]"),
        ('"rod", "a": "ground", "b": "ende", "length": 1', "Did you mean 'end'?"),
        ('"rod", "a": "ground", "b": "end", "by": "x"', "no joint named 'x'"),
        (
            '"closure", "a": "tip", "b": "end", "position": "xq"',
            "HERE error[bad-closure]",
        ),
        ('"closure", "a": "ground", "b": "ground"', "Nothing moves in the Closure"),
        ('"rod", "a": "tip", "b": "rocker", "length": 9', "The loops cannot close"),
        ('"rod", "a": "tip", "b": "crank", "length": 0.25', "The loops leave nothing"),
    ],
)
def test_a_loop_that_cannot_be_is_reported_at_its_place(loop, expected, tmp_path):
    text = json.dumps(json.loads(written(arm.Cell(manipulators=[four_bar()]))))
    assert text.count(LOOP) == 1
    (found,) = faults(text.replace(LOOP, f'{LOOP},\n  §{{"loop": {loop}}}'), tmp_path)
    assert found.startswith(("HERE error[bad-loop]: Manipulator 'bar': ", "HERE error"))
    assert expected in found


def test_every_loop_that_cannot_be_is_reported(tmp_path):
    text = json.dumps(json.loads(written(arm.Cell(manipulators=[four_bar()]))))
    more = [f'{{"loop": "rod", "a": "ground", "b": "{b}", "length": 1}}' for b in "xy"]
    first, second = faults(
        text.replace(LOOP, f"{more[0]}, {LOOP}, §{more[1]}"), tmp_path
    )
    assert "no frame named 'x'" in first
    assert "HERE error[bad-loop]" in second


def test_loops_contradict_each_other_at_the_second(tmp_path):
    text = json.dumps(json.loads(written(arm.Cell(manipulators=[four_bar()]))))
    other = LOOP.replace('"b": "end"', '"b": "rocker"')
    (found,) = faults(text.replace(LOOP, f"{LOOP}, §{other}"), tmp_path)
    assert "HERE error[bad-loop]" in found
    assert "stays open by" in found


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("swing/ende", "no frame named 'ende' in manipulator 'swing'"),
        ("ground", "Frame 'ground' is not unique; say 'drive/ground', 'swing/ground'"),
        ("drive/tip", "Nothing moves in"),
    ],
)
def test_a_loop_of_a_cell_that_cannot_be_is_reported(end, expected, tmp_path):
    document = json.loads(written(linked_arms()))
    (loop,) = document.pop("loops")
    text = json.dumps(document).removesuffix("}")
    loop["b"] = end
    (found,) = faults(f'{text}, "loops": [§{json.dumps(loop)}]}}', tmp_path)
    assert found.startswith("HERE error[bad-loop]: ")
    assert expected in found
