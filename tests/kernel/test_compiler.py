"""Programs to code: through the cache, within bounds, the same text every time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import armillary.kernel
from armillary import disk_cache
from armillary.errors import KernelError
from armillary.kernel import compile, compiler, jit
from armillary.kernel.code import Code
from armillary.kernel.host import Target, host
from armillary.kernel.jit import to_object
from armillary.kernel.machine_type import F32, F64, Type, real_of
from armillary.trace import Port, Program, trace


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of each test's own."""
    monkeypatch.setenv("ARMILLARY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that LLVM was asked to compile."""
    texts: list[str] = []

    def note(text: str, *args: Any, **options: Any) -> bytes:
        texts.append(text)
        return to_object(text, *args, **options)

    monkeypatch.setattr(jit, "to_object", note)
    return texts


def scaled(factor: float, size: int = 3, name: str = "scaled") -> Program:
    return trace(lambda q: factor * q, name=name, q=(size,))


Q = np.array([1.0, -2.0, 0.5])


# Through the cache.


def test_code_is_made_once(made: list[str]):
    for _ in range(3):
        np.testing.assert_array_equal(compile(scaled(3.0))(Q), 3.0 * Q)
    assert len(made) == 1


def test_code_is_made_each_time_without_a_cache(
    made: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ARMILLARY_CACHE", "off")
    for _ in range(2):
        np.testing.assert_array_equal(compile(scaled(3.0))(Q), 3.0 * Q)
    assert len(made) == 2


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:-1], lambda content: content[::-1]],
)
def test_a_damaged_entry_is_made_anew(
    place: Path, made: list[str], damage: Callable[[bytes], bytes]
):
    compile(scaled(3.0))
    (path,) = place.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    np.testing.assert_array_equal(compile(scaled(3.0))(Q), 3.0 * Q)
    assert len(made) == 2
    assert path.read_bytes() == whole


def test_code_that_cannot_be_loaded_is_made_anew(
    made: list[str], monkeypatch: pytest.MonkeyPatch
):
    compile(scaled(3.0))
    failed: list[bytes] = []

    def fail_once(code: bytes, target: Target) -> Code:
        if not failed:
            failed.append(code)
            raise KernelError("cannot load")
        return Code(code, target)

    monkeypatch.setattr(compiler, "Code", fail_once)
    np.testing.assert_array_equal(compile(scaled(3.0))(Q), 3.0 * Q)
    assert len(made) == 2


def key(program: Program, real: Type | None = None, **changes: Any) -> str:
    target = msgspec.structs.replace(host(), **changes)
    parts = program.fingerprint, (real or F64.wide(4)).text, target.identity
    return compiler.key_of(*parts)


def test_the_key_holds_all_that_shapes_the_code(monkeypatch: pytest.MonkeyPatch):
    program = scaled(3.0)
    keys = [
        key(program),
        key(scaled(3.0 + 2.0**-51)),
        key(scaled(3.0, 4)),
        key(trace(lambda x: 3.0 * x, name="scaled", x=(3,))),
        key(trace(lambda q: 3.0 * q, name="scaled", outputs=["y"], q=(3,))),
        key(trace(lambda q: 3.0 * q[::-1], name="scaled", q=(3,))),
        key(program, F32.wide(4)),
        key(program, F64.wide(2)),
        key(program, cpu="other"),
        key(program, features="+other"),
        key(program, triple="other"),
        key(program, vector_bits=128),
    ]
    monkeypatch.setattr("llvmlite.__version__", "0.0.1")
    keys.append(key(program))
    monkeypatch.undo()
    monkeypatch.setattr(compiler, "emitter_fingerprint", lambda: "other source")
    keys.append(key(program))
    monkeypatch.undo()
    assert len(set(keys)) == len(keys)
    assert key(scaled(3.0)) == key(program) == key(scaled(3.0, name="other")) == keys[0]


def test_the_fingerprint_holds_every_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    digest_of = disk_cache._digest_of
    copy = tmp_path / "kernel"
    shutil.copytree(
        Path(armillary.kernel.__file__).parent,
        copy,
        ignore=shutil.ignore_patterns("__pycache__"),
    )

    def listed(name: str, spec: object) -> Iterator[Path]:
        return copy.joinpath(*name.split(".")[2:]).iterdir()

    def fingerprint() -> str:
        disk_cache._digest_of.cache_clear()
        return compiler.emitter_fingerprint.__wrapped__()

    monkeypatch.setattr(disk_cache, "_listed", listed)
    monkeypatch.setattr(disk_cache, "_as_it_lies", lambda modules: None)
    monkeypatch.setattr(disk_cache, "BEGAN", 2**63)  # the copy is not changed source
    monkeypatch.setattr(disk_cache, "_digest_of", lru_cache(digest_of.__wrapped__))
    before = fingerprint()
    assert before == compiler.emitter_fingerprint() == fingerprint()
    (copy / "notes.txt").write_text("of no concern")
    assert fingerprint() == before
    sources = [p for p in copy.rglob("*") if p.suffix in {".py", ".ll"}]
    assert len(sources) > 25
    for source in sources:
        text = source.read_bytes()
        source.write_bytes(text + b"\n")
        assert fingerprint() != before, source
        source.write_bytes(text)
    assert fingerprint() == before
    # Where only compiled Python is installed, that counts.
    for source in sources:
        if source.suffix == ".py":
            source.rename(source.with_suffix(".pyc"))
    compiled = fingerprint()
    (copy / "emit.pyc").write_bytes(b"changed")
    assert fingerprint() != compiled


# Within bounds.


def test_too_many_dimensions():
    program = trace(lambda q: q * 2.0, name="deep", q=(2, 1, 2, 1))
    with pytest.raises(KernelError) as raised:
        compile(program)
    assert str(raised.value) == (
        "'deep' has q of shape (..., 2, 1, 2, 1); a kernel takes at most 3 dimensions "
        "besides the batch. Join some of them."
    )
    program = trace(lambda q: np.zeros((1, 1, 1, 1)), name="deep", q=())
    with pytest.raises(KernelError, match="'deep' has result of shape"):
        compile(program)


@pytest.mark.parametrize("count", [31, 33, 62])
def test_many_arrays(count: int):
    shapes = {f"a{k}": () for k in range(count)}
    program = trace(lambda *a: sum(a), name="sum", **shapes)
    numbers = np.arange(float(count))
    assert compile(program)(*numbers) == numbers.sum()
    rows = np.add.outer(numbers, np.arange(5.0))
    np.testing.assert_array_equal(compile(program)(*rows), rows.sum(axis=0))


def test_too_many_arrays():
    program = trace(lambda *a: sum(a), name="sum", **{f"a{k}": () for k in range(63)})
    with pytest.raises(KernelError) as raised:
        compile(program)
    assert str(raised.value) == (
        "'sum' has 64 inputs and outputs; a kernel takes at most 63. Join some of them "
        "in one array."
    )


def test_rows_too_large():
    ports = (Port("q", (300, 300)),)
    program = replace(trace(lambda q: q, name="large", q=(1,)), inputs=ports)
    with pytest.raises(KernelError) as raised:
        compile(program)
    assert str(raised.value) == (
        "'large' reads and writes 720008 bytes for one row of its batch; a kernel "
        "takes at most 524288. Split its outputs among several programs."
    )


def test_large_rows_take_fewer_lanes():
    size = compiler.BUFFER_BYTES // 8 // 3
    program = trace(lambda q: [q[0] + q[-1], q[size // 2]], name="wide", q=(size,))
    kernel = compile(program, lanes=8)
    assert kernel.lanes == 2
    q = np.random.default_rng(0).normal(size=(5, size))
    wanted = np.stack([q[:, 0] + q[:, -1], q[:, size // 2]], axis=1)
    np.testing.assert_array_equal(kernel(q), wanted)
    np.testing.assert_array_equal(kernel(q[::-1, ::-1])[::-1, 0], wanted[:, 0])
    np.testing.assert_array_equal(kernel(q[3]), wanted[3])
    assert compile(scaled(2.0), lanes=8).lanes == 8


def test_without_empty_arrays():
    program = trace(
        lambda a, q, b: (q * 2.0, np.zeros((0, 2))),
        **{"a": (0,), "q": (2,), "b": (3, 0)},
        outputs=["x", "y"],
    )
    core = compiler.without_empty_arrays(program)
    assert core.inputs == (Port("q", (2,)),)
    assert core.outputs == (Port("x", (2,)),)
    assert compiler.without_empty_arrays(core) is core
    alone = trace(lambda q: [1.0], q=(0,))
    assert compiler.without_empty_arrays(alone).inputs == (Port("nothing", ()),)


# The same text every time, and legal for every shape.


@pytest.mark.sampled(6)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_text(formulas: dict[str, Program], bits: int, lanes: int):
    real = real_of(bits, lanes)
    for program in formulas.values():
        text = compiler.kernel_text(program, real)
        assert text == compiler.kernel_text(program, real)
        assert ("define ptr @call" in text) == (len(program.outputs) == 1)
        assert "nnan" not in text
        assert "ninf" not in text
        if program.name != "long":
            assert to_object(text, host(), 0)


def test_assembly(arm: Program):
    text = compiler.assembly_text(arm, compiler.native_reals(64))
    assert "loop:" in text
    assert "call:" in text


def test_long_programs_are_compiled_with_less_effort(arm: Program, long: Program):
    assert compiler.level_of(arm) > compiler.level_of(long)
