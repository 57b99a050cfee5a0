"""How quickly the viewer follows: states from Python, and a gizmo that is dragged.

A connection without a browser takes part, so that no drawing is measured: what a
browser adds depends on its graphics card, and is 1 to 2 frames.
"""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

import armillary as arm
from benchmarks.measure import Figure, within

UPDATES = 150
DRAGS = 200
MOVED = b"SetPositionMessage"


class Connection:
    """A connection as a browser has one; it keeps when which message came."""

    def __init__(self, viewer: Any) -> None:
        import viser
        from websockets.sync.client import connect

        self._socket = connect(
            viewer.address.replace("http", "ws"),
            origin=viewer.address,
            subprotocols=[f"viser-v{viser.__version__}"],
            max_size=None,
        )
        self.arrived: list[float] = []
        self.moved = threading.Event()
        threading.Thread(target=self._receive, daemon=True).start()

    def send(self, **message: Any) -> None:
        """Send a message."""
        self._socket.send(msgspec.msgpack.encode(message))

    def look(self) -> None:
        """Say where the camera is, which makes the connection known to the server."""
        self.send(
            type="ViewerCameraMessage",
            wxyz=[1.0, 0.0, 0.0, 0.0],
            position=[3.0, 0.0, 1.0],
            fov=1.0,
            near=0.01,
            far=100.0,
            image_height=600,
            image_width=800,
            look_at=[0.0, 0.0, 0.0],
            up_direction=[0.0, 0.0, 1.0],
        )

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self) -> None:
        import zstandard

        for data in self._socket:
            size = int.from_bytes(data[8:16], "little")
            text = zstandard.ZstdDecompressor().decompress(data[16 : 16 + size])
            if MOVED in text:
                self.arrived.append(time.perf_counter())
                self.moved.set()


def large_cell() -> arm.Cell:
    """Return 20 manipulators of 20 joints, each link with a capsule."""
    body = arm.shapes.Capsule(radius=0.02, length=0.1)
    manipulators: list[arm.Manipulator] = []
    for m in range(20):
        links = [arm.Link(name="base", primary=arm.Pose.translation(0.3 * m, 0, 0))]
        for k in range(20):
            joint = arm.joints.Revolute(axis=(0, k % 2, 1 - k % 2))
            link = arm.Link(
                name=f"link{k}", parent=links[-1].name, joint=joint, visuals=[body]
            )
            links.append(link)
        manipulators.append(arm.Manipulator(name=f"arm{m}", links=links))
    return arm.Cell(manipulators=manipulators)


def update_time() -> float:
    """Return the time of one update of 400 links, sent and received [s]."""
    cell = large_cell()
    steps = np.random.default_rng(0).uniform(-0.02, 0.02, (UPDATES, 400))
    states = [cell.home.replace(q=q) for q in np.cumsum(steps, axis=0)]
    with cell.view() as viewer:
        connection = Connection(viewer)
        viewer.show(states[0])
        time.sleep(2.0)
        start = time.perf_counter()
        for state in states[1:]:
            connection.moved.clear()
            viewer.show(state)
            connection.moved.wait(5.0)
        took = time.perf_counter() - start
        connection.close()
    return took / (UPDATES - 1)


def drag_times() -> list[float]:
    """Return the times from a step of a drag to the poses that answer it [s]."""
    cell = arm.example("ur5e_on_oval")
    bent = cell.home.replace(q=[0.0, 1.5, -1.5, 1.5, -1.5, -1.5, 0.0])
    x, y, z = cell.pose("tool0", bent)[:3, 3].tolist()
    found: list[float] = []
    with cell.view(bent) as viewer:
        connection = Connection(viewer)
        time.sleep(1.0)
        pose = arm.Pose.from_matrix(cell.pose("tool0", bent)).quaternion()
        connection.look()
        time.sleep(0.5)
        connection.send(
            type="TransformControlsDragStartMessage", name="/target", owner=""
        )
        for k in range(DRAGS):
            connection.moved.clear()
            start = time.perf_counter()
            connection.send(
                type="TransformControlsUpdateMessage",
                name="/target",
                wxyz=[float(each) for each in pose],
                position=[x, y, z + 0.1 * math.sin(0.1 * (k + 1))],
                owner="",
            )
            if connection.moved.wait(5.0):
                found.append(time.perf_counter() - start)
            time.sleep(0.02)
        connection.close()
    return found


def start_time() -> float:
    """Return the time from the command to an address that answers [s]."""
    command = [sys.executable, "-m", "armillary", "view", "--no-open", FILE]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    took = time.perf_counter() - start
    process.terminate()
    process.wait()
    assert "http://" in line, line
    return took


FILE = str(arm.__path__[0] + "/cells/oval_track_cell.cell.json")


def figures() -> Iterator[Figure]:
    """Yield the figures of the viewer."""
    yield within(
        "update of 400 links, sent and received", update_time(), at_most=1 / 30
    )
    times = drag_times()
    yield within(
        "step of a drag, UR5e on the oval, median",
        float(np.median(times)),
        at_most=0.03,
    )
    yield within(
        "the same, 99 % of the steps", float(np.quantile(times, 0.99)), at_most=0.1
    )
    yield within("`armillary view` to its address", start_time(), at_most=3.0)
