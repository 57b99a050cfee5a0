"""Plans: outlines of shapes from above."""

from __future__ import annotations

import io
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial import ConvexHull

import armillary as arm
from armillary import Link, Manipulator, Pose
from armillary.cell.cell import Cell
from armillary.model.shape import Shape
from armillary.shapes import Box, Cylinder, HalfSpace, Sphere
from armillary.view.plan_view import convex_outline

Array = npt.NDArray[np.float64]


def area(corners: npt.ArrayLike) -> float:
    """The area of a polygon, by the shoelace formula; positive counter-clockwise."""
    x, y = np.array(corners).T
    return float(0.5 * (x * np.roll(y, -1) - y * np.roll(x, -1)).sum())


def stand(*shapes: Shape, name: str = "stand") -> Cell:
    """A cell of one link that does not move."""
    link = Link(name=name, joint=arm.joints.Fixed(), visuals=shapes)
    return Cell(name=name, manipulators=[Manipulator(name=name, links=[link])])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [3, 7, 500])
def test_outlines_are_those_of_qhull(seed: int, count: int):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 2)) * [3.0, 0.1]
    if seed % 2:
        points = np.round(points, 1)  # some are equal, some on one line
        points = np.concatenate([points, [[9.0, 0.0], [0.0, 9.0], [-9.0, -9.0]]])
    corners = convex_outline(points)
    hull = ConvexHull(points)
    assert area(corners) == pytest.approx(hull.volume, rel=1e-12)
    expected = {tuple(row) for row in points[hull.vertices].tolist()}
    assert {tuple(row) for row in corners.tolist()} <= expected


@pytest.mark.parametrize(
    "points", [[[1.0, 2.0]], [[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0]] * 5]
)
def test_points_without_area_have_few_corners(points: list[list[float]]):
    assert len(convex_outline(np.array(points))) <= 2


def test_outlines_are_where_shapes_are_in_a_state():
    cell = arm.example("ur10_on_rail")
    q = np.array(cell.home.q)
    q[0] += 0.5
    moved = cell.home.replace(q=q)
    first, second = (
        {
            (each.manipulator, each.link, k): np.array(each.corners)
            for k, each in enumerate(cell.plan_view(state).outlines)
        }
        for state in (cell.home, moved)
    )
    step = cell.pose("plate", moved)[:2, 3] - cell.pose("plate", cell.home)[:2, 3]
    assert np.linalg.norm(step) == pytest.approx(0.5)
    assert any(key[0] == "ur10" for key in first)
    for key, corners in first.items():
        carried = key[0] == "ur10" or key[1] == "carriage"
        expected = corners + step if carried else corners
        assert np.sort(second[key], axis=0) == pytest.approx(
            np.sort(expected, axis=0), abs=2e-6
        )


TURNED = Pose.from_rpy(0.0, 0.0, 0.7, (1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("shape", "expected", "heights"),
    [
        (Box(size=(2.0, 3.0, 4.0), pose=TURNED), 6.0, (1.0, 5.0)),
        (Sphere(radius=2.0, pose=TURNED), 4.0 * np.pi, (1.0, 5.0)),
        (Cylinder(radius=2.0, length=1.0, pose=TURNED), 4.0 * np.pi, (2.5, 3.5)),
    ],
)
def test_outlines_have_the_area_of_the_shadow(
    shape: Shape, expected: float, heights: tuple[float, float]
):
    (outline,) = stand(shape).plan_view().outlines
    assert area(outline.corners) == pytest.approx(expected, rel=0.01)
    assert area(outline.corners) <= expected * (1.0 + 1e-6)
    middle = np.mean(outline.corners, axis=0)
    assert middle == pytest.approx((1.0, 2.0), abs=0.02)
    assert (outline.lowest, outline.highest) == pytest.approx(heights, abs=0.02)


def test_floors_have_no_outline_and_cells_may_be_empty():
    floor = stand(HalfSpace(), Box(size=(1.0, 1.0, 1.0))).plan_view()
    assert len(floor.outlines) == 1
    assert Cell(name="empty").plan_view().box == (0.0, 0.0, 0.0, 0.0)
    ET.fromstring(Cell(name="empty").plan_view().svg)


def test_lines_stand_for_links_without_shapes():
    plan = arm.example("delta").plan_view()
    assert not plan.outlines and plan.sticks
    lengths = [np.hypot(*np.subtract(a, b)) for a, b in plan.sticks]
    assert max(lengths) > 0.1


def test_pictures_are_to_scale_and_names_are_texts():
    evil = "<script>&\"'"
    cell = stand(Box(size=(2.0, 1.0, 1.0)), name=evil)
    svg = cell.plan_view(ways={evil: [[0.0, 0.0, 9.0], [1.0, 0.5, 0.0]]}).svg
    root = ET.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    assert not list(root.iter(f"{space}script"))
    (box,) = root.iter(f"{space}polygon")
    points = np.array([p.split(",") for p in box.get("points", "").split()], float)
    sides = np.ptp(points, axis=0)
    assert sides[0] == pytest.approx(2.0 * sides[1], rel=1e-3)
    (way,) = root.iter(f"{space}polyline")
    ends = np.array([p.split(",") for p in way.get("points", "").split()], float)
    assert ends[1] - ends[0] == pytest.approx((sides[0] / 2, -sides[1] / 2), abs=0.02)
    assert evil in "".join(root.itertext())


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plan = stand(Box(size=(2.0, 1.0, 1.0))).plan_view()
    plan.write(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text() == plan.svg + "\n"
    with pytest.raises(arm.errors.UnknownName, match="svg"):
        plan.write(tmp_path / "plan.png")
    monkeypatch.setitem(sys.modules, "ezdxf", None)
    with pytest.raises(arm.errors.ViewError, match=r"armillary\[dxf\]"):
        plan.write(tmp_path / "plan.dxf")


@pytest.mark.parametrize("way", [[1.0, 2.0], [[1.0]], [[np.nan, 0.0]]])
def test_ways_are_points(way: object):
    with pytest.raises(arm.errors.ModelError, match="finite points"):
        stand().plan_view(ways={"tool": way})  # type: ignore[dict-item]


def test_dxf_is_read_by_others(tmp_path: Path):
    ezdxf = pytest.importorskip("ezdxf", reason="the extra 'dxf' is not installed")
    cell = stand(Box(size=(2.0, 1.0, 1.0), pose=TURNED), name="a<b|ways")
    plan = cell.plan_view(ways={"tool": [[0.0, 0.0], [1.0, 0.5]]})
    plan.write(tmp_path / "plan.dxf")
    drawing = ezdxf.read(io.StringIO((tmp_path / "plan.dxf").read_text()))
    assert drawing.units == ezdxf.units.M
    assert not drawing.audit().errors
    by_layer = {each.dxf.layer: each for each in drawing.modelspace()}
    assert set(by_layer) == {"a_b_ways", "ways"}
    box = by_layer["a_b_ways"]
    assert box.closed
    assert area([p[:2] for p in box.get_points()]) == pytest.approx(2.0, abs=1e-5)
    assert box.dxf.elevation == pytest.approx(3.5)
