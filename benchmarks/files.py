"""Files that people have: what loads, poses known from elsewhere, round trips."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import armillary as arm
from armillary.formats.registry import read, write
from armillary.spatial import dh
from benchmarks.measure import without_cache
from benchmarks.robots import SHARE, urdf_files

DATA = Path(__file__).parents[2] / "shared" / "data"
ROBWORK = DATA / "robwork"
TURN = math.pi / 2

UR5E = (  # a, d, alpha of Paul's order, as published
    (0.0, 0.1625, TURN),
    (-0.425, 0.0, 0.0),
    (-0.3922, 0.0, 0.0),
    (0.0, 0.1333, TURN),
    (0.0, 0.0997, -TURN),
    (0.0, 0.0996, 0.0),
)
KR16 = (  # alpha [deg], a, d of Craig's order, as RobWork's tests have them
    (0, 0, 0),
    (90, 0.26, 0),
    (0, 0.68, 0),
    (90, -0.035, -0.67),
    (-90, 0, 0),
    (90, 0, 0),
)
KR16_TOOL = (
    "0 -.70710678118 -.70710678118 -.141 -1 0 0 0 0 .70710678118 -.70710678118 -.299"
)
PUMA560 = (
    (0, 0, 0),
    (-90, 0, 0),
    (0, 0.4318, -1.15005),
    (-90, 0.0203, -0.4318),
    (90, 0, 0),
    (-90, 0, 0),
)


def report() -> Iterator[str]:
    """Yield a line for each file, known pose and round trip."""
    if not DATA.is_dir():
        yield f"no files to read: {DATA} is absent"
        return
    for path in sorted(ROBWORK.rglob("*.xml")):
        yield f"{path.relative_to(ROBWORK)}: {verdict(path)}"
    yield from known_poses()
    yield from round_trips()
    yield from loads()


def verdict(path: Path) -> str:
    """Return what is in a file of RobWork's, or why it was refused."""
    try:
        cell, found = read(path, folders=[ROBWORK])
    except arm.errors.FormatError as error:
        return f"refused: {error.diagnostics[0].message}"
    joints, count = len(cell.joint_names), len(found.diagnostics)
    sizes = f"{len(cell.manipulators)} manipulators, {joints} joints"
    return f"{sizes}, {count} diagnostics"


def known_poses() -> Iterator[str]:
    """Yield how far poses are from those known from elsewhere."""
    robwork = arm.load(ROBWORK / "testfiles/devices/UR5e/UR5e.xml")
    isaac = arm.load(DATA / "isaac/ur5e.kinematic.json")
    Q = np.random.default_rng(0).uniform(-math.pi, math.pi, (1000, 6))
    Q[0] = 0.3, -1.1, 0.8, 0.4, -0.7, 0.2
    published = np.array([ur5e(q) for q in Q])
    rounded = robwork.fk("Flange")(Q)[:, :3, 3] - published
    exact = isaac.fk(isaac.frame_names[-1])(Q)[:, :3, 3] - published
    first, worst = np.abs(rounded[0]).max(), np.abs(rounded).max()
    yield line("UR5e, RobWork's file and published DH, q of the notes", first, 1e-3)
    yield line(
        "the same, worst coordinate of 1000 random q (the file is rounded to mm)",
        worst,
        1.2e-3,
    )
    yield line("UR5e, Isaac's file and published DH", np.abs(exact).max(), 1e-3)

    kr16 = device("KR16", KR16, f"<Transform>{KR16_TOOL}</Transform>")
    X = kr16.fk("End")(np.radians([0, -60, 15, 0, 0, 0]))
    expected = [[0, -1, 0, 1.16074], [1, 0, 0, 0], [0, 0, 1, 0.22074]]
    yield line("KR16, pose of RobWork's test", np.abs(X[:3] - expected).max(), 5e-6)
    puma = device("Puma560", PUMA560, "<RPY/><Pos/>")
    X = puma.fk("End")(np.full(6, math.pi / 8))
    expected = [
        [0.448823, -0.073823, -0.890566, 1.104018],
        [-0.550328, -0.808012, -0.210372, -0.787506],
        [-0.704057, 0.584523, -0.403281, 0.125732],
    ]
    yield line("PUMA560, the same", np.abs(X[:3] - expected).max(), 5e-7)


def loads() -> Iterator[str]:
    """Yield how long a robot takes to load, beside the library of each format."""
    peers = {
        "SDF": (".sdf", _drake, "Drake"),
        "MJCF": (".mjcf.xml", _mujoco, "MuJoCo"),
        "USD": (".usdc", _usd, "usd-core"),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (ending, peer, what) in peers.items():
            path = Path(folder) / f"arm{ending}"
            arm.save(arm.example("irb2400"), path)
            try:
                theirs = peer(path)
            except ImportError:
                yield f"{name} beside {what}: {what} is absent"
                continue
            ours = without_cache(partial(arm.load, path))
            # USD is read in another process, whose time counts too.
            clock = time.perf_counter if name == "USD" else time.process_time
            ratio = _ratio(ours, theirs, clock)
            mark = "holds" if ratio <= 2.0 else "FALLS SHORT"
            yield f"{name}, time of {what}: {ratio:.2f}, asked <= 2: {mark}"


def _ratio(
    ours: Callable[[], object], theirs: Callable[[], object], clock: Callable[[], float]
) -> float:
    """Return the least time of one call over that of another, asked in turn."""
    least = [math.inf, math.inf]
    for _ in range(15):
        for k, call in enumerate((ours, theirs)):
            start = clock()
            call()
            least[k] = min(least[k], clock() - start)
    return least[0] / least[1]


def _drake(path: Path) -> Callable[[], object]:
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    def load() -> None:
        plant = MultibodyPlant(0.0)
        Parser(plant).AddModels(str(path))
        plant.Finalize()

    return load


def _mujoco(path: Path) -> Callable[[], object]:
    mujoco: Any = import_module("mujoco")
    return partial(mujoco.MjModel.from_xml_path, str(path))


def _usd(path: Path) -> Callable[[], object]:
    """Return what opens a stage, and looks at each pose, attribute and relationship."""
    usd: Any = import_module("pxr.Usd")
    geometry: Any = import_module("pxr.UsdGeom")

    def load() -> None:
        stage = usd.Stage.Open(str(path))
        stage.Reload()  # an open layer is not read again
        poses = geometry.XformCache()
        for prim in usd.PrimRange.Stage(stage, usd.TraverseInstanceProxies()):
            if prim.IsA(geometry.Xformable):
                poses.GetLocalToWorldTransform(prim)
            for attribute in prim.GetAuthoredAttributes():
                attribute.Get()
            for relationship in prim.GetAuthoredRelationships():
                relationship.GetTargets()

    return load


def line(what: str, error: float, at_most: float) -> str:
    """Return a line for a difference [m, or without unit]."""
    mark = "holds" if error <= at_most else "FALLS SHORT"
    return f"{what}: {error:.2e}, asked <= {at_most:g}: {mark}"


def ur5e(q: np.ndarray) -> np.ndarray:
    """Return where the flange is by the published parameters [m], shape (3,)."""
    X = arm.Pose.identity()
    for (a, d, alpha), theta in zip(UR5E, q, strict=True):
        X = X @ dh.paul(theta=theta, d=d, a=a, alpha=alpha)
    return np.array(X.position)


def device(name: str, rows: Iterable[tuple[float, float, float]], end: str) -> arm.Cell:
    """Return a serial device read from RobWork's XML."""
    joints = "".join(
        f'<DHJoint name="J{k}" alpha="{alpha}" a="{a}" d="{d}" offset="0"/>'
        for k, (alpha, a, d) in enumerate(rows)
    )
    frame = f'<Frame name="End">{end}</Frame>'
    text = (
        f'<SerialDevice name="{name}"><Frame name="B"/>{joints}{frame}</SerialDevice>'
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "device.xml"
        path.write_text(text, encoding="utf-8")
        return arm.load(path)


def round_trips() -> Iterator[str]:
    """Yield how many cells there were, and which a round trip changes."""
    sources = {
        "examples": [arm.example(name) for name in arm.example_names()],
        "RobWork": loaded(ROBWORK.rglob("*.xml")),
        "Isaac": loaded((DATA / "isaac").glob("*.json")),
        "URDF": loaded(urdf_files()),
    }
    for name, cells in sources.items():
        wrong = [cell.name for cell in cells if not is_stable(cell)]
        outcome = f"CHANGED: {wrong}" if wrong else "equal and the same bytes"
        yield f"native to native, {len(cells)} cells of {name}: {outcome}"


def loaded(paths: Iterable[Path]) -> list[arm.Cell]:
    """Return the cells in those files that can be read."""
    found: list[arm.Cell] = []
    for path in sorted(paths):
        try:
            packages = {"example-robot-data": SHARE}
            cell = arm.load(path, folders=[ROBWORK], packages=packages)
        except arm.errors.FormatError:
            continue
        found.append(cell)
    return found


def is_stable(cell: arm.Cell) -> bool:
    """Tell whether a cell and its bytes come back from a native file as they were."""
    data, _ = write(cell.workcell, format="cell")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cell.cell.json"
        path.write_bytes(data)
        again = arm.load(path)
    return again == cell and write(again.workcell, format="cell")[0] == data
