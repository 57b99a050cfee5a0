"""Distances by coal and MuJoCo, dynamics by Pinocchio, in loops of C++ and C.

They are compiled into a temporary folder where a compiler and the headers are there:
those of MuJoCo come with it, those of coal and Pinocchio with
`pip install coal pin cmeel-eigen`. The loop of Pinocchio takes a minute or two.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    Sphere,
)

SOURCES = Path(__file__).with_name("peers")
KINDS = (
    Sphere,
    Capsule,
    Box,
    Cylinder,
    Cone,
    Ellipsoid,
    ConvexPolyhedron,
)  # as coal_loop.cpp has them
AXES = ("RX", "RY", "RZ", "PX", "PY", "PZ")  # as pinocchio_loop.cpp has them
PINOCCHIO = ("inverse", "mass matrix", "forward", "derivatives")
DEFINED = (  # as the headers of Pinocchio want it
    "BOOST_MPL_LIMIT_LIST_SIZE=30",
    "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
)
Loop = Callable[[], np.ndarray]


class NotThere(Exception):
    """A peer cannot be compiled; the message says what is missing."""


def coal_loop(a: Primitive, b: Primitive, X: np.ndarray, question: str) -> Loop:
    """Return the function that asks coal about two shapes.

    Args:
        a: The first.
        b: The second.
        X: Poses of `b` in `a`, shape (n, 4, 4).
        question: `signed` or `distance`, or `collision`, with -1 for true and 1.

    Raises:
        NotThere: It cannot be compiled.
    """
    library = _coal()
    sizes = [_numbers(shape) for shape in (a, b)]
    poses, found = np.ascontiguousarray(X), np.empty(len(X))
    given = [
        part
        for shape, numbers in zip((a, b), sizes, strict=True)
        for part in (KINDS.index(type(shape)), _address(numbers), numbers.size)
    ]
    pair = library.pair(*given, _address(poses), len(poses))

    def run() -> np.ndarray:
        if question == "collision":
            library.collisions(pair, _address(found))
        else:
            library.distances(pair, question == "signed", _address(found))
        return found

    return run


def mujoco_loop(a: Primitive, b: Primitive, X: np.ndarray) -> Loop:
    """Return the function that asks MuJoCo for the signed distances of two shapes.

    Raises:
        NotThere: It cannot be compiled, or a shape is a polyhedron.
    """
    library, mujoco = _mujoco(), import_module("mujoco")
    geoms = "".join(f"<body>{_geom(shape)}</body>" for shape in (a, b))
    text = f"<mujoco><worldbody>{geoms}</worldbody></mujoco>"
    model: Any = mujoco.MjModel.from_xml_string(text)
    data: Any = mujoco.MjData(model)
    poses, found = np.ascontiguousarray(X), np.empty(len(X))

    def run() -> np.ndarray:
        addresses = (ctypes.c_void_p(each._address) for each in (model, data))
        library.distances(*addresses, _address(poses), len(poses), _address(found))
        return found

    return run


def pinocchio_loop(model: Any) -> Callable[..., None]:
    """Return the function that asks Pinocchio about rows of vectors.

    It takes a question of `PINOCCHIO`, q, v and a, shape (n, nv), and where to write.

    model: Of Pinocchio's Python module, with joints about or along axes alone.

    Raises:
        NotThere: It cannot be compiled, or a joint is of another kind.
    """
    library = _pinocchio()
    count = len(model.joints) - 1
    kinds = [joint.shortname().removeprefix("JointModel") for joint in model.joints]
    if not set(kinds[1:]) <= set(AXES):
        raise NotThere(f"no joints {sorted(set(kinds[1:]) - set(AXES))} in the loop")
    axes = np.array([AXES.index(kind) for kind in kinds[1:]], np.int64)
    parents = np.array(list(model.parents)[1:], np.int64)
    placements = np.array(
        [[*X.rotation.ravel(), *X.translation] for X in list(model.jointPlacements)[1:]]
    )
    inertias = np.array(
        [[i.mass, *i.lever, *i.inertia.ravel()] for i in list(model.inertias)[1:]]
    )
    given = (_address(each) for each in (parents, axes, placements, inertias))
    robot = library.robot(count, *given)

    def run(question: str, *vectors: np.ndarray, out: np.ndarray) -> None:
        number = PINOCCHIO.index(question)
        rows = (_address(each) for each in vectors)
        library.dynamics(robot, number, *rows, len(vectors[0]), _address(out))

    return run


@lru_cache(maxsize=1)
def _pinocchio() -> Any:
    prefix = _folder("pinocchio", "cmeel.prefix")
    library = _compiled(
        "pinocchio_loop.cpp",
        [prefix / "include", prefix / "include/eigen3"],
        prefix / "lib",
        "-lpinocchio_default",
    )
    number, address = ctypes.c_long, ctypes.c_void_p
    library.robot.restype = address
    library.robot.argtypes = [number, *[address] * 4]
    library.dynamics.restype = None
    library.dynamics.argtypes = [address, number, *[address] * 3, number, address]
    return library


@lru_cache(maxsize=1)
def _coal() -> Any:
    prefix = _folder("coal", "cmeel.prefix")
    eigen = [
        folder / "eigen3"
        for folder in (prefix / "include", Path("/usr/include"))
        if (folder / "eigen3" / "Eigen").is_dir()
    ]
    if not eigen and "CPLUS_INCLUDE_PATH" not in os.environ:
        raise NotThere("no headers of Eigen: pip install cmeel-eigen")
    library = _compiled(
        "coal_loop.cpp", [prefix / "include", *eigen[:1]], prefix / "lib", "-lcoal"
    )
    number, address = ctypes.c_long, ctypes.c_void_p
    library.pair.restype = address
    library.pair.argtypes = [number, address, number] * 2 + [address, number]
    library.distances.argtypes = [address, ctypes.c_bool, address]
    library.collisions.argtypes = [address, address]
    return library


@lru_cache(maxsize=1)
def _mujoco() -> Any:
    folder = _folder("mujoco", "mujoco")
    built = sorted(folder.glob("libmujoco.so.*"))
    if not built:
        raise NotThere("no libmujoco.so beside the module mujoco")
    library = _compiled(
        "mujoco_loop.c", [folder / "include"], folder, f"-l:{built[0].name}"
    )
    library.distances.argtypes = [
        *[ctypes.c_void_p] * 3,
        ctypes.c_long,
        ctypes.c_void_p,
    ]
    library.distances.restype = None
    return library


def _folder(module: str, name: str) -> Path:
    """Return the folder of this name that a module is in.

    Raises:
        NotThere: There is no such module.
    """
    found = find_spec(module)
    if found is None or found.origin is None:
        raise NotThere(f"no module {module}")
    for folder in Path(found.origin).parents:
        if folder.name == name:
            return folder
    raise NotThere(f"the module {module} is not in a folder {name}")


def _compiled(
    source: str, includes: Sequence[Path], libraries: Path, link: str
) -> ctypes.CDLL:
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise NotThere("no compiler g++")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = f"{folder}/{Path(source).stem}.so"
    language = ["-std=c++17", "-w"] if source.endswith("cpp") else ["-x", "c"]
    command = [compiler, "-O3", "-DNDEBUG", "-shared", "-fPIC", *language]
    command += [f"-I{include}" for include in includes]
    command += [f"-D{each}" for each in DEFINED]
    command += [str(SOURCES / source), "-x", "none", "-o", made, f"-L{libraries}"]
    command += [f"-Wl,-rpath,{libraries}", link]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        first = (done.stderr.splitlines() or ["no message"])[0]
        raise NotThere(f"{source} does not compile: {first}")
    return ctypes.CDLL(made)


def _numbers(shape: Primitive) -> np.ndarray:
    match shape:
        case Sphere():
            numbers: Any = [shape.radius]
        case Capsule() | Cylinder():
            numbers = [shape.radius, shape.length]
        case Box():
            numbers = shape.size
        case Cone(top=0.0):
            numbers = [shape.bottom, shape.length]
        case Ellipsoid():
            numbers = shape.radii
        case ConvexPolyhedron():
            numbers = shape.vertices
        case _:
            raise NotThere(f"no {type(shape).__name__} in coal_loop.cpp")
    return np.ascontiguousarray(numbers, np.float64).ravel()


def _geom(shape: Primitive) -> str:
    match shape:
        case Sphere():
            kind, sizes = "sphere", [shape.radius]
        case Capsule() | Cylinder():
            kind = type(shape).__name__.lower()
            sizes = [shape.radius, 0.5 * shape.length]
        case Box():
            kind, sizes = "box", [0.5 * length for length in shape.size]
        case _:
            raise NotThere(f"a {type(shape).__name__} is not measured")
    return f'<geom type="{kind}" size="{" ".join(map(str, sizes))}"/>'


def _address(array: np.ndarray) -> int:
    return array.ctypes.data
