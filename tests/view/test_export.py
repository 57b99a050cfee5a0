"""The page that holds a cell, in a browser that opens it from disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import armillary as arm
from armillary.kinematics.moving_links import moving_links, poses_of_links
from armillary.replaced_file import replacing
from armillary.view.drawing import drawings
from armillary.view.kinds import Layer
from armillary.view.page import PagePanel
from armillary.view.panel.joint_sliders import postures_of, slider_of
from armillary.view.scene import Scene, node_of
from armillary.view.server import LOOPBACK, serve, stop

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("viser", reason="the extra 'view' is not installed")

LEAST_BASE = 1_000_000  # bytes of a page without meshes
RATE = 10.0
COUNT = 100
SET = """([uuid, value]) => armillary.receive(
    {type: "GuiUpdateMessage", uuid, updates: {value}})"""
STANDS = """() => new Promise((done) => {
    const before = armillary.q().join();
    setTimeout(() => done(armillary.q().join() === before), 200);
})"""
DRAG = """([wxyz, position]) => armillary.receive({
    type: "TransformControlsUpdateMessage", name: "/gizmo", wxyz, position})"""
SAYS = """(text) => [...document.querySelectorAll("input")].some(
    (each) => each.value.includes(text))"""


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Export a cell and open its page, which must report no error or request."""
    context = browser.new_context(viewport={"width": 1000, "height": 700})
    context.set_default_timeout(120_000)  # the machine may be busy
    faults: list[str] = []
    asked: list[str] = []

    def open_page(cell: arm.Cell, *, is_drawn: bool = True, **options: Any) -> Page:
        path = tmp_path / "cell.html"
        cell.export(path, **options)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda line: faults.append(line.text) if line.type == "error" else None,
        )
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri(), wait_until="commit")
        page.wait_for_function("globalThis.armillary !== undefined")
        if is_drawn:
            page.get_by_text("Pose in the world").wait_for()
        return page

    yield open_page
    context.close()
    assert not faults
    assert [url for url in asked if not url.startswith(("blob:", "data:"))] == [
        (tmp_path / "cell.html").as_uri()
    ]


@pytest.mark.thorough
def test_page_plays_a_motion(opened: Any) -> None:
    cell = arm.example("scara")
    Q = np.linspace(cell.home.q, 0.5 * cell.limits[1], 21)
    page = opened(cell, motion=Q, rate=RATE)
    control = _control(page, "time")
    for k in (0, 7, 20):
        page.evaluate(SET, [control, k / RATE])
        np.testing.assert_allclose(page.evaluate("armillary.q()"), Q[k], 0.0, 1e-15)
    page.evaluate("armillary.move(new Array(4).fill(0))")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("armillary.q()[0] > 0")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_function(STANDS)
    page.get_by_role("slider").nth(1).press("Home")
    _wait_for(page, Q[0])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", arm.example_names())
def test_page_computes_the_poses_of_examples(opened: Any, name: str) -> None:
    cell = arm.example(name)
    page = opened(cell, is_drawn=False)
    lower, upper = (np.clip(each, -3.0, 3.0) for each in cell.limits)
    Q = np.random.default_rng(0).uniform(lower, upper, (COUNT, len(lower)))
    found = page.evaluate("(Q) => Q.map((q) => armillary.poses(q))", Q.tolist())
    wanted = poses_of_links(moving_links(cell.workcell), cell.home)(Q)
    assert np.isfinite(wanted).all(axis=(1, 2, 3)).any()
    np.testing.assert_allclose(
        np.array(found, np.float64).reshape(wanted.shape), wanted, 0.0, 1e-12
    )


@pytest.mark.thorough
def test_page_says_why_a_script_does_not_move(opened: Any, monkeypatch: Any) -> None:
    for module in ("poses", "moving_links"):
        monkeypatch.setattr(f"armillary.kinematics.{module}.MOST_COMPILED", 0)
    cell = arm.example("scara")
    page = opened(cell)
    page.wait_for_function(SAYS, arg="runs in Python only")
    page.evaluate("armillary.move([0, 0, 0, 0])")
    assert page.evaluate("armillary.q()") == list(cell.home.q)
    says = page.evaluate("try { armillary.poses([0]) } catch (e) { e.message }")
    assert "runs in Python only" in says


def test_controls_move_the_cell(opened: Any) -> None:
    """Number boxes, postures, the text of q and the slider, as people use them."""
    cell = arm.example("irb2400")
    page = opened(cell)
    q = np.array(cell.home.q)
    box = page.get_by_role("textbox").nth(1)
    box.fill("-2.71828")
    assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    page.get_by_text("\N{MINUS SIGN}155.7\N{DEGREE SIGN}").wait_for()
    canvas = page.locator("canvas").first.bounding_box()
    assert canvas["x"] + canvas["width"] <= box.bounding_box()["x"]
    box.fill("0.5")
    box.press("Enter")
    q[0] = 0.5
    _wait_for(page, q)
    page.get_by_role("slider").first.press("ArrowRight")
    q[0] += 1e-6
    _wait_for(page, q)
    page.get_by_role("button", name="folded").click()
    folded = cell.home.joints(postures_of(cell.manipulators[0])["folded"]).q
    _wait_for(page, folded)
    vector = page.get_by_role("textbox").nth(7)
    vector.fill("0.1 0.2, 0.3, 0.4 0.5 0.6")
    vector.press("Enter")
    q = np.arange(1, 7) / 10
    _wait_for(page, q)
    page.get_by_text("Pose in the world").click()
    page.evaluate(SET, [_control(page, "chosen"), "irb2400/tool0"])
    x, y, z = cell.fk("tool0")(q)[:3, 3]
    page.wait_for_function(SAYS, arg=f"{x:.6f}, {y:.6f}, {z:.6f}")
    vector.fill("0.1 0.2")
    vector.press("Enter")
    page.wait_for_function(SAYS, arg="q must have 6 numbers.")


@pytest.mark.thorough
def test_gizmo_moves_the_joints(opened: Any) -> None:
    cell = arm.example("irb2400")
    page = opened(cell)
    page.get_by_text("Target", exact=True).wait_for()
    page.evaluate(SET, [_control(page, "target"), "irb2400/tool0"])
    q = np.array(cell.home.q) + 0.05
    pose = arm.Pose.from_matrix(cell.fk("tool0")(q))
    w, x, y, z = pose.quaternion()
    page.evaluate(DRAG, [[w, x, y, z], list(pose.position)])
    _wait_for(page, q)
    page.evaluate(DRAG, [[w, x, y, z], [9.0, 9.0, 9.0]])
    page.wait_for_function(SAYS, arg="no joint positions within limits reach")
    _wait_for(page, q)


def _wait_for(page: Page, q: Any) -> None:
    """Wait until the cell is at q, by 1e-12."""
    page.wait_for_function(
        "(q) => armillary.q().every((at, k) => Math.abs(at - q[k]) < 1e-12)",
        arg=np.asarray(q).tolist(),
    )


def _control(page: Page, kind: str) -> str:
    found: str = page.evaluate("(kind) => armillary.control(kind)", kind)
    return found


def test_check_boxes_name_the_nodes_of_their_layers() -> None:
    cell = arm.example("oval_track_cell")
    server = serve(host=LOOPBACK, port=None)
    try:
        found = drawings(cell.workcell, cell.meshes)
        scene = Scene(server, cell.workcell, found, cell.home)
        panel = PagePanel(server, cell.workcell, cell.home, "")
        panel.add_layers(scene)
        for layer in scene.layers:
            scene.show_layer(layer, True)
        named = [box["nodes"] for box in panel.controls.values() if "nodes" in box]
        assert len(named) == len(scene.layers) >= len(Layer) - 1
        nodes = [node for each in named for node in each]
        assert len(nodes) == len(set(nodes)) == len(found.items)
        assert all(server.scene.get_handle_by_name(node) for node in nodes)
    finally:
        stop(server)


@pytest.mark.parametrize("name", ["palletiser", "oval_track_cell"])
def test_what_is_fixed_to_the_world_replaces_no_link(name: str) -> None:
    """The nodes of drawings, which are numbered, are none of those of links."""
    cell = arm.example(name)
    found = drawings(cell.workcell, cell.meshes)
    server = serve(host=LOOPBACK, port=None)
    try:
        scene = Scene(server, cell.workcell, found, cell.home)
        drawn = {node for layer in scene.layers for node in scene.nodes_in(layer)}
    finally:
        stop(server)
    assert not drawn & {node_of(k) for k in range(-1, len(cell.workcell.links))}


def test_hints_of_sliders_give_the_limits_of_angles_in_degrees_too() -> None:
    cell = arm.example("oval_track_cell").workcell
    track, elbow = (slider_of(cell, k, 0.0)["hint"] for k in (0, 3))
    assert track == "track/cart: no limits"
    assert elbow == "ur5e/elbow: -3.14159 to 3.14159 rad (-180 to 180 degrees)"


@pytest.mark.thorough
@pytest.mark.usefixtures("full_light")
def test_names_with_markup_are_text(opened: Any) -> None:
    name = "<img src=x onerror=alert(1)><script>alert(1)"
    part = arm.Manipulator(name=name, links=[arm.Link(name="base")])
    page = opened(arm.Cell(name=name, manipulators=[part]))
    assert page.title() == name
    page.get_by_text(name, exact=True).first.wait_for()  # on top of the panel
    assert page.locator("img[src=x]").count() == 0


def test_size_is_reported_and_small(tmp_path: Path) -> None:
    size = arm.example("ur5e_on_oval").export(tmp_path / "cell.html")
    assert size.total == (tmp_path / "cell.html").stat().st_size
    assert size.total < LEAST_BASE


def test_faults_raise_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = arm.example("scara")
    path = tmp_path / "cell.html"
    with pytest.raises(arm.errors.ArmillaryError, match="There is no folder"):
        cell.export(tmp_path / "none" / "cell.html")
    with pytest.raises(arm.errors.ArmillaryError, match="not finite"):
        cell.export(path, motion=np.full((3, len(cell.joint_names)), np.nan))
    with pytest.raises(arm.errors.ModelError, match="Times must be finite"):
        cell.export(path, motion=[cell.home.q] * 3, rate=1e-320)
    with pytest.raises(arm.errors.ViewError, match="cannot be written"):
        cell.export(tmp_path / ("a" * 300))
    with pytest.raises(arm.errors.ViewError, match="cannot be written"):
        cell.export(f"{path}\0")
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(arm.errors.ArmillaryError, match=r"armillary\[view\]"):
        cell.export(path)
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such files")
def test_only_plain_files_are_replaced(tmp_path: Path) -> None:
    cell, pipe = arm.example("scara"), tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(arm.errors.ViewError, match="not a plain file"):
        cell.export(pipe)
    with pytest.raises(OSError, match="a device"), replacing(os.devnull):
        pass
    assert pipe.is_fifo()
    (tmp_path / "link.html").symlink_to(tmp_path / "cell.html")
    cell.export(tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "cell.html").is_file()


def test_any_name_of_a_cell_can_be_a_title(tmp_path: Path) -> None:
    cell = arm.example("scara").replace(name="a\ud800b")
    cell.export(tmp_path / "cell.html")
    text = (tmp_path / "cell.html").read_text("utf-8")
    assert r"<title>a\ud800b</title>" in text
