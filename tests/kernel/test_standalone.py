"""Code for other machines needs nothing, and computes what kernels here do."""

from __future__ import annotations

import ctypes
import math
import platform as machine
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

from armillary.errors import KernelError, UnknownName
from armillary.kernel import compile, standalone
from armillary.kernel.c_source import Prototype, c_source
from armillary.kernel.code import Code
from armillary.kernel.intrinsics.trig import LIMIT
from armillary.kernel.jit import to_object
from armillary.kernel.object_file import archive
from armillary.kernel.standalone import (
    StandaloneFunction,
    software_fma,
    standalone_module,
)
from armillary.kernel.targets import GPU, SOURCE, Platform, platform_of, target_names
from armillary.kernel.wasm_module import wasm_module
from armillary.trace import OPS, Program, trace
from one_operation import one_operation
from webassembly import run_webassembly

Array = npt.NDArray[Any]

MACHINES = [name for name in target_names() if name not in {SOURCE, GPU}]
ON_X86 = pytest.mark.skipif(machine.machine() != "x86_64", reason="needs an x86-64")
VALUES = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, 7.25, 1e-7, 1e-300, 1e300),
    *(1.0 + 2**-52, 4503599627370497.5, 800.0, math.inf, -math.inf, math.nan),
    *np.random.default_rng(3).normal(0.0, 3.0, 41).tolist(),
]


OPERATIONS = {name: one_operation(name) for name in OPS}
FUNCTIONS = [
    StandaloneFunction.of(f"op_{name}", program) for name, program in OPERATIONS.items()
]


def arm(q: Any) -> Any:
    """A chain of turns, and a root of what is never negative."""
    x = y = angle = 0.0
    for k in range(5):
        angle = angle + q[k]
        x, y = x + 0.3 * np.cos(angle), y + 0.4 * np.sin(angle)
    return [[x, y, angle], [np.sqrt(x * x + y * y), np.arctan2(y, x), x * y]]


ARM = trace(arm, name="arm", q=(5,))


def elf_symbols(code: bytes) -> Iterator[tuple[str, bool, bool]]:
    """Yield name, whether it is defined, and whether it is global, of each symbol."""
    wide, (at,) = (
        code[4] == 2,
        struct.unpack_from(
            "<Q" if code[4] == 2 else "<I", code, 0x28 if code[4] == 2 else 0x20
        ),
    )
    size, count = struct.unpack_from("<HH", code, 0x3A if wide else 0x2E)
    form = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
    sections = [struct.unpack_from(form, code, at + k * size) for k in range(count)]
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        names = sections[section[6]][4]
        step = 24 if wide else 16
        for place in range(section[4], section[4] + section[5], step):
            fields = struct.unpack_from("<IBBHQQ" if wide else "<IIIBBH", code, place)
            info, index = (fields[1], fields[3]) if wide else (fields[3], fields[5])
            start = names + fields[0]
            text = code[start : code.index(b"\0", start)].decode()
            yield text, index != 0, info >> 4 == 1


def coff_symbols(code: bytes) -> Iterator[tuple[str, bool, bool]]:
    """Yield the same for an object of Windows, merged constants left out."""
    start, count = struct.unpack_from("<II", code, 8)
    texts, k = start + 18 * count, 0
    while k < count:
        place = start + 18 * k
        short, section, kind, more = struct.unpack_from("<8s4xh2xBB", code, place)
        k += 1 + more
        zeros, offset = struct.unpack_from("<II", short)
        if zeros == 0:
            at = texts + offset
            short = code[at : code.index(b"\0", at)]
        text = short.rstrip(b"\0").decode()
        if "mm@" not in text and "real@" not in text:
            yield text, section != 0, kind == 2  # IMAGE_SYM_CLASS_EXTERNAL


def made(functions: Sequence[StandaloneFunction], bits: int, where: Platform) -> bytes:
    return to_object(
        standalone_module(functions, bits, where), where.machine, 1, variables=True
    )


@pytest.mark.parametrize("name", MACHINES)
def test_objects_need_nothing_and_export_the_functions_alone(name: str):
    """With operations that some instruction sets lack."""
    where = platform_of(name)
    lacking = {"op_pow", "op_fmod", "op_floor", "op_round", "op_cbrt"}
    functions = [f for f in FUNCTIONS if f.name in lacking]
    assert len(functions) == len(lacking)
    functions.append(StandaloneFunction.of("arm", ARM))
    code = made(functions, where.types[0], where)
    wanted = {f.name + end for f in functions for end in ("", "_rows")}
    if name == "wasm32":
        wasm_module(code, sorted(wanted))  # refuses what needs anything
        return
    symbols = list((coff_symbols if where.is_windows else elf_symbols)(code))
    # Windows: a mark that reals are used, which every runtime defines.
    missing = {"_fltused"} if where.is_windows else {""}
    assert {text for text, is_defined, _ in symbols if not is_defined} == missing
    assert {text for text, _, is_global in symbols if is_global} - missing == wanted
    assert (b".pdata" in code) == where.is_windows


def test_windows_can_walk_the_stack_of_all_functions():
    where = platform_of("x86-64-windows")
    text = standalone_module(FUNCTIONS[:1], 64, where)
    hints = dict(re.findall(r"attributes (#\d) = {(.*)}", text))
    assert {key for key, each in hints.items() if "uwtable" in each} == {
        *("#0", "#2", "#3", "#4")  # those that choose, and the levels
    }
    assert "naked" in hints["#1"]  # touches the stack, and has no frame


Call = Callable[..., list[Array]]


def calls_of(pointer: Callable[[str], Any], function: StandaloneFunction) -> Call:
    """A function of rows, by both entries of an object, which must agree.

    It returns the results, and last which rows are beyond the formulas.
    """

    def call(*inputs: Array) -> list[Array]:
        given = [np.ascontiguousarray(each) for each in inputs]
        ports = function.computation.outputs
        kind, count = given[0].dtype, len(given[0])
        single, many = (
            [np.full((count, *port.shape), 7.0, kind) for port in ports] for _ in "ab"
        )
        one, rows = pointer(function.name), pointer(f"{function.name}_rows")
        beyond = [
            one(*(each[k : k + 1].ctypes.data for each in (*given, *single)))
            for k in range(count)
        ]
        status = rows(*(each.ctypes.data for each in (*given, *many)), count)
        assert status == max(beyond)
        for a, b in zip(single, many, strict=True):
            np.testing.assert_array_equal(a, b)
        return [*many, np.array(beyond, bool)]

    return call


def pointers_of(find: Callable[[str], int]) -> Callable[[str], Any]:
    def pointer(name: str) -> Any:
        address = find(name)

        def call(*arguments: int) -> int:
            kinds = [ctypes.c_uint64] * len(arguments)
            return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)(*arguments)

        return call

    return pointer


def rows_of(arity: int) -> list[Array]:
    """Every value beside every other, for a number of arguments."""
    values = np.array(VALUES)
    values = values[:: (1, 1, 2, 6)[arity]]
    grids = np.meshgrid(*[values] * arity, indexing="ij")
    return [grid.ravel() for grid in grids]


def check_operations(pointer: Callable[[str], Any], ulps: float) -> None:
    """Compare all operations with the kernels of this process."""
    for function in FUNCTIONS:
        program = function.computation
        assert isinstance(program, Program)
        rows = rows_of(len(program.inputs))
        found, beyond = calls_of(pointer, function)(*rows)
        wanted = compile(program)(*rows)
        with np.errstate(all="ignore"):
            close = abs(found - wanted) <= ulps * np.spacing(abs(wanted))
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | close | beyond
        assert same.all(), (
            function.name,
            *(r[~same][:3] for r in (*rows, found, wanted)),
        )


@ON_X86
@pytest.mark.thorough
def test_operations_without_a_fused_multiply_add():
    where = platform_of("x86-64-v2")
    check_operations(
        pointers_of(Code(made(FUNCTIONS, 64, where), where.machine).address), 4
    )


def test_operations_on_this_machine_agree_to_the_last_bit():
    where = platform_of("host")
    check_operations(
        pointers_of(Code(made(FUNCTIONS, 64, where), where.machine).address), 0
    )


def test_software_fma_is_that_of_exact_numbers():
    f = software_fma("fma_of", "f64")
    text = f.text.replace("define internal", "define")
    code = Code(to_object(f"{text}\nattributes #0 = {{ nounwind }}", HOST, 1), HOST)
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * 3)
    fma = kind(code.address(f.name))
    rng = np.random.default_rng(5)
    for _ in range(2000):
        x, y = rng.normal(size=2) * 10.0 ** rng.integers(-8, 8, 2)
        z = -x * y * (1.0 + rng.normal() * 10.0 ** -float(rng.integers(0, 20)))
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        found = fma(x, y, z)
        assert abs(Fraction(found) - exact) <= Fraction(
            math.ulp(float(exact))
        ) * Fraction(51, 100)
    assert fma(1e200, 1e200, 1.0) == math.inf


HOST = platform_of("host").machine


GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="there is no gcc here")


def built(functions: Sequence[StandaloneFunction], folder: Path, *flags: str) -> Any:
    """C99 of functions, compiled by gcc without a warning, as a library."""
    prototypes: dict[str, Prototype] = {}
    for f in functions:
        ports = (*f.inputs, *f.computation.outputs)
        names = tuple(f"p{chr(97 + k)}" for k in range(len(ports)))
        kinds = ["const double *"] * len(f.inputs) + ["double *"] * len(ports)
        listed = ", ".join(a + b for a, b in zip(kinds, names, strict=False))
        prototypes[f.name] = Prototype(f"int {f.name}({listed})", names)
        rows = f"int {f.name}_rows({listed}, size_t count)"
        prototypes[f"{f.name}_rows"] = Prototype(rows, (*names, "count"))
    fused = {"exact_fma": software_fma("exact_fma", "f64").text}
    source, library = folder / "code.c", folder / f"code{len(flags)}.so"
    source.write_text(
        c_source(standalone_module(functions, 64, None), prototypes, fused)
    )
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-missing-prototypes"]
    subprocess.run(
        [GCC or "", *strict, *flags, "-fPIC", "-shared", source, "-lm", "-o", library],
        check=True,
    )
    loaded = ctypes.CDLL(str(library))

    def address(name: str) -> int:
        return ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0

    return pointers_of(address)


@needs_gcc
def test_c_source_of_all_operations(tmp_path: Path):
    check_operations(built(FUNCTIONS, tmp_path, "-O1"), 4)


@needs_gcc
@ON_X86
def test_c_source_agrees_to_the_last_bit_with_the_same_instructions(tmp_path: Path):
    function = StandaloneFunction.of("arm", ARM)
    rows = np.random.default_rng(1).uniform(-3.0, 3.0, (257, 5))
    found, _ = calls_of(built([function], tmp_path, "-O2", "-march=native"), function)(
        rows
    )
    np.testing.assert_array_equal(found, compile(ARM)(rows))
    found, _ = calls_of(built([function], tmp_path, "-O2"), function)(rows)
    np.testing.assert_allclose(found, compile(ARM)(rows), rtol=0, atol=1e-15 * 8)


def test_angles_beyond_the_formula_are_reported():
    where = platform_of("host")
    code = Code(made([StandaloneFunction.of("arm", ARM)], 64, where), where.machine)
    pointer = pointers_of(code.address)
    rows, room = np.zeros((11, 5)), np.empty((11, 2, 3))
    addresses = rows.ctypes.data, room.ctypes.data
    assert pointer("arm_rows")(*addresses, 11) == 0
    rows[10, 2] = 2.0**31
    assert pointer("arm_rows")(*addresses, 11) == 1
    assert pointer("arm")(*addresses) == 0


def test_bound_inputs_are_constants_of_the_module():
    program = trace(lambda a, b: a * 2.0 + b[0] - b[1], name="f", a=(), b=(2,))
    where = platform_of("host")
    function = StandaloneFunction.of("f", program, bound={"b": [5.0, 1.0]})
    assert [port.name for port in function.inputs] == ["a"]
    code = Code(made([function], 64, where), where.machine)
    found, _ = calls_of(pointers_of(code.address), function)(np.arange(19.0))
    np.testing.assert_array_equal(found, np.arange(19.0) * 2.0 + 4.0)


def webassembly_results(
    function: StandaloneFunction, rows: Array, folder: Path
) -> tuple[int, Array, Array]:
    """Return of a function of one input the status, its rows, and each row alone."""
    name, where = function.name, platform_of("wasm32")
    bits = rows.dtype.itemsize * 8
    module = wasm_module(made([function], bits, where), [name, f"{name}_rows"])
    (port,) = function.computation.outputs
    status, (many,), (single,) = run_webassembly(
        module, name, [rows], [port.size], folder
    )
    shape = len(rows), *port.shape
    return status, many.reshape(shape), single.reshape(shape)


def test_webassembly_computes_the_same(tmp_path: Path):
    """In node, on SIMD of two lanes, without a fused multiply-add."""
    rows = np.random.default_rng(2).uniform(-3.0, 3.0, (7, 5))
    function = StandaloneFunction.of("arm", ARM)
    status, many, single = webassembly_results(function, rows, tmp_path)
    assert status == 0
    np.testing.assert_array_equal(many, single)
    np.testing.assert_allclose(many, compile(ARM)(rows), rtol=0, atol=4e-15)


def angles(bits: int) -> Array:
    """Angles of all sizes, and the numbers next to multiples of a quarter turn."""
    rng, most = np.random.default_rng(8), LIMIT[bits]
    sizes = (1e-9, 0.1, 3.2, 50.0, 1e4, most)
    sized = np.concatenate([rng.uniform(-size, size, 99) for size in sizes])
    far = rng.integers(1, int(most / 2), 300)
    quarters = np.concatenate([np.arange(-40, 41), far]) * (np.pi / 2)
    beside = [np.nextafter(quarters, end) for end in (-np.inf, np.inf)]
    rows = np.concatenate([sized, quarters, *beside, [most, 0.0, -0.0]])
    return rows.astype(f"f{bits // 8}")


PAIR = StandaloneFunction.of(
    "pair", trace(lambda x: [np.sin(x), np.cos(x)], name="pair", x=())
)


def check_sines(x: Array, found: Array) -> None:
    """Compare sines and cosines with those of 50 digits."""
    with mpmath.workdps(50):
        for angle, pair in zip(x.tolist(), found.tolist(), strict=True):
            for number, exact in zip(pair, (mpmath.sin, mpmath.cos), strict=True):
                wanted = exact(mpmath.mpf(angle))
                unit = np.spacing(x.dtype.type(abs(float(wanted))))
                assert abs(number - wanted) <= 2.5 * float(unit), (angle, exact)


@pytest.mark.parametrize("bits", [64, 32])
def test_sines_in_webassembly_are_those_of_many_digits(bits: int, tmp_path: Path):
    """They have a formula of their own: cosines are roots."""
    x = angles(bits)
    status, many, single = webassembly_results(PAIR, x[:, np.newaxis], tmp_path)
    assert status == 0
    np.testing.assert_array_equal(many, single)
    check_sines(x, many)
    assert many[-1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("bits", [64, 32])
def test_angles_beyond_the_formulas_are_reported_in_webassembly(
    bits: int, tmp_path: Path
):
    beyond = np.array([[1.001 * LIMIT[bits]]], f"f{bits // 8}")
    assert webassembly_results(PAIR, beyond, tmp_path)[0] == 1


@ON_X86
@pytest.mark.parametrize("bits", [64, 32])
def test_sines_without_a_fused_multiply_add_are_those_of_many_digits(bits: int):
    where, x = platform_of("x86-64-v2"), angles(bits)
    code = Code(made([PAIR], bits, where), where.machine)
    found, beyond = calls_of(pointers_of(code.address), PAIR)(x)
    assert not beyond.any()
    check_sines(x, found)


def test_archive_is_what_the_format_says():
    """The table of symbols leads to the member; the next begins at an even place."""
    data = archive([("code.o", b"xyz")], ["f", "g_rows"])
    assert data.startswith(b"!<arch>\n/               ")
    count, first, second = struct.unpack_from(">III", data, 68)
    assert (count, first) == (2, second)
    assert data[first:].startswith(b"code.o/ ")
    assert len(data) % 2 == 0
    assert data[first + 60 :] == b"xyz\n"


def test_bad_input(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UnknownName, match=r"no target named 'aarch65'.*'aarch64'"):
        platform_of("aarch65")
    with pytest.raises(KernelError, match="no instructions for float64"):
        standalone_module(
            [StandaloneFunction.of("arm", ARM)], 64, platform_of("armv7em")
        )
    empty = trace(lambda q: np.zeros((0,)), name="nothing", q=(2,))
    with pytest.raises(KernelError, match="has no result"):
        StandaloneFunction.of("nothing", empty)
    monkeypatch.setattr(standalone, "MOST_STACK", 64)
    with pytest.raises(KernelError, match="bytes of working memory"):
        standalone_module(
            [StandaloneFunction.of("long", LONG)], 64, platform_of("host")
        )


def long_sum(q: Any) -> Any:
    """Two passes over many values, which wait in between."""
    values = [np.sin(q[0] * k) for k in range(400)]
    return sum(x * y for x, y in zip(values, reversed(values), strict=True))


LONG = trace(long_sum, name="long", q=(1,))
