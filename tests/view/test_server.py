"""The server of a viewer answers its own page on this machine, and nobody else."""

from __future__ import annotations

import socket
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError, ViewError
from armillary.view.camera import fitted
from armillary.view.page import messages_of
from armillary.view.panel.joint_sliders import label_of, slider_of

viser = pytest.importorskip("viser")


@pytest.fixture(scope="module")
def viewer():
    with arm.example("ur5e_on_oval").view() as found:
        yield found


def handshake(viewer, **headers: str) -> int:
    """The status of an attempt to open a connection."""
    where = urlsplit(viewer.address)
    connection = HTTPConnection(where.hostname, where.port, timeout=60)
    given = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": f"viser-v{viser.__version__}",
    }
    connection.request("GET", "/", headers={**given, **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def test_it_listens_on_this_machine_only(viewer) -> None:
    assert urlsplit(viewer.address).hostname == "127.0.0.1"
    assert viewer.server.get_host() == "127.0.0.1"


def test_its_own_page_may_connect(viewer) -> None:
    assert handshake(viewer, Origin=viewer.address) == 101


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1:1", "file://"]
)
def test_other_origins_are_refused(viewer, origin: str) -> None:
    assert handshake(viewer, Origin=origin) == 403


def test_a_connection_without_an_origin_is_refused(viewer) -> None:
    assert handshake(viewer) == 403


def test_a_foreign_name_that_leads_here_is_refused(viewer) -> None:
    port = urlsplit(viewer.address).port
    host = f"evil.example:{port}"
    assert handshake(viewer, Host=host, Origin=f"http://{host}") == 403


def test_no_browser_can_open_a_tunnel(viewer) -> None:
    handlers = viewer.server._websock_server._incoming_handlers
    from viser import _messages

    assert not handlers.get(_messages.ShareUrlRequest)
    assert not handlers.get(_messages.ShareUrlDisconnect)
    assert handlers.get(_messages.GuiUpdateMessage), "handlers are kept elsewhere now"


def test_a_busy_port_is_named() -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(ViewError, match=rf"Port {port} is in use.*--port"):
            arm.example("ur5e_on_oval").view(port=port)


def test_a_port_that_becomes_busy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armillary.view.server._is_free", lambda *_: True)
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(ViewError, match=rf"Port {port} is in use.*--port"):
            arm.example("ur5e_on_oval").view(port=port)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example.com"])
def test_other_machines_need_an_explicit_word(host: str) -> None:
    with pytest.raises(ModelError, match="without password"):
        arm.example("ur5e_on_oval").view(host=host)


@pytest.mark.parametrize("port", [0, -1, 70000, "80"])
def test_a_port_is_a_number(port: int) -> None:
    with pytest.raises(ModelError, match="from 1 to 65535"):
        arm.example("ur5e_on_oval").view(port=port)


def test_a_closed_viewer_says_so() -> None:
    cell = arm.example("ur5e_on_oval")
    viewer = cell.view()
    viewer.close()
    viewer.close()
    with pytest.raises(ViewError, match="closed"):
        viewer.show(cell.home.joints({"elbow": 1.0}))


def test_the_camera_leaves_room_for_the_panel_beside_the_cell(viewer) -> None:
    """Its first view holds the cell in a square, and windows are wide."""
    scene = viewer._session.scene
    camera = fitted(scene.outline(scene.first_layers), aspect=1.0)
    assert viewer.server.initial_camera.position == pytest.approx(camera.position)


def test_a_cell_whose_meshes_are_all_missing_is_shown_with_a_note() -> None:
    mesh = arm.shapes.Mesh(file="missing.stl")
    link = arm.Link(name="base", visuals=[mesh])
    cell = arm.Cell(manipulators=[arm.Manipulator(name="box", links=[link])])
    with cell.view() as viewer:
        assert any("missing.stl" in note for note in viewer.notes)


@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 0), (1, 1), (0, 5e-324), (1e300, 1e300), (-1e300, 1e300)]
)
def test_joints_of_any_range_have_a_slider(lower: float, upper: float) -> None:
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="table",
            parent="base",
            joint=arm.joints.Prismatic(axis=(0, 0, 1)),
            limits=arm.Limits(lower=lower, upper=upper),
        ),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="lift", links=links)])
    with cell.view() as viewer:
        assert viewer.state == cell.home
    for q in (-1.0, 0.0, 2.0):
        slider = slider_of(cell.workcell, 0, q)
        assert slider["min"] <= q <= slider["max"]
        assert slider["step"] > 0.0


@pytest.mark.parametrize(
    ("lower", "upper", "ends"),
    [
        (0.0, 12.0, (0.0, 12.0)),
        (-40.0, 2.0, (-40.0, 2.0)),
        (-np.inf, 12.0, (-10.0, 12.0)),
        (3.0, np.inf, (3.0, 10.0)),
        (15.0, np.inf, (15.0, 25.0)),
        (-np.inf, np.inf, (-10.0, 10.0)),
        (-1e5, 1e5, (-10.0, 10.0)),  # as files write that there are none
    ],
)
def test_sliders_end_at_the_limits(lower: float, upper: float, ends) -> None:
    joint = arm.joints.Prismatic(axis=(0, 0, 1))
    limits = arm.Limits(lower=lower, upper=upper)
    table = arm.Link(name="table", parent="base", joint=joint, limits=limits)
    lift = arm.Manipulator(name="lift", links=[arm.Link(name="base"), table])
    slider = slider_of(arm.Cell(manipulators=[lift]).workcell, 0, max(lower, 0.0))
    assert (slider["min"], slider["max"]) == ends


def test_labels_of_angles_have_degrees() -> None:
    cell = arm.example("oval_track_cell").workcell
    assert label_of(cell, 3, np.pi / 2) == "elbow [rad] 90.0\N{DEGREE SIGN}"
    assert label_of(cell, 3, -1e-9) == "elbow [rad] 0.0\N{DEGREE SIGN}"
    assert label_of(cell, 3, -1.0) == "elbow [rad] \N{MINUS SIGN}57.3\N{DEGREE SIGN}"
    assert label_of(cell, 0, 1.5) == "cart [m]"


def test_a_motion_is_that_which_was_given(viewer) -> None:
    Q, times = np.full((2, 7), 0.5), np.array([0.0, 1e6])
    viewer.play(Q, times=times)
    Q[:], times[:] = np.nan, np.nan
    assert viewer._playback._motion.at(1.0).q.tolist() == [0.5] * 7


@pytest.mark.parametrize("motion", ["abc", [[0.0]], [], [[float("nan")] * 7], None])
def test_a_wrong_motion_is_refused(viewer, motion: object) -> None:
    with pytest.raises((ShapeError, ModelError), match=r"[Mm]otion"):
        viewer.play(motion)


@pytest.mark.usefixtures("full_light")
@pytest.mark.parametrize(
    ("name", "lights"), [("ur5e_on_oval", [False]), ("oval_track_cell", [])]
)
def test_lights_cast_no_shadows_of_cells_without_surfaces(
    name: str, lights: list[bool]
) -> None:
    with arm.example(name).view() as viewer:
        sent = messages_of(viewer.server)
    found = [each for each in sent if each["type"] == "EnableLightsMessage"]
    assert [each["cast_shadow"] for each in found] == lights
