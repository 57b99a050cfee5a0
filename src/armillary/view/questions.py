"""What a cell is asked to see it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from armillary.forks import IMPORT_LOCK
from armillary.kinematics.state import State, bound_state, home
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.view.server import LOOPBACK

if TYPE_CHECKING:
    from armillary.view.page import PageSize
    from armillary.view.viewer import Viewer

__all__ = ["export", "shot", "view"]


def view(
    cell: Workcell,
    state: State | None = None,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    insecure_remote: bool = False,
    meshes: MeshSource | None = None,
) -> Viewer:
    """Show a cell in the browser; the address is `viewer.address`.

    The server runs in threads of this process until `viewer.close()` is called or the
    process ends. In a notebook, a viewer as the last line of a block is shown there.

    Args:
        cell: What to show.
        state: The state of the cell; home by default.
        host: The address of this machine to listen at.
        port: By default the first free one from 8080 on.
        insecure_remote: Whether `host` may be one that other machines reach. Whoever
            reaches it can move the cell; there is neither password nor encryption.
        meshes: What reads the files of its meshes; by default that of the cell.

    Raises:
        StateError: The state is not one of this cell.
        ViewError: viser is not installed, or the port is in use.
        ModelError: The host can be reached from other machines, and that was not
            allowed.
    """
    with IMPORT_LOCK:
        from armillary.view.viewer import Viewer  # nobody else pays for it

    shown = home(cell) if state is None else bound_state(cell, state)
    return Viewer(
        cell,
        shown,
        meshes=meshes,
        host=host,
        port=port,
        insecure_remote=insecure_remote,
    )


def export(
    cell: Workcell,
    path: str | os.PathLike[str],
    *,
    state: State | None = None,
    motion: Any = None,
    times: npt.ArrayLike | None = None,
    rate: float | None = None,
    meshes: MeshSource | None = None,
) -> PageSize:
    """Write a cell as one HTML file, which browsers open from disk without a network.

    Args:
        cell: What the page shows.
        path: The file, which is replaced if it exists.
        state: The state of the cell; home by default. Attachments stay as in it.
        motion: What to play: joint positions, shape (k, n) [m or rad], a list
            of states, a `Trajectory` of `cell.simulate`, or a `ControlledMotion` of a
            controller, with what it avoided.
        times: Its instants [s], ascending, shape (k,).
        rate: Its samples a second where there are no times; by default 30.
        meshes: What reads the files of its meshes; by default that of the cell.

    Returns:
        How large the page is.

    Raises:
        StateError: The state is not one of this cell, or has numbers that are not
            finite.
        ShapeError: The shape of the motion or the times does not fit.
        ModelError: A number of the motion is not finite, or the cell has too many
            links for a page.
        ViewError: viser is not installed, the folder of the file does not exist, or the
            path is that of a folder.
    """
    with IMPORT_LOCK:
        from armillary.view.page import write_page  # nobody else pays for it

    return write_page(
        cell,
        path,
        state=home(cell) if state is None else bound_state(cell, state),
        motion=motion,
        times=times,
        rate=rate,
        meshes=meshes,
    )


def shot(  # noqa: PLR0913
    cell: Workcell,
    path: str | os.PathLike[str],
    state: State | None = None,
    *,
    size: tuple[int, int] = (1280, 960),
    look_from: npt.ArrayLike | None = None,
    look_at: npt.ArrayLike | None = None,
    show: Iterable[str] | None = None,
    motion: Any = None,
    meshes: MeshSource | None = None,
    timeout: float = 60.0,
) -> None:
    """Write a picture of a cell to a PNG file.

    A browser of this machine draws it, Chromium or Chrome, without a window.

    Args:
        cell: What to draw.
        path: The file to write.
        state: The state of the cell; home by default.
        size: Width and height [pixels].
        look_from: The camera's position [m], shape (3,); by default all of the cell is
            seen from the front right.
        look_at: The middle of the picture [m], shape (3,); that of the cell by default.
        show: The layers to draw: "visuals", "collisions", "bounding spheres",
            "bounding boxes", "frames", "names", "joints"; by default visuals, or else
            collisions, or else joints and frames.
        motion: A motion as for `Viewer.play`, of whose end effectors the way is drawn.
        meshes: What reads the files of its meshes; by default that of the cell.
        timeout: How long the browser may take to connect, and then to draw [s].

    Raises:
        StateError: The state is not one of this cell.
        ModelError: The size is not of a picture, a point is not finite, or the timeout
            is not positive.
        UnknownName: There is no such layer.
        ViewError: viser or a browser is not installed, the browser did not answer, or
            the folder of the file does not exist, or the path is that of a folder or
            of a picture of another kind.
    """
    with IMPORT_LOCK:
        from armillary.view.shot import write_shot  # nobody else pays for it

    write_shot(
        cell,
        path,
        home(cell) if state is None else bound_state(cell, state),
        size=size,
        look_from=look_from,
        look_at=look_at,
        show=show,
        motion=motion,
        meshes=meshes,
        timeout=timeout,
    )
