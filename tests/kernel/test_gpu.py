"""Kernels on arrays of a GPU: the driver is one that runs their scalar code on the CPU.

No GPU is needed. What the driver is given is what NVIDIA's would be: the text of PTX,
blocks, threads, a stream, and where the arguments of a kernel lie. The last test runs
on a GPU where there is one.
"""

from __future__ import annotations

import ctypes
import enum
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.errors import ArmillaryError, KernelError, ShapeError
from armillary.kernel import compile, gpu, gpu_driver, gpu_libraries
from armillary.kernel.code import Code
from armillary.kernel.gpu import THREADS
from armillary.kernel.gpu_array import GpuArray
from armillary.kernel.gpu_driver import CudaDriver, GpuCode
from armillary.kernel.host import host
from armillary.kernel.jit import to_object
from armillary.trace import trace

Array = npt.NDArray[Any]

REGISTERS = "ctaid", "tid"
STEPS = "copied", "computed", "written"
OF_REGISTERS = """
@{0} = internal global i32 0
define i32 @{0}.x() {{
  %v = load i32, ptr @{0}
  ret i32 %v
}}
define void @set_{0}(i32 %v) {{
  store i32 %v, ptr @{0}
  ret void
}}
"""


class Status(enum.IntEnum):
    """Some results of calls of the driver."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_HANDLE = 400


class CpuCuda:
    """What `cuda.bindings.driver` is to kernels; it runs them on the CPU.

    Attributes:
        launches: Blocks, threads and stream of each kernel that was started.
        places: The number of the GPU of each array, by its address.
        fails: A status by the name of the call that is to return it.
    """

    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9)

    def __init__(self, codes: dict[str, GpuCode]) -> None:
        self.codes = codes
        self.launches: list[tuple[int, int, int]] = []
        self.places: dict[int, int] = {}
        self.fails: dict[str, Status] = {}
        self.present: list[int] = []

    def _done(self, name: str, *found: Any) -> tuple[Any, ...]:
        status = self.fails.get(name, Status.CUDA_SUCCESS)
        return (status, *found) if status == 0 else (status, *[None for _ in found])

    def cuInit(self, flags: int) -> tuple[Any, ...]:
        assert flags == 0
        return self._done("cuInit")

    def cuDeviceGet(self, ordinal: int) -> tuple[Any, ...]:
        return self._done("cuDeviceGet", ordinal)

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[Any, ...]:
        return self._done("cuDevicePrimaryCtxRetain", device)

    def cuCtxPushCurrent(self, context: int) -> tuple[Any, ...]:
        self.present.append(context)
        return self._done("cuCtxPushCurrent")

    def cuCtxPopCurrent(self) -> tuple[Any, ...]:
        return self._done("cuCtxPopCurrent", self.present.pop())

    def cuPointerGetAttribute(self, kind: int, at: int) -> tuple[Any, ...]:
        assert kind == 9
        return self._done("cuPointerGetAttribute", self.places[at])

    def cuModuleLoadData(self, text: bytes) -> tuple[Any, ...]:
        assert text.endswith(b"\0")
        code = self.codes[text[:-1].decode()]
        return self._done("cuModuleLoadData", host_code(code))

    def cuModuleGetFunction(self, module: Code, name: bytes) -> tuple[Any, ...]:
        return self._done("cuModuleGetFunction", (module, name.decode()))

    def cuLaunchKernel(
        self,
        function: tuple[Code, str],
        *sizes: int,
    ) -> tuple[Any, ...]:
        blocks, _, _, threads, _, _, shared, stream, parameters, extra = sizes
        assert sizes[1:3] == sizes[4:6] == (1, 1)
        assert shared == extra == 0
        assert self.present, "a kernel starts in the context of its GPU"
        if "cuLaunchKernel" in self.fails:
            return self._done("cuLaunchKernel")
        self.launches.append((blocks, threads, stream))
        code, name = function
        count = self.counts[id(code)]
        pointers = (ctypes.c_void_p * count).from_address(parameters)
        numbers = [ctypes.c_uint64.from_address(at or 0).value for at in pointers]
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * count)
        steps = [prototype(code.address(f"{name}_x1_{step}")) for step in STEPS]
        set_register = {
            each: ctypes.CFUNCTYPE(None, ctypes.c_int)(code.address(f"set_{each}"))
            for each in REGISTERS
        }
        assert threads == THREADS
        for block in range(blocks):
            set_register["ctaid"](block)
            for step in steps:  # each thread waits for the others of its warp
                for thread in range(threads):
                    set_register["tid"](thread)
                    step(*numbers)
        return self._done("cuLaunchKernel")

    counts: dict[int, int] = {}  # noqa: RUF012 - of arguments, by module


LOADED: dict[str, Code] = {}


def host_code(code: GpuCode) -> Code:
    """The code of a kernel for this machine, with registers that are variables."""
    if code.ptx not in LOADED:
        text = code.ir.replace("define ptx_kernel void", "define void")
        text = re.sub(r"declare i32 @llvm.nvvm.read.*\n", "", text)
        text = text.replace("@llvm.nvvm.read.ptx.sreg.", "@")
        text = text.replace("declare void @llvm.nvvm.bar", "declare void @bar")
        text = text.replace("@llvm.nvvm.bar", "@bar")
        # The kernel calls its steps, and waits between; here each is called by itself.
        kernel = re.compile(
            rf"define void @{code.name}\(.*?^}}", re.DOTALL | re.MULTILINE
        )
        text, count = kernel.subn("", text)
        text, annotations = re.subn(r".*ptr @kernel, !\"reqntidx.*|!nvvm.*", "", text)
        assert (count, annotations) == (1, 2)
        for step in STEPS:
            own = f"void @{code.name}_x1_{step}("
            assert text.count(f"define internal {own}") == 1
            text = text.replace(f"define internal {own}", f"define {own}")
        text += "".join(OF_REGISTERS.format(each) for each in REGISTERS)
        made = Code(to_object(text, host(), 1, variables=True), host())
        LOADED[code.ptx] = made
        ports = 2 * len(code.inputs) + len(code.outputs) + 1
        CpuCuda.counts[id(made)] = ports
    return LOADED[code.ptx]


class OnGpu:
    """An array of which a kernel believes that it lies on a GPU."""

    requires_grad = False

    def __init__(self, array: Array, cuda: CpuCuda, place: int = 0) -> None:
        self.array, self.cuda, self.place = array, cuda, place
        self.is_read_only = False
        cuda.places[array.ctypes.data] = place

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.place

    def __gt__(self, number: float) -> OnGpu:
        return OnGpu(self.array > number, self.cuda, self.place)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        given = self.array.__array_interface__
        data = given["data"][0], self.is_read_only
        return {**given, "version": 3, "data": data, "stream": 5}


class Capsules:
    """An array on a GPU that has DLPack alone."""

    def __init__(self, array: Array, cuda: CpuCuda, kind: int = 2) -> None:
        self.array, self.kind, self.stream = array, kind, 0
        cuda.places[array.ctypes.data] = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, *, stream: int) -> Any:
        self.stream = stream
        return self.array.__dlpack__()


class Arrays:
    """The library of such arrays; see `gpu_libraries.Library`."""

    def read(self, name: str, value: OnGpu) -> GpuArray:
        return GpuArray.of(name, value)

    def empty(self, shape: tuple[int, ...], dtype: Any, like: OnGpu) -> OnGpu:
        if int(np.prod(shape)) > 10**6:
            raise MemoryError
        return OnGpu(np.full(shape, 7.0, dtype), like.cuda, like.place)

    def stream(self, like: OnGpu) -> int:
        return 100 + like.place


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> CpuCuda:
    codes: dict[str, GpuCode] = {}
    original = gpu.gpu_code

    def noted(*given: Any) -> GpuCode:
        made = original(*given)
        codes[made.ptx] = made
        return made

    made = CpuCuda(codes)
    driver = CudaDriver(made)
    monkeypatch.setattr(gpu, "gpu_code", noted)
    monkeypatch.setattr(gpu, "_driver", lambda: driver)
    monkeypatch.setattr(
        gpu_libraries, "LIBRARIES", {OnGpu.__module__.partition(".")[0]: Arrays()}
    )
    return made


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("irb2400")


@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2), (0,), (2 * THREADS + 1,)])
def test_a_kernel_computes_where_arrays_are(
    cell: arm.Cell, cuda: CpuCuda, batch: tuple[int, ...]
):
    fk = cell.fk("tool0")
    Q = np.random.default_rng(0).uniform(-1.0, 1.0, (*batch, 6))
    found = fk(OnGpu(Q, cuda))
    assert isinstance(found, OnGpu)
    np.testing.assert_array_equal(found.array, fk(Q))
    blocks = -(-int(np.prod(batch)) // THREADS)
    assert cuda.launches == ([(blocks, THREADS, 100)] if blocks else [])
    assert not cuda.present  # the context before is present again


class Derived(OnGpu):
    """A user's class of arrays."""

    __module__ = "elsewhere"


def test_derived_classes_of_arrays_are_those_of_their_library(
    cell: arm.Cell, cuda: CpuCuda
):
    fk, Q = cell.fk("tool0"), np.zeros((3, 6))
    found = fk(Derived(Q, cuda))
    np.testing.assert_array_equal(found.array, fk(Q))


def test_threads_without_a_row_compute_nothing(cuda: CpuCuda):
    """Results of a row may be read again, so that only one thread may write them."""
    long = trace(lambda a: a * np.ones(400), name="long", a=())  # is not shared
    a = np.arange(3.0)
    kernel = compile(long)
    np.testing.assert_array_equal(kernel(OnGpu(a, cuda)).array, kernel(a))
    (made,) = cuda.codes.values()
    code, out = host_code(made), np.full((3, 400), 7.0)
    set_thread = ctypes.CFUNCTYPE(None, ctypes.c_int)(code.address("set_tid"))
    computed = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 4)(
        code.address(f"{made.name}_x1_computed")
    )
    for thread in range(len(a), THREADS):
        set_thread(thread)
        computed(a.ctypes.data, out.ctypes.data, len(a), 1)
    np.testing.assert_array_equal(out, 7.0)


def test_float32_and_several_outputs(cuda: CpuCuda):
    def formula(a: Any, b: Any) -> Any:
        return np.sin(a) * b, a - b[0]

    program = trace(formula, name="two", outputs=("x", "y"), a=(), b=(2,))
    kernel = compile(program, dtype=np.float32)
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(9, *end)).astype(np.float32) for end in ((), (2,)))
    found = kernel(OnGpu(a, cuda), OnGpu(b, cuda))
    for each, wanted in zip(found, kernel(a, b), strict=True):
        np.testing.assert_array_equal(each.array, wanted)


def test_rows_may_be_apart_shared_or_constant(cuda: CpuCuda):
    program = trace(lambda a, b, c: a * b + c, name="f", a=(3,), b=(3,), c=(3,))
    kernel = compile(program)
    rng = np.random.default_rng(2)
    wide, one, c = rng.normal(size=(40, 3)), rng.normal(size=3), rng.normal(size=3)
    apart = wide[::2]
    found = kernel(OnGpu(apart, cuda), OnGpu(one, cuda), c)
    np.testing.assert_array_equal(found.array, kernel(apart, one, c))
    shared = np.broadcast_to(one, (20, 3))
    found = kernel(OnGpu(shared, cuda), OnGpu(apart, cuda), c)
    np.testing.assert_array_equal(found.array, kernel(shared, apart, c))


def test_what_a_state_decides_is_a_constant(cuda: CpuCuda):
    lab = arm.example("two_arms_positioner")
    frame = next(x for x in lab.frame_names if x.endswith("tool0"))
    fk = lab.fk(frame, joints=list(lab.joint_names[:6]))
    Q = np.random.default_rng(3).uniform(-1.0, 1.0, (5, 6))
    np.testing.assert_array_equal(fk(OnGpu(Q, cuda)).array, fk(Q))


def test_results_go_where_out_says(cell: arm.Cell, cuda: CpuCuda):
    fk, Q = cell.fk("tool0"), np.zeros((3, 6))
    target = OnGpu(np.full((3, 4, 4), 7.0), cuda)
    assert fk(OnGpu(Q, cuda), out=target) is target
    np.testing.assert_array_equal(target.array, fk(Q))


def test_a_check_with_its_tables_runs(cuda: CpuCuda):
    """Its calls choose by numbers, as in all code that holds no addresses."""
    rod = arm.shapes.Capsule(radius=0.1, length=1.0)
    away = arm.Pose.translation(0.3, 0.0, 0.0)
    slide = arm.joints.Prismatic(axis=(1, 0, 0), precursor=away)
    links = [
        arm.Link(name="a", collisions=[rod]),
        arm.Link(
            name="b",
            parent="a",
            joint=slide,
            limits=arm.Limits(lower=-1.0, upper=1.0),
            collisions=[rod],
        ),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])
    check = cell.replace(rules=cell.rules.include("arm/a", "arm/b")).collision()
    Q = np.linspace(-1.0, 1.0, 40)[:, np.newaxis]
    Q[7] = np.nan  # not known to be free
    touching: Any = check(OnGpu(Q, cuda))
    assert touching.array.dtype == np.bool_
    assert 0.0 < touching.array.mean() < 1.0
    np.testing.assert_array_equal(touching.array, check(Q))
    least: Any = check.clearance(OnGpu(Q, cuda))
    np.testing.assert_array_equal(least.array, check.clearance(Q))
    with pytest.raises(ShapeError, match=r"q of 'collision' is on a GPU, where ker"):
        check.distances(OnGpu(Q, cuda))


def test_a_solver_answers_by_its_kernel(cuda: CpuCuda):
    def slide(name: str, parent: str | None, axis: tuple[int, int, int]) -> arm.Link:
        limits = arm.Limits(lower=-1.0, upper=1.0)
        joint = arm.joints.Prismatic(axis=axis)
        return arm.Link(name=name, parent=parent, joint=joint, limits=limits)

    links = [arm.Link(name="base"), slide("x", "base", (1, 0, 0))]
    links += [slide("y", "x", (0, 1, 0))]
    gantry = arm.Manipulator(name="gantry", links=links)
    solver = arm.Cell(manipulators=[gantry]).ik("y", position="xy", rotation="")
    Q = np.random.default_rng(4).uniform(-1.2, 1.2, (30, 2))
    X = np.tile(np.eye(4), (30, 1, 1))
    X[:, :2, 3] = Q
    given = X.reshape(30, 16), np.zeros((30, 2))
    found = solver.kernel(*[OnGpu(x, cuda) for x in given])
    for each, wanted in zip(found, solver.kernel(*given), strict=True):
        np.testing.assert_array_equal(each.array, wanted)
    q, _, is_met = (each.array for each in found)
    np.testing.assert_array_equal(is_met == 1.0, solver(X).success)
    np.testing.assert_allclose(q[is_met == 1.0], Q[is_met == 1.0], atol=1e-5)
    with pytest.raises(ShapeError, match=r"targets is on a GPU.*`kernel` of solvers"):
        solver(OnGpu(X, cuda))
    with pytest.raises(ShapeError, match=r"kernel takes target, near; 1 given"):
        solver.kernel(X)


def test_arrays_may_have_dlpack_alone(
    cell: arm.Cell, cuda: CpuCuda, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gpu_libraries, "LIBRARIES", {})
    fk = cell.fk("tool0")
    Q = np.random.default_rng(5).uniform(-1.0, 1.0, (12, 6))
    given, out = Capsules(Q[::2], cuda), Capsules(np.zeros((6, 4, 4)), cuda)
    assert fk(given, out=out) is out
    np.testing.assert_array_equal(out.array, fk(Q[::2]))
    # The default stream waits for what the library of the array has begun.
    assert given.stream == 1
    assert cuda.launches == [(1, THREADS, 1)]
    with pytest.raises(ShapeError, match="q is on an AMD GPU"):
        fk(Capsules(Q, cuda, kind=10), out=out)
    with pytest.raises(ShapeError, match="float32 on the GPU, and the kernel computes"):
        fk(Capsules(Q.astype(np.float32), cuda), out=out)
    with pytest.raises(KernelError, match=r"for Capsules give out="):
        fk(given)
    silent: Any = SimpleNamespace(__dlpack_device__=lambda: (2, 0))
    with pytest.raises(ShapeError, match="does not say where on the GPU it lies"):
        fk(silent)


Make = Callable[[CpuCuda], tuple[tuple[Any, ...], dict[str, Any]]]
BAD: dict[str, tuple[type[Exception], str, Make]] = {
    "type": (
        ShapeError,
        r"q is float32 on the GPU, and the kernel computes in float64",
        lambda cuda: ((OnGpu(np.zeros((3, 6), np.float32), cuda),), {}),
    ),
    "shape": (
        ShapeError,
        r"q needs the shape \(\.\.\., 6\), not \(3, 5\)",
        lambda cuda: ((OnGpu(np.zeros((3, 5)), cuda),), {}),
    ),
    "order": (
        ShapeError,
        r"rows of q do not follow each other.*contiguous\(\)",
        lambda cuda: ((OnGpu(np.zeros((6, 3)).T, cuda),), {}),
    ),
    "device": (
        ShapeError,
        r"pose lies on GPU 1, and q on GPU 0",
        lambda cuda: (
            (OnGpu(np.zeros((3, 6)), cuda),),
            {"out": OnGpu(np.zeros((3, 4, 4)), cuda, 1)},
        ),
    ),
    "out": (
        ShapeError,
        r"out= for pose needs the shape \(3, 4, 4\)",
        lambda cuda: (
            (OnGpu(np.zeros((3, 6)), cuda),),
            {"out": OnGpu(np.zeros((2, 4, 4)), cuda)},
        ),
    ),
    "memory": (
        KernelError,
        r"no memory for results of 12 MiB; ask for fewer rows",
        lambda cuda: ((OnGpu(np.zeros((100_000, 6)), cuda),), {}),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arrays(cell: arm.Cell, cuda: CpuCuda, name: str):
    kind, message, make = BAD[name]
    inputs, options = make(cuda)
    with pytest.raises(kind, match=message):
        cell.fk("tool0")(*inputs, **options)
    assert not cuda.launches


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        ("cuLaunchKernel", Status.CUDA_ERROR_INVALID_HANDLE, "stream is not one of"),
        ("cuLaunchKernel", Status.CUDA_ERROR_OUT_OF_MEMORY, "its memory is full"),
        ("cuDevicePrimaryCtxRetain", Status.CUDA_ERROR_NO_DEVICE, "no NVIDIA GPU"),
    ],
)
def test_errors_of_the_driver(
    cell: arm.Cell, cuda: CpuCuda, call: str, status: Status, message: str
):
    cuda.fails[call] = status
    with pytest.raises(KernelError, match=f"{message}.*{status.name}"):
        cell.fk("tool0")(OnGpu(np.zeros((2, 6)), cuda))


def test_arrays_of_unknown_libraries_need_out(
    cell: arm.Cell, cuda: CpuCuda, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gpu_libraries, "LIBRARIES", {})
    fk, Q = cell.fk("tool0"), OnGpu(np.zeros((3, 6)), cuda)
    with pytest.raises(KernelError, match=r"give out= with the shape \(3, 4, 4\)"):
        fk(Q)
    fk(Q, out=OnGpu(np.zeros((3, 4, 4)), cuda))
    assert cuda.launches == [(1, THREADS, 5)]  # the stream that the array names


def test_without_a_gpu_the_error_says_so(cell: arm.Cell):
    if find_spec("cuda") is not None:
        pytest.skip("the bindings of CUDA are installed")
    array = OnGpu(np.zeros((2, 6)), CpuCuda({}))
    with pytest.raises(ArmillaryError, match=r"pip install armillary\[gpu\]"):
        cell.fk("tool0")(array)


def test_a_machine_without_a_driver():
    def missing(_: int) -> Any:
        raise RuntimeError("libcuda")

    with pytest.raises(KernelError, match="no driver of NVIDIA GPUs"):
        CudaDriver(SimpleNamespace(cuInit=missing))


# On a GPU, by NVIDIA's driver, where torch finds one.


@pytest.fixture
def torch() -> Any:
    found: Any = pytest.importorskip("torch", reason="needs torch, and a GPU")
    if not found.cuda.is_available():
        pytest.skip("there is no GPU here")
    return found


def test_on_a_gpu(torch: Any, cell: arm.Cell):
    """Around the sizes of warps and blocks, on a stream of its own."""
    gpu_driver.cuda_driver()
    kernels = cell.fk("tool0"), cell.jacobian("tool0"), cell.mass_matrix()
    with torch.cuda.stream(torch.cuda.Stream()):
        for rows in (0, 1, 31, 32, 33, 1000):
            Q = np.random.default_rng(rows).uniform(-1.0, 1.0, (rows, 6))
            for kernel in kernels:
                found = kernel(torch.tensor(Q, device="cuda"))
                assert found.device.type == "cuda"
                np.testing.assert_allclose(found.cpu().numpy(), kernel(Q), atol=1e-12)


def test_on_a_gpu_nothing_else_is_written(torch: Any, cell: arm.Cell):
    fk, rows = cell.fk("tool0"), 45
    Q = np.random.default_rng(0).uniform(-1.0, 1.0, (rows, 6))
    whole = torch.full((rows + 40, 4, 4), 7.0, dtype=torch.float64, device="cuda")
    fk(torch.tensor(Q, device="cuda"), out=whole[20 : rows + 20])
    np.testing.assert_allclose(whole[20:-20].cpu().numpy(), fk(Q), atol=1e-12)
    assert bool((whole[:20] == 7.0).all() and (whole[-20:] == 7.0).all())


def test_on_a_gpu_rows_may_be_apart_or_shared(torch: Any):
    program = trace(lambda a, b, c: a * b + c, name="f", a=(3,), b=(3,), c=(3,))
    kernel = compile(program, dtype=np.float32)
    rng = np.random.default_rng(2)
    wide, one, c = (
        rng.normal(size=size).astype(np.float32) for size in ((90, 3), (3,), (3,))
    )
    a, b = (torch.tensor(x, device="cuda") for x in (wide, one))
    found = kernel(a[::2], b.expand(45, 3), c)
    wanted = kernel(np.ascontiguousarray(wide[::2]), one, c)
    np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-6)


def test_on_a_gpu_gradients(torch: Any, cell: arm.Cell):
    fk = cell.fk("tool0").torch()
    Q = np.random.default_rng(3).uniform(-1.0, 1.0, (70, 6))
    slopes: list[Any] = []
    for device in ("cuda", "cpu"):
        q = torch.tensor(Q, device=device, requires_grad=True)
        (fk(q) ** 3).sum().backward()
        slopes.append(q.grad.cpu().numpy())
    np.testing.assert_allclose(slopes[0], slopes[1], atol=1e-12)


def test_on_a_gpu_arrays_of_cupy(torch: Any, cell: arm.Cell):
    cupy: Any = pytest.importorskip("cupy")
    fk = cell.fk("tool0")
    Q = np.random.default_rng(4).uniform(-1.0, 1.0, (70, 6))
    found = fk(cupy.asarray(Q))
    assert type(found).__module__.startswith("cupy")
    np.testing.assert_allclose(cupy.asnumpy(found), fk(Q), atol=1e-12)


def test_on_a_gpu_arrays_of_jax(torch: Any, cell: arm.Cell):
    jax: Any = pytest.importorskip("jax")
    fk = cell.fk("tool0", dtype=np.float32)
    Q = np.random.default_rng(5).uniform(-1.0, 1.0, (70, 6)).astype(np.float32)
    q = jax.device_put(Q, jax.devices("gpu")[0])
    with pytest.raises(KernelError, match="give out="):
        fk(q)
    out = torch.empty((70, 4, 4), dtype=torch.float32, device="cuda")
    fk(q, out=out)
    np.testing.assert_allclose(out.cpu().numpy(), fk(Q), atol=1e-5)


def test_on_a_gpu_a_compiled_file_runs_in_cupy(cell: arm.Cell, tmp_path: Path):
    cupy: Any = pytest.importorskip("cupy", reason="needs CuPy, and a GPU")
    asks = ["fk:tool0", "jacobian:tool0"]
    cell.compile_to(tmp_path / "lab", ask=asks, target="ptx", name="lab")
    module = cupy.RawModule(path=str(tmp_path / "lab" / "lab.ptx"))
    rows, size = 77, THREADS
    Q = np.random.default_rng(7).uniform(-1.0, 1.0, (rows, 6))
    q = cupy.asarray(Q)
    for ask, kernel in zip(
        asks, (cell.fk("tool0"), cell.jacobian("tool0")), strict=True
    ):
        out = cupy.full((rows, *kernel(Q).shape[1:]), 7.0)
        function = module.get_function(f"lab_{ask.replace(':', '_')}")
        given = q, out, np.int64(rows), np.int64(6)
        function((-(-rows // size),), (size,), given)
        np.testing.assert_allclose(cupy.asnumpy(out), kernel(Q), atol=1e-12)


def test_on_a_gpu_refusals(torch: Any, cell: arm.Cell):
    fk = cell.fk("tool0")
    q = torch.zeros((4, 6), dtype=torch.float64, device="cuda")
    with pytest.raises(ShapeError, match="float32 on the GPU, and the kernel"):
        fk(q.float())
    with pytest.raises(ShapeError, match="do not follow each other"):
        fk(torch.zeros((6, 4), dtype=torch.float64, device="cuda").T)
    with pytest.raises(KernelError, match="no memory for results"):
        fk(q[:1].expand(2**40, 6))
    assert bool(torch.isfinite(fk(q)).all())


def test_on_a_gpu_checks_and_solvers(torch: Any):
    lab = arm.example("two_arms_positioner")
    check = lab.collision()
    rng, (lower, upper) = np.random.default_rng(6), lab.limits
    Q = rng.uniform(np.maximum(lower, -3.0), np.minimum(upper, 3.0), (500, len(lower)))
    Q[3] = np.nan
    on_gpu = torch.tensor(Q, device="cuda")
    touching: Any = check(on_gpu)
    np.testing.assert_array_equal(touching.cpu().numpy(), check(Q))
    least: Any = check.clearance(on_gpu)
    np.testing.assert_allclose(least.cpu().numpy(), check.clearance(Q), atol=1e-9)
    wrist = arm.example("irb2400")
    solver = wrist.ik("tool0")
    X = wrist.fk("tool0")(rng.uniform(-1.0, 1.0, (100, 6)))
    found = solver.kernel(torch.tensor(X, device="cuda"))
    for each, wanted in zip(found, solver.kernel(X), strict=True):
        np.testing.assert_allclose(each.cpu().numpy(), wanted, atol=1e-9)
