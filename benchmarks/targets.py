"""What is compiled for elsewhere: C beside the object, CasADi's C, and our kernels.

It needs gcc, and node for WebAssembly; `pip install casadi` for the peer, whose code is
of the same chain of joints, as its user would write it down.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import armillary as arm
from armillary.kernel.javascript import LIBRARY, program_function
from benchmarks.measure import Figure, absent, best_times, cheaper, faster, fewer
from benchmarks.robots import Robot, panda

ROWS, TURNS = 4096, fewer(200)
MOST_BYTES = 200_000

HARNESS = """\
#include <time.h>
typedef int (*single)(const double *, double *);
double seconds(single f, const double *q, double *x, int rows, int n, int turns) {
  double best = 1e9;
  for (int t = 0; t < turns; t++) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int k = 0; k < rows; k++) f(q + n * k, x + 16 * k);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double took = (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);
    if (took < best) best = took;
  }
  return best / rows;
}
"""
OF_CASADI = """\
int peer_fk(const double *q, double *x) {
  const double *arguments[1] = {q};
  double *results[1] = {x};
  return fk(arguments, results, 0, 0, 0);
}
"""


def figures() -> Iterator[Figure]:
    """Yield the figures of compiled folders."""
    robot = panda()
    if shutil.which("gcc") is None:
        yield absent("compiled C", "gcc")
        return
    with tempfile.TemporaryDirectory() as folder:
        yield from _of_c(robot, Path(folder))
        yield from _of_webassembly(robot, Path(folder))


def _of_c(robot: Robot, folder: Path) -> Iterator[Figure]:
    cell, tip = robot.cell, robot.tip
    ask = {"fk": f"fk:{tip}"}
    harness = _library(folder, "harness", HARNESS)
    harness.seconds.restype = ctypes.c_double
    made = cell.compile_to(folder / "object", ask=ask, name="lab")
    cell.compile_to(folder / "source", ask=ask, name="lab", target="c99")
    linked = folder / "object.so"
    subprocess.run(["gcc", "-shared", made.path / "lab.o", "-o", linked], check=True)
    ours = ctypes.CDLL(str(linked))
    text = (folder / "source" / "lab.c").read_text()
    source = _library(folder, "source", text, "-march=native", "-fno-math-errno")
    n = len(cell.joint_names)
    Q = np.random.default_rng(0).uniform(*cell.limits, (ROWS, n))
    X = np.empty((ROWS, 4, 4))

    def timed(function: Any) -> float:
        arguments = Q.ctypes.data_as(ctypes.c_void_p), X.ctypes.data_as(ctypes.c_void_p)
        took: float = harness.seconds(function, *arguments, ROWS, n, TURNS)
        np.testing.assert_allclose(X, cell.fk(tip)(Q), atol=1e-9)
        return took

    # By turns, so that other work on the machine counts for all.
    functions = [ours.lab_fk, source.lab_fk]
    if find_spec("casadi"):
        functions.append(_library(folder, "peer", _casadi(robot)).peer_fk)
    turns = [[timed(each) for each in functions] for _ in range(3)]
    best = [min(times) for times in zip(*turns, strict=True)]
    what = "Panda FK, one call in C"
    yield cheaper(f"{what}: gcc -O2 beside the object", best[1], best[0], at_most=1.3)
    if len(best) > 2:
        for name, took in zip(("the object", "our C99"), best, strict=False):
            yield cheaper(f"{what}: {name} beside CasADi", took, best[2], at_most=1.0)
    else:
        yield absent(what, "CasADi")
    fk, places = cell.fk(tip), (Q.ctypes.data, X.ctypes.data)
    rows, count = ours.lab_fk_rows, ctypes.c_size_t(ROWS)
    given = [*map(ctypes.c_void_p, places), count]
    native, here = best_times(
        lambda: rows(*given), lambda: fk(Q, out=X, threads=1), turns=TURNS
    )
    what = "Panda FK, 4096 rows: the object beside the kernel in process"
    yield cheaper(what, native / ROWS, here / ROWS, at_most=1.05)
    yield from _sizes(cell, tip, folder)


def _sizes(cell: arm.Cell, tip: str, folder: Path) -> Iterator[Figure]:
    ask = {kind: f"{kind}:{tip}" for kind in ("fk", "jacobian", "ik")}
    for target in ("x86-64-v3", "aarch64", "wasm32"):
        made = cell.compile_to(folder / target, ask=ask, name="lab", target=target)
        size = made.sizes["lab.o"]
        what = f"Panda FK, Jacobian and IK, object for {target} [kB]"
        asked, got = f"<= {MOST_BYTES // 1000}", f"{size / 1000:.0f}"
        yield Figure(what, got, "", asked, got, size <= MOST_BYTES)


def _library(folder: Path, name: str, text: str, *flags: str) -> Any:
    path, made = folder / f"{name}.c", folder / f"lib{name}.so"
    path.write_text(text)
    strict = ["-O2", "-ffp-contract=off", *flags]
    if name == "peer":  # what its users would give it
        strict = ["-O2", "-march=native", "-fno-math-errno"]
    subprocess.run(
        ["gcc", *strict, "-fPIC", "-shared", path, "-o", made, "-lm"], check=True
    )
    return ctypes.CDLL(str(made))


def _casadi(robot: Robot) -> str:
    """Return CasADi's C of the pose of a chain of revolute joints."""
    casadi: Any = import_module("casadi")
    model, n = robot.model, len(robot.cell.joint_names)
    q = casadi.SX.sym("q", n)
    pose = casadi.SX.eye(4)
    for k, placement in enumerate(model.jointPlacements[1:]):
        c, s = casadi.cos(q[k]), casadi.sin(q[k])
        turn = casadi.SX.eye(4)
        turn[0, 0], turn[0, 1], turn[1, 0], turn[1, 1] = c, -s, s, c
        pose = pose @ casadi.SX(placement.homogeneous) @ turn
        if "7" in model.names[k + 1]:
            break
    frame = model.frames[model.getFrameId(robot.tip)]
    pose = pose @ casadi.SX(frame.placement.homogeneous)
    # CasADi writes matrices column by column.
    function = casadi.Function("fk", [q], [casadi.densify(pose).T])
    generator = casadi.CodeGenerator("fk.c", {"with_header": False})
    generator.add(function)
    return generator.dump() + OF_CASADI


NODE = """\
const bytes = require("fs").readFileSync(PATH);
const e = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
e.memory.grow(100);
const q = e.heap_base.value, x = q + 8 * n * ROWS;
const Q = Float64Array.from(JSON.parse(require("fs").readFileSync(POSITIONS)));
new Float64Array(e.memory.buffer, q, n * ROWS).set(Q);
const X = new Float64Array(16 * ROWS), rows = [], poses = [];
for (let k = 0; k < ROWS; k++) {
  rows.push(Q.subarray(n * k, n * (k + 1)));
  poses.push(X.subarray(16 * k, 16 * (k + 1)));
}
const tasks = [
  () => { for (let k = 0; k < ROWS; k++) fk(rows[k], poses[k]); },
  () => e.lab_fk_rows(q, x, ROWS),
  () => { for (let k = 0; k < ROWS; k++) e.lab_fk(q + 8 * n * k, x + 128 * k); },
];
const best = tasks.map(() => Infinity);
for (let turn = 0; turn < TURNS; turn++) {
  tasks.forEach((task, k) => {
    const start = performance.now();
    task();
    best[k] = Math.min(best[k], performance.now() - start);
  });
}
console.log(JSON.stringify(best.map((each) => each * 1e-3 / ROWS)));
"""


def _of_webassembly(robot: Robot, folder: Path) -> Iterator[Figure]:
    cell, tip = robot.cell, robot.tip
    what = "Panda FK in node: WebAssembly beside JavaScript"
    if shutil.which("node") is None:
        yield absent(what, "node")
        return
    made = cell.compile_to(
        folder / "wasm", ask={"fk": f"fk:{tip}"}, name="lab", target="wasm32"
    )
    n = len(cell.joint_names)
    drawn = np.random.default_rng(0).uniform(*cell.limits, (ROWS, n))
    # From the middle of each joint to its limits and back: sines of JavaScript choose
    # by the quadrant, which processors foresee here.
    lower, upper = cell.limits
    swing = np.sin(np.linspace(0.0, 4.0 * np.pi, ROWS))[:, np.newaxis]
    smooth = 0.5 * (lower + upper) + 0.5 * (upper - lower) * swing
    for kind, Q in (("within limits", drawn), ("along a motion", smooth)):
        positions = folder / "positions.json"
        positions.write_text(json.dumps(Q.ravel().tolist()))
        named = {"PATH": str(made.path / "lab.wasm"), "POSITIONS": str(positions)}
        named |= {"ROWS": ROWS, "TURNS": TURNS, "n": n}
        head = "".join(f"const {key} = {json.dumps(v)};\n" for key, v in named.items())
        script = folder / "page.cjs"
        program = program_function(cell.fk(tip).program, "fk")
        script.write_text(f"{LIBRARY}{program}\n{head}{NODE}")
        done = subprocess.run(
            ["node", script], capture_output=True, text=True, check=True
        )
        printed, rows, single = json.loads(done.stdout)
        yield faster(f"{what}, {kind}, rows", rows, printed, at_least=5.0)
        yield faster(f"{what}, {kind}, single calls", single, printed, at_least=1.0)
