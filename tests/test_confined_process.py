"""Processes that can only compute: the kernel's filter, and the hook elsewhere."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from armillary import confined_process
from armillary.confined_process import ConfinedProcess, ForkedProcess, ForkServer

ECHO = """
import sys, runpy
is_enforced = runpy.run_path(sys.argv[1])["confine"](1 << 30)
for line in sys.stdin:
    try:
        print(eval(line), is_enforced, flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
"""
ELSEWHERE = "import platform\nplatform.machine = lambda: 'other'\n"


def process(folder: Path, code: str = ECHO) -> ConfinedProcess:
    path = folder / "child.py"
    path.write_text(code)
    return ConfinedProcess([str(path), confined_process.__file__])


def asked(
    child: ConfinedProcess | ForkedProcess, text: str, seconds: float = 20.0
) -> str:
    return child.ask(text.encode(), seconds=seconds, longest=1000).decode().strip()


REFUSED = (
    "open('/etc/hostname')",
    "open('mark', 'w')",
    "__import__('os').listdir('/')",
    "__import__('os').remove('mark')",
    "__import__('os').fork()",
    "__import__('os').execv('/bin/true', ['true'])",
    "__import__('os').kill(1, 0)",
    "__import__('_socket').socket()",
)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's filter is of Linux")
def test_the_kernel_refuses_all_but_computing(tmp_path):
    child = process(tmp_path, "import os, _socket\n" + ECHO)
    assert asked(child, "sum(range(10**6))") == "499999500000 True"
    assert asked(child, "len([b'x' * 10**6 for _ in range(100)])") == "100 True"
    for text in REFUSED:
        found = asked(child, text)
        assert "not permitted" in found, text
    assert asked(child, "__import__('os').stat('/')").startswith("PermissionError")
    assert asked(child, "2 + 2") == "4 True"
    assert asked(child, "len(b'x' * (4 << 30))").startswith("MemoryError")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_addresses_may_be_reserved_beyond_the_memory(tmp_path):
    code = ECHO.replace("(1 << 30)", "(1 << 28, reserved=1 << 30)")
    child = process(tmp_path, "import mmap\n" + code)
    mapped = "len(mmap.mmap(-1, 1 << 29, mmap.MAP_PRIVATE, prot={}))"
    assert asked(child, mapped.format("mmap.PROT_READ")) == f"{1 << 29} True"
    assert "memory" in asked(child, mapped.format("mmap.PROT_WRITE"))
    assert "Memory" in asked(child, "len(bytearray(1 << 29))")


def test_computing_ends_after_the_time(tmp_path):
    child = process(tmp_path, ECHO.replace("1 << 30", "1 << 30, (), 1"))
    assert asked(child, "2 + 2").startswith("4")
    assert asked(child, "sum(range(10**12))") == ""


def test_elsewhere_an_audit_hook_refuses_events(tmp_path):
    child = process(tmp_path, "import os, _socket\n" + ELSEWHERE + ECHO)
    assert asked(child, "sum(range(10**6))") == "499999500000 False"
    for text in REFUSED:
        found = asked(child, text)
        assert "may not do this" in found, text
    assert asked(child, "__import__('csv')").startswith("PermissionError")
    assert asked(child, "2 + 2") == "4 False"


def test_questions_have_a_limit_of_time_and_answers_of_length(tmp_path):
    child = process(tmp_path)
    assert len(child.ask(b"'x' * 100", seconds=20.0, longest=10)) == 10
    child = process(tmp_path)
    assert asked(child, "[0 for _ in iter(int, 1)]", seconds=1.0) == ""
    assert asked(child, "1") == ""  # it has ended


def test_it_has_no_environment_and_ends_with_its_object(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "hidden")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = process(tmp_path, "import os\n" + ECHO)
    assert "hidden" not in asked(child, "dict(os.environ)")
    known: subprocess.Popen[bytes] = child._process
    child.end()
    assert known.returncode is not None


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's filter is of Linux")
def test_a_process_may_read_some_folders_and_write_nothing(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "text").write_text("read me")
    (inside / "link").symlink_to(outside / "text")
    code = "import os, _socket\n" + ECHO.replace(
        "(1 << 30)", f"(1 << 30, [{str(inside)!r}])"
    )
    child = process(tmp_path, code)
    assert asked(child, f"open({str(inside / 'text')!r}).read()") == "read me True"
    refused = [text for text in REFUSED if "hostname" not in text]
    for mode in ("w", "a", "r+", "x"):
        refused.append(f"open({str(inside / 'mark')!r}, {mode!r})")
    refused.append(f"open({str(inside / 'text')!r}, 'r+')")
    for text in refused:
        found = asked(child, text)
        assert "Error" in found, text
    assert sorted(path.name for path in inside.iterdir()) == ["link", "text"]
    if has_landlock():
        for path in (outside / "text", inside / "link", Path("/etc/hostname")):
            assert asked(child, f"open({str(path)!r})").startswith("PermissionError")
    assert asked(child, "2 + 2") == "4 True"


def has_landlock() -> bool:
    """Whether the kernel can keep a process to some folders."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


SERVER = """
import os, runpy, sys
functions = runpy.run_path(sys.argv[1])
def answer():
    for line in sys.stdin:
        print(eval(line), flush=True)
def prepare():
    os.prepared = os.getpid()
functions["serve_forks"](answer, prepare=prepare, idle=20.0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_server_forks_a_process_for_each_request(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    server = ForkServer([str(path), confined_process.__file__])
    one, other = server.forked(), server.forked()
    parents = [asked(each, "os.getppid()") for each in (one, other)]
    assert parents[0] == parents[1] != str(os.getpid())
    assert asked(one, "os.getpid()") != asked(other, "os.getpid()")
    assert asked(one, "os.prepared == os.getpid()") == "True"
    assert asked(one, "setattr(os, 'mark', 1)") == "None"
    assert asked(other, "hasattr(os, 'mark')") == "False"
    assert asked(other, "os._exit(3)") == ""  # it has ended
    fourth = server.forked()
    assert asked(fourth, "6 * 7") == "42"
    # One that takes too long ends with all others; the next one has a new server.
    assert asked(one, "__import__('time').sleep(60)", seconds=0.2) == ""
    third = server.forked()
    assert asked(third, "os.getppid()") != parents[0]
    for each in (one, other, third, fourth):
        each.end()
    server.end()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_server_whose_processes_cannot_start_ends(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(SERVER.replace("os.prepared =", "1 / 0 #"))
    server = ForkServer([str(path), confined_process.__file__])
    one = server.forked()
    assert asked(one, "6 * 7") == ""
    one.end()
    server.end()
