"""A picture of a cell, drawn by a browser without a window."""

from __future__ import annotations

import io
import operator
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ViewError, printable, quote, unknown
from armillary.kinematics.state import State
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.view.camera import FIELD_OF_VIEW, Camera, fitted
from armillary.view.kinds import Layer
from armillary.view.motion import motion_of, trace_of
from armillary.view.result_file import check_target, write_result
from armillary.view.session import Session

if TYPE_CHECKING:
    import viser

__all__ = ["write_shot"]

Pixels = npt.NDArray[np.uint8]

LARGEST: Final = 8192  # [pixels]
MOST_DRAWN: Final = 10
"""How often the cell is drawn until two pictures are the same."""


def write_shot(  # noqa: PLR0913
    cell: Workcell,
    path: str | os.PathLike[str],
    state: State,
    *,
    size: tuple[int, int],
    look_from: npt.ArrayLike | None,
    look_at: npt.ArrayLike | None,
    show: Iterable[str] | None,
    motion: Any,
    meshes: MeshSource | None,
    timeout: float,
) -> None:
    """Write a picture of a cell to a PNG file; see `Cell.shot`."""
    check_target(path, "cell.png")
    ending = os.path.splitext(str(os.fspath(path)))[1]
    if ending.lower() not in {"", ".png"}:
        raise ViewError(
            f"A picture is written as PNG, not as {quote(ending)}; name a file such as "
            "cell.png."
        )
    _check(size)
    if not 0.0 < timeout < np.inf:
        raise ModelError(f"timeout= is a positive time [s], not {quote(timeout)}.")
    layers = None if show is None else frozenset(_layer(name) for name in show)
    lines = None
    if motion is not None:
        lines = trace_of(motion_of(state, motion, times=None, rate=None))
    session = Session(cell, state, meshes=meshes)
    try:
        scene = session.scene
        if lines is not None:
            scene.show_trace(lines)
        chosen = scene.first_layers if layers is None else layers
        for layer in scene.layers:
            scene.show_layer(layer, layer in chosen)
        outline = scene.outline(chosen)
        camera = _camera(outline, size, look_from, look_at)
        with hidden_browser(session.address, size) as browser:
            client = _connected(session.server, browser, timeout)
            pixels = _drawn(client, camera, size, timeout)
    finally:
        session.close()
    write_result(path, _png(pixels))


def _check(size: Any) -> None:
    try:
        width, height = map(operator.index, size)
    except (TypeError, ValueError):
        width = height = 0
    if not (0 < width <= LARGEST and 0 < height <= LARGEST):
        raise ModelError(
            f"The size of a picture is a width and a height from 1 to {LARGEST} "
            f"pixels, not {size!r}."
        )


def _layer(name: str) -> Layer:
    try:
        return Layer(name)
    except ValueError:
        raise unknown("layer", name, [each.value for each in Layer]) from None


def _camera(
    outline: npt.NDArray[np.float64],
    size: tuple[int, int],
    look_from: npt.ArrayLike | None,
    look_at: npt.ArrayLike | None,
) -> Camera:
    """Return the camera that was asked for; what is left open sees all of the cell."""
    middle = None if look_at is None else _point("look_at", look_at)
    aspect = size[0] / size[1]
    if look_from is None:
        return fitted(outline, look_at=middle, aspect=aspect)
    start = _point("look_from", look_from)
    if middle is None:
        middle = 0.5 * (outline.min(axis=0) + outline.max(axis=0))
    return Camera(start, middle)


def _point(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    point = np.asarray(value, dtype=np.float64)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise ModelError(f"{name} is a point of three finite numbers, not {value}.")
    return point


def _connected(
    server: viser.ViserServer, browser: Browser, timeout: float
) -> viser.ClientHandle:
    """Return the browser as the server knows it, once it has connected."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        clients = server.get_clients()
        if clients:
            return next(iter(clients.values()))
        if not browser.is_running:
            raise ViewError(f"The browser ended at once.{browser.last_words()}")
        time.sleep(0.05)
    raise ViewError(
        f"The browser did not connect within {timeout:g} s.{browser.last_words()}"
    )


def _drawn(
    client: viser.ClientHandle, camera: Camera, size: tuple[int, int], timeout: float
) -> Pixels:
    """Return the picture as soon as drawing it again changes nothing.

    Meshes and textures arrive in the browser one after another.
    """
    width, height = size
    before: Pixels | None = None
    for _ in range(MOST_DRAWN):
        try:
            now: Pixels = client.get_render(
                height,
                width,
                wxyz=np.array(camera.quaternion()),
                position=camera.position,
                fov=FIELD_OF_VIEW,
                transport_format="png",
                timeout=timeout,
            )
        except (RuntimeError, TimeoutError) as error:
            raise ViewError(f"The browser did not draw the cell: {error}") from error
        if before is not None and np.array_equal(now, before):
            return _on_white(now)
        before = now
        time.sleep(0.1)
    raise ViewError(
        f"The picture still changed after it had been drawn {MOST_DRAWN} times."
    )


def _on_white(pixels: Pixels) -> Pixels:
    """Return a picture without transparency, shape (height, width, 3)."""
    opacity = pixels[:, :, 3:] / 255.0
    mixed = pixels[:, :, :3] * opacity + 255.0 * (1.0 - opacity)
    return np.rint(mixed).astype(np.uint8)


def _png(pixels: Pixels) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="PNG", optimize=True)
    return file.getvalue()


# the browser that draws it, without a window


NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS: Final = (
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
)
"""Draw with the processor, and ask nothing of the network."""

PATIENCE: Final = 10.0
"""How long the browser may take to end [s]."""


class Browser:
    """A browser that has one page open."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        """Take a process that writes to a log."""
        self._process = process
        self._log = log

    @property
    def is_running(self) -> bool:
        """Return whether it has not ended."""
        return self._process.poll() is None

    def last_words(self) -> str:
        """Return the last line that it wrote, as a sentence, or nothing."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f" It wrote: {printable(said[-1])}" if said else ""


@contextmanager
def hidden_browser(address: str, size: tuple[int, int]) -> Generator[Browser]:
    """Open a page without a window until the block ends.

    Args:
        address: The address of the page.
        size: Width and height of the page [pixels].

    Raises:
        ViewError: No browser is installed.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        (Path(folder) / "log").open("w+b") as log,
    ):
        process = subprocess.Popen(
            [
                browser_path(),
                "--headless",
                *browser_flags(),
                f"--user-data-dir={folder}",
                f"--window-size={size[0]},{size[1] + 200}",  # and its frame
                address,
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            yield Browser(process, log)
        finally:
            _end(process)


def browser_path() -> str:
    """Return the path of the first browser that is installed.

    Raises:
        ViewError: There is none.
    """
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    raise ViewError(
        f"A picture needs a browser, and none of these is installed: "
        f"{', '.join(NAMES)}. On Debian and Ubuntu: apt install chromium."
    )


def browser_flags() -> tuple[str, ...]:
    """Return the options that let it draw anywhere; root has no sandbox."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return (*FLAGS, "--no-sandbox") if is_root else FLAGS


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
