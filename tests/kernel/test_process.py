"""What kills a process rather than raising: each case runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

# A kernel with more constants than fit in instructions; `sines(k)` differ.
SINES = """
import numpy as np
from armillary.kernel import compile
from armillary.trace import trace

def sines(k, count=30):
    def function(q):
        return [np.sin(q[j % 3]) * (0.1 * j + k) for j in range(count)]
    return trace(function, name=f"sines{k}", q=(3,))

def right(kernel, k, count=30):
    q = np.linspace(0.1, 0.9, 27).reshape(9, 3)
    j = np.arange(count)
    np.testing.assert_allclose(kernel(q), np.sin(q[:, j % 3]) * (0.1 * j + k))
"""


def run(
    code: str, *arguments: object, cache: Path | None = None, timeout: float = 300.0
) -> str:
    """Return what a fresh process says; it must end well, and in time."""
    environment = {**os.environ, "ARMILLARY_CACHE": str(cache or "off")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SINES + code, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# Memory maps with holes.

# All gaps above 6 GiB of reserved pieces are closed, so that code of some pages fits
# only in the lower holes and constants of one page go to the upper ones.
SCATTERED = """
import ctypes, mmap, re
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long
]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PAGE, PIECE, COUNT, NO_RESERVE = mmap.PAGESIZE, 2**27, 48, 0x4000

def reserve(size, address=None):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    return libc.mmap(address, size, 0, flags, -1, 0)

programs = [sines(k, 10 + 20 * k) for k in range(4)]
compile(sines(9))
step = PIECE + 8 * PAGE
base = end = reserve(COUNT * step)
with open("/proc/self/maps") as file:
    maps = file.readlines()
for line in maps:
    start, stop = (int(word, 16) for word in re.split("[- ]", line)[:2])
    if start >= base:
        if 0 < start - end < 2**30:
            reserve(start - end, end)
        end = stop
for k in range(COUNT):
    pages = 1 if k > COUNT // 2 else 8
    libc.munmap(base + k * step + PIECE, pages * PAGE)
print("reserved")
for k, program in enumerate(programs):
    right(compile(program), k, 10 + 20 * k)
"""


@pytest.mark.thorough
@linux
def test_maps_with_holes_of_a_few_pages():
    assert run(SCATTERED) == "reserved\n"


LIBRARY = """
import importlib, sys
name, order = sys.argv[1:]
if order == "before":
    importlib.import_module(name)
kernels = [compile(sines(k)) for k in range(3)]
if order == "after":
    importlib.import_module(name)
kernels += [compile(sines(k)) for k in range(3, 6)]
for k, kernel in enumerate(kernels):
    right(kernel, k)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("name", ["torch", "pinocchio", "scipy.linalg", "sqlite3"])
def test_another_library(name: str, order: str):
    pytest.importorskip(name.partition(".")[0])
    run(LIBRARY, name, order)


# Forks.

FORK = """
import os, threading, time, warnings
from armillary.kernel.kernel import shared_kernel
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
make = {"compile": compile, "shared": shared_kernel}[sys.argv[1]]
long = [sines(k, 300) for k in range(1, 4)]
worker = threading.Thread(target=lambda: [make(program) for program in long])
worker.start()
children = []
for k in range(4):
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        right(make(sines(10 + k)), 10 + k)
        right(make(long[0]), 1, 300)
        os._exit(0)
    children.append(child)
worker.join()
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.sampled(1)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("how", ["compile", "shared"])
def test_forks_while_another_thread_compiles(how: str):
    run("import sys\n" + FORK, how)


FORK_WITHIN = """
import os
from armillary import forks
from armillary.kernel import kernel

def fork(*_):
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

with forks.PROGRAM_LOCKS[3]:
    fork()
right(kernel.shared_kernel(sines(0)), 0)
assert not forks._acquired
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_thread_that_compiles_may_fork_itself():
    """As a finalizer or a signal handler may."""
    run(FORK_WITHIN)


FORK_BESIDE_A_MODEL = """
import functools, os, signal, threading, warnings
import armillary as arm
from armillary.model.workcell import Workcell
warnings.simplefilter("ignore", DeprecationWarning)
held, done = threading.Event(), threading.Event()

def compute():
    locks = [
        value.lock
        for kind in (arm.Manipulator, Workcell, arm.Cell)
        for value in vars(kind).values()
        if isinstance(value, functools.cached_property) and hasattr(value, "lock")
    ]
    for lock in locks:
        lock.acquire()
    held.set()
    done.wait()
    for lock in locks:
        lock.release()

thread = threading.Thread(target=compute)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    arm.example("irb2400").joint_names
    os._exit(0)
status = os.waitpid(child, 0)[1]
done.set()
thread.join()
assert status == 0
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_while_another_thread_computes_a_cached_property():
    """Before Python 3.12 such properties have a lock."""
    run(FORK_BESIDE_A_MODEL)


# Small stacks.

SMALL_STACK = """
import sys, threading
what, lanes = sys.argv[1], int(sys.argv[2])

def outputs(q):
    return [q[k % 3] * (k + 0.5) for k in range(8_000)]

def inputs(q):
    return [q[k] + q[-1 - k] for k in range(4)]

def live(q):
    values = [q[k % 3] * (k + 1.5) for k in range(2000)]
    total = 0.0
    for value in reversed(values):
        total = total * 0.5 + value
    return [total]

size = 8_000 if what == "inputs" else 3
program = trace(globals()[what], q=(size,))
kernel = compile(program, lanes=lanes)
q = np.linspace(-1.0, 1.0, 3 * size).reshape(3, size)
found = []

def call():
    found.extend([kernel(q), *(kernel(row) for row in q)])

threading.stack_size(200 * 1024)
thread = threading.Thread(target=call)
thread.start()
thread.join()
wanted = [globals()[what](row) for row in q]
np.testing.assert_allclose(found[0], wanted, rtol=1e-12)
np.testing.assert_allclose(found[1:], wanted, rtol=1e-12)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("what", "lanes"), [("outputs", 4), ("inputs", 8), ("live", 1), ("live", 16)]
)
def test_calls_on_a_small_stack(what: str, lanes: int):
    run(SMALL_STACK, what, lanes)


# Full disks.

FULL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for k in range(3):
    right(compile(sines(k)), k)
"""


@linux
def test_a_disk_that_takes_no_code(tmp_path: Path):
    """Code is larger than what may be written; no part of it is left.

    Where NumPy keeps the numbers of an array is short enough, and may be there.
    """
    run(FULL_DISK, cache=tmp_path / "cache")
    left = list((tmp_path / "cache").iterdir())
    assert [path for path in left if path.suffix != ".arrays"] == []


# Interrupts.

INTERRUPT = """
import os, signal
from armillary.kernel import native
compute, chunks = native.vectorize, []

def interrupting(program, *given):
    chunks.append(len(given[0]))
    if len(chunks) == 4:
        os.kill(os.getpid(), signal.SIGINT)
    return compute(program, *given)

native.vectorize = interrupting
q = np.full((500_000, 3), 1e13)
try:
    compile(sines(0, 10))(q, threads=2)
except KeyboardInterrupt:
    print(sum(chunks))
"""


@linux
def test_an_interrupt_among_flagged_rows():
    """On two threads, which compute the rows in chunks of about a thousand."""
    assert int(run(INTERRUPT)) < 250_000


# Pipelines.

PIPELINE = """
import os, sys, threading, warnings
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.stages import Each
from armillary.kernel.tables import Table, index, reals
from armillary.trace import Port
warnings.simplefilter("ignore", DeprecationWarning)  # to fork with threads

def spread(q):
    return [[np.sin(q[k % 3] + 0.01 * k) for _ in range(2)] for k in range(3000)], 0.0

points = trace(spread, name="points", outputs=("points", "total"), q=(3,))
add = trace(lambda point, weight, total: total + weight * point[0], name="add",
    outputs=("total",), point=(2,), weight=(), total=())
table = Table("table", (index("point", "points"), reals("weight")))
pipeline = Pipeline("sum", (Port("q", (3,)),), (table,),
    (points, Each("table", (add,))), ("total",))
chosen = np.arange(0, 3000, 7)
kernel = compile_pipeline(pipeline)({"table": {"point": chosen, "weight": chosen}})

def compute():
    q = np.random.default_rng(0).uniform(-1, 1, (999, 3))
    wanted = np.sin(q[:, chosen % 3] + 0.01 * chosen) @ chosen
    np.testing.assert_allclose(kernel(q, threads=2), wanted, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(kernel(q[5]), wanted[5], rtol=1e-10, atol=1e-9)
    done.append(1)

done = []
"""


@pytest.mark.thorough
def test_the_columns_of_a_pipeline_may_be_larger_than_a_stack():
    small = "threading.stack_size(128 * 1024)\n"
    call = "t = threading.Thread(target=compute)\nt.start()\nt.join()\nprint(done)\n"
    assert run(PIPELINE + small + call) == "[1]\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_pipeline_runs_in_a_forked_process():
    fork = """
compute()
child = os.fork()
if child == 0:
    compute()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    run(PIPELINE.replace("3000", "300") + fork)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_acquires_the_lock_of_logging_after_those_of_imports():
    """Modules that are imported make loggers; two orders would end in a deadlock.

    Forks run what was registered last first, and `logging` registers its lock.
    """
    code = "import sys, armillary.forks; sys.exit('logging' not in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
