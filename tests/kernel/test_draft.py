"""Long code: a draft first, the code proper from another process, the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary import disk_cache
from armillary.disk_cache import CODE, DRAFTS
from armillary.errors import KernelError
from armillary.kernel import compile, compiler, draft, jit
from armillary.kernel import kernel as kernels
from armillary.kernel.code import Code
from armillary.kernel.host import Target, host
from armillary.trace import Program, trace

Array = npt.NDArray[Any]
Waiting = list[tuple[str, Code, Target]]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not host().triple.startswith("x86_64"),
    reason="LLVM places the code of other machines, which cannot be replaced",
)


@pytest.fixture(autouse=True)
def folder(
    optimised: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An empty cache, and drafts from a few hundred lines on."""
    monkeypatch.setenv("ARMILLARY_CACHE", str(tmp_path))
    monkeypatch.setenv("ARMILLARY_BACKGROUND", "on")
    monkeypatch.setattr(draft, "LONG", 300)
    compiler.general_code()  # shared by all tests
    for path in tmp_path.iterdir():
        path.unlink()
    kernels._shared.cache_clear()
    yield tmp_path
    kernels._shared.cache_clear()


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The levels of what this process compiles."""
    seen: list[int] = []
    to_object = jit.to_object

    def counted(text: str, target: Target, level: int, *, variables: bool) -> bytes:
        seen.append(level)
        return to_object(text, target, level, variables=variables)

    monkeypatch.setattr(jit, "to_object", counted)
    return seen


@pytest.fixture
def ends() -> list[bool]:
    """Whether what makes the code proper of `waiting` goes on to the end."""
    return []


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch, ends: list[bool]) -> Waiting:
    """Drafts whose code proper nobody makes before the test does."""
    seen: Waiting = []

    def improve(key: str, code: Code, target: Target, *, to_the_end: bool) -> None:
        seen.append((key, code, target))
        ends.append(to_the_end)

    monkeypatch.setattr(draft, "improve", improve)
    return seen


def sums(q: Any) -> Any:
    """Products and sums, some of them used twice, roots, selects and divisions."""
    total, terms = q[0], list[Any]()
    for k in range(60):
        product = np.sin(q[k % 3]) * q[(k + 1) % 3]
        total = total + product * 0.7 - q[1] * total
        slow = total / (1.0 + product * product)
        total = np.where(total < 0.3, slow, total)
        terms.append(np.sqrt(1.0 + total * total))
    return terms


@pytest.fixture(scope="module")
def program() -> Program:
    return trace(sums, name="sums", q=(3,), outputs=["terms"])


def files(folder: Path) -> dict[str, set[str]]:
    """The keys of code and of drafts."""
    return {
        ending: {path.stem for path in folder.glob(f"*{ending}")}
        for ending in (CODE, DRAFTS)
    }


def of_program(program: Program) -> list[Array]:
    rows = np.random.default_rng(0).normal(size=(37, 3))
    kernel, narrow = compile(program), compile(program, dtype=np.float32, lanes=1)
    return [kernel(rows), kernel(rows[0]), narrow(rows.astype(np.float32))]


def of_dynamics() -> list[Array]:
    cell = arm.example("ur10_on_rail")
    Q = np.random.default_rng(0).normal(size=(3, 9, len(cell.home.q)))
    return [cell.inverse_dynamics()(*Q), cell.inverse_dynamics()(*Q[:, 0])]


def of_controller() -> list[Array]:
    cell = arm.example("irb2400")
    control = cell.controller(arm.tasks.Frame("tool0"))
    q, qd, answers = cell.home.q, np.zeros(6), list[Array]()
    target = cell.fk("tool0")(q + 0.3)
    for _ in range(20):
        qd = np.asarray(control(q, qd, target).qd)
        q = q + 1e-3 * qd
        answers.append(qd)
    return answers


def of_check() -> list[Array]:
    cell = arm.example("irb2400")
    check = cell.collision()
    Q = np.random.default_rng(0).uniform(-2.0, 2.0, (40, 6))
    return [np.asarray(check(Q)), np.asarray(check(Q[0]))]


@pytest.mark.parametrize("ask", [of_dynamics, of_controller, of_check])
def test_both_levels_give_the_same_bits(
    ask: Callable[[], list[Array]], folder: Path, levels: list[int], waiting: Waiting
):
    first = [answer.tobytes() for answer in ask()]
    assert levels.count(0) == len(waiting) > 0
    assert {key for key, _, _ in waiting} == files(folder)[DRAFTS]
    before = len(levels)
    for key, code, target in waiting:
        draft.finish(key)
        proper = disk_cache.load(key)
        assert proper is not None
        assert code.replace(Code(proper, target))
    made = levels[before:]
    assert made
    assert 0 not in made
    assert not files(folder)[DRAFTS]
    kernels._shared.cache_clear()
    assert [answer.tobytes() for answer in ask()] == first  # code from the cache
    assert len(levels) == before + len(made)


def test_a_kernel_runs_the_code_that_replaces_its_own(
    program: Program, levels: list[int], waiting: Waiting
):
    kernel = compile(program)
    rows = np.random.default_rng(1).normal(size=(37, 3))
    first = kernel(rows)
    ((key, code, target),) = waiting
    (level,) = {compiler.level_of(program)}
    assert levels == [0]
    draft.finish(key)
    assert levels == [0, level]
    proper = disk_cache.load(key)
    assert proper is not None
    assert code.replace(Code(proper, target))
    assert kernel(rows).tobytes() == first.tobytes()
    assert kernel(rows[0]).tobytes() == first[0].tobytes()
    draft.finish(key)  # of a process that was started as well: nothing is left to do
    assert levels == [0, level]


def test_the_next_process_takes_the_draft_and_has_it_improved(
    program: Program,
    folder: Path,
    levels: list[int],
    waiting: Waiting,
    ends: list[bool],
):
    first = of_program(program)
    assert levels == [0, 0]
    again = of_program(program)
    assert levels == [0, 0]
    assert ends == [False, False, True, True]
    assert [key for key, _, _ in waiting[:2]] == [key for key, _, _ in waiting[2:]]
    assert [a.tobytes() for a in first] == [a.tobytes() for a in again]
    assert len(files(folder)[DRAFTS]) == 2
    assert not files(folder)[CODE]  # a draft is never taken for the code proper


@pytest.mark.parametrize("is_found", [False, True])
def test_another_process_makes_the_code_proper(
    is_found: bool,
    program: Program,
    folder: Path,
    levels: list[int],
    monkeypatch: pytest.MonkeyPatch,
):
    if is_found:
        with monkeypatch.context() as patch:
            patch.setattr(draft, "improve", lambda *_, **__: None)
            compile(program)  # as a process that ended too soon
    kernel = compile(program)
    rows = np.random.default_rng(2).normal(size=(5, 3))
    first = kernel(rows)
    (key,) = files(folder)[DRAFTS] or files(folder)[CODE]
    draft.wait()
    assert files(folder) == {CODE: {key}, DRAFTS: set()}
    assert kernel(rows).tobytes() == first.tobytes()
    assert compile(program)(rows).tobytes() == first.tobytes()
    assert levels == [0]


def test_it_ends_with_the_process_that_started_it(folder: Path):
    fcntl = pytest.importorskip("fcntl")
    path = [os.path.abspath(each) for each in sys.path]
    code = (
        f"import sys; sys.path[:] = {path!r}\n"
        "from armillary.kernel.draft import main; main('absent', to_the_end=False)"
    )
    with (folder / draft.LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # it waits for ever
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", code], stdin=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=300) == 0


def test_it_ends_without_an_error_while_its_stdin_is_open(folder: Path):
    """Python aborts where a thread holds the lock of sys.stdin at its end."""
    path = [os.path.abspath(each) for each in sys.path]
    code = (
        f"import sys; sys.path[:] = {path!r}\n"
        "from armillary.kernel.draft import main; main('absent', to_the_end=False)"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code], stdin=pipe, stderr=pipe
    ) as process:
        assert process.wait(timeout=300) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_cache_that_is_read_only(
    program: Program,
    levels: list[int],
    waiting: Waiting,
    monkeypatch: pytest.MonkeyPatch,
):
    first = compile(program)(np.ones(3))
    ((key, code, target),) = waiting
    monkeypatch.undo()
    # Root may write anywhere, so the system's answer is replaced.
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = list(draft._improving)
    draft.improve(key, code, target, to_the_end=True)
    assert draft._improving == before  # nobody could keep the code proper
    with monkeypatch.context() as patch:
        patch.setenv("ARMILLARY_BACKGROUND", "on")
        patch.setattr(draft, "LONG", 300)
        assert draft.make(key, "", target, 2, variables=False) is None
    assert first.shape == (60,)
    assert levels == [0]


@pytest.mark.parametrize("why", ["off", "no cache", "frozen", "embedded", "short"])
def test_where_drafts_cannot_be(
    why: str,
    program: Program,
    levels: list[int],
    waiting: Waiting,
    monkeypatch: pytest.MonkeyPatch,
):
    expected = compile(program)(np.ones(3))
    levels.clear()
    waiting.clear()
    if why == "off":
        monkeypatch.setenv("ARMILLARY_BACKGROUND", "OFF")
    elif why == "no cache":
        monkeypatch.setenv("ARMILLARY_CACHE", "off")
    elif why == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif why == "embedded":
        monkeypatch.setattr(sys, "executable", "/usr/bin/blender")
    else:
        monkeypatch.setattr(draft, "LONG", 10**6)
        for path in Path(os.environ["ARMILLARY_CACHE"]).iterdir():
            path.unlink()
    result = compile(program)(np.ones(3))
    assert levels == [compiler.level_of(program)]
    assert not waiting
    # Contraction is decided by the length alone, not by what a machine can do.
    assert why == "short" or result.tobytes() == expected.tobytes()


def test_a_damaged_draft_is_made_again(
    program: Program, folder: Path, levels: list[int], waiting: Waiting
):
    compile(program)
    (path,) = folder.glob(f"*{DRAFTS}")
    path.write_bytes(path.read_bytes()[:-1])
    compile(program)
    assert levels == [0, 0]
    disk_cache.store(path.stem, b"of another version", DRAFTS)
    compile(program)
    assert levels == [0, 0, 0]


def test_nothing_is_stored_where_the_cache_was_removed(
    program: Program, folder: Path, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
):
    compile(program)
    ((key, _, _),) = waiting
    to_object = jit.to_object

    def removed(*arguments: Any, **options: Any) -> bytes:
        for path in folder.iterdir():
            path.unlink()
        return to_object(*arguments, **options)

    monkeypatch.setattr(jit, "to_object", removed)
    draft.finish(key)
    assert files(folder) == {CODE: set(), DRAFTS: set()}


def test_an_environment_that_is_refused(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ARMILLARY_BACKGROUND", "perhaps")
    with pytest.raises(KernelError, match=r"ARMILLARY_BACKGROUND is 'perhaps'; .* off"):
        compile(program)
