"""How quickly the viewer follows: states from Python, and a gizmo that is dragged.

A connection without a browser measures our part. A browser shows the rest, which
depends on what draws its pictures: here it is the processor.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

import armillary as arm
from armillary.view.shot import browser_flags, browser_path
from benchmarks.measure import Figure, within

UPDATES = 150
DRAGS = 200
DRAGS_SEEN = 30
STARTS = 3
PATIENCE = 60.0  # [s]
MOVED = b"SetPositionMessage"
WATCH = """(() => {
  globalThis.pictures = [];  // when the picture changed [ms], and its calls to draw
  let context = null, calls = 0, last = 0;
  const prototype = WebGL2RenderingContext.prototype;
  for (const name of ["drawElements", "drawArrays", "drawElementsInstanced",
                      "drawArraysInstanced"]) {
    const draw = prototype[name];
    prototype[name] = function (...given) {
      [context, calls] = [this, calls + 1];
      return draw.apply(this, given);
    };
  }
  const next = globalThis.requestAnimationFrame.bind(globalThis);
  globalThis.requestAnimationFrame = (call) => next((time) => {
    call(time);
    if (calls === 0) return;
    const [width, height] = [context.drawingBufferWidth, context.drawingBufferHeight];
    const pixels = new Uint8Array(4 * width * height);  // waits until all is drawn
    const [all, kind] = [context.RGBA, context.UNSIGNED_BYTE];
    context.readPixels(0, 0, width, height, all, kind, pixels);
    let sum = 0;
    for (const each of new Uint32Array(pixels.buffer)) sum = (31 * sum + each) | 0;
    const now = performance.timeOrigin + performance.now();
    if (sum !== last) pictures.push([now, calls]);
    [last, calls] = [sum, 0];
  });
})()"""
"""What a page runs first, to note when its picture changes."""
OF_EMPTY_SCENES = 10
"""An empty scene takes fewer calls to draw."""


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


class Watched:
    """A page that notes when its picture changes, in a browser of its own."""

    def __init__(self, playwright: Any, address: str) -> None:
        self._browser = playwright.chromium.launch(
            executable_path=browser_path(), args=browser_flags()
        )
        self._page = self._browser.new_page(viewport={"width": 800, "height": 600})
        self._page.add_init_script(WATCH)
        self._page.goto(address, wait_until="commit")
        self._page.wait_for_function(
            f"pictures.some(([_, calls]) => calls > {OF_EMPTY_SCENES})",
            timeout=1e3 * PATIENCE,
        )

    @property
    def first(self) -> float:
        """When the first picture of the cell was there [s], by `time.time`."""
        found = self._page.evaluate("pictures")
        return 1e-3 * min(at for at, calls in found if calls > OF_EMPTY_SCENES)

    def settle(self) -> int:
        """Wait until the picture stands; return how often it has changed."""
        count = -1
        while count != (count := self._page.evaluate("pictures.length")):
            time.sleep(0.5)
        return count

    def change(self, number: int) -> float:
        """Return when the picture changed for the `number`-th time [s]."""
        self._page.wait_for_function(
            f"pictures.length > {number}", timeout=1e3 * PATIENCE
        )
        return 1e-3 * self._page.evaluate(f"pictures[{number}][0]")

    def close(self) -> None:
        """Close the browser."""
        self._browser.close()


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


class Drag:
    """A gizmo on the tool of an arm on a track, dragged up and down."""

    def __init__(self) -> None:
        cell = arm.example("ur5e_on_oval")
        bent = cell.home.replace(q=[0.0, 1.5, -1.5, 1.5, -1.5, -1.5, 0.0])
        pose = arm.Pose.from_matrix(cell.pose("tool0", bent))
        self._wxyz = [float(each) for each in pose.quaternion()]
        self._start = [float(each) for each in pose.position]
        self._steps = 0
        self.viewer = cell.view(bent)
        self.connection = Connection(self.viewer)
        time.sleep(1.0)

    def begin(self) -> None:
        """Take hold of the gizmo."""
        self.connection.look()
        time.sleep(0.5)
        self.connection.send(
            type="TransformControlsDragStartMessage", name="/target", owner=""
        )

    def step(self) -> None:
        """Drag by one more step."""
        self._steps += 1
        x, y, z = self._start
        self.connection.moved.clear()
        self.connection.send(
            type="TransformControlsUpdateMessage",
            name="/target",
            wxyz=self._wxyz,
            position=[x, y, z + 0.1 * math.sin(0.1 * self._steps)],
            owner="",
        )

    def close(self) -> None:
        """End it."""
        self.connection.close()
        self.viewer.close()


def drag_times() -> list[float]:
    """Return the times from a step of a drag to the poses that answer it [s]."""
    drag, found = Drag(), list[float]()
    drag.begin()
    for _ in range(DRAGS):
        start = time.perf_counter()
        drag.step()
        if drag.connection.moved.wait(5.0):
            found.append(time.perf_counter() - start)
        time.sleep(0.02)
    drag.close()
    return found


def drag_to_picture_times(playwright: Any) -> list[float]:
    """Return the times from a step of a drag to the picture that shows it [s]."""
    drag, found = Drag(), list[float]()
    page = Watched(playwright, drag.viewer.address)
    drag.begin()
    # The gizmo itself is hidden: the picture is to change with the links only.
    nodes = drag.viewer.server.scene._handle_from_node_name
    nodes["/target"].visible = False
    for _ in range(DRAGS_SEEN):
        count = page.settle()
        start = time.time()
        drag.step()
        found.append(page.change(count) - start)
    page.close()
    drag.close()
    return found


def start_times(playwright: Any) -> tuple[float, float]:
    """Return the times from the command to an address, and to a first picture [s].

    The browser is started when the address is there, and its start counts.
    """
    command = [sys.executable, "-m", "armillary", "view", "--no-open", FILE]
    start = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    to_address = time.time() - start
    (address,) = re.findall(r"http://\S+", line)
    page = Watched(playwright, address)
    to_picture = page.first - start
    page.close()
    process.terminate()
    process.wait()
    return to_address, to_picture


FILE = str(arm.__path__[0] + "/cells/oval_track_cell.cell.json")


def figures() -> Iterator[Figure]:
    """Yield the figures of the viewer."""
    from playwright.sync_api import sync_playwright

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
    with sync_playwright() as playwright:
        seen = drag_to_picture_times(playwright)
        starts = [start_times(playwright) for _ in range(STARTS)]
    to_address, to_picture = map(min, zip(*starts, strict=True))
    yield within(
        "step of a drag to its picture, drawn by the processor, median",
        float(np.median(seen)),
        at_most=0.2,
    )
    yield within("`armillary view` to its address", to_address, at_most=3.0)
    yield within(
        "`armillary view` to its first picture, drawn by the processor",
        to_picture,
        at_most=3.0,
    )
