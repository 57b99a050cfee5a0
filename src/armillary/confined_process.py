"""Processes that compute answers and can do nothing else: for code out of files.

A `ConfinedProcess` is a Python process that answers lines with lines. When its code
has imported what it needs, it calls `confine`, and from then on it has its memory, the
lines that come in and those that go out: it opens no file, no connection and no other
process. On Linux the kernel enforces that, by a filter of system calls (seccomp). The
process that asked reads the files that the code needs, and decides which it may see.

This module imports only the standard library, and nothing of armillary: a process that
has to start fast runs it by its path.
"""

from __future__ import annotations

import gc
import importlib
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any, Final

__all__ = ["ConfinedProcess", "ForkServer", "confine", "serve_forks"]

# System calls that are allowed, with their numbers on x86_64 and on aarch64. They
# compute, allocate memory, wait, and use the three streams that are open; none of them
# opens, starts, removes, traces or sends a signal.
_CALLS: Final = {
    **{"read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66)},
    **{"close": (3, 57), "lseek": (8, 62), "fstat": (5, 80), "getcwd": (79, 17)},
    **{"mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215)},
    **{"mremap": (25, 216), "madvise": (28, 233), "brk": (12, 214)},
    **{"futex": (202, 98), "set_robust_list": (273, 99), "rseq": (334, 293)},
    **{"rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135)},
    **{"rt_sigreturn": (15, 139), "sigaltstack": (131, 132)},
    **{"restart_syscall": (219, 128), "sched_yield": (24, 124)},
    **{"nanosleep": (35, 101), "clock_nanosleep": (230, 115)},
    **{"clock_gettime": (228, 113), "gettimeofday": (96, 169)},
    **{"getrandom": (318, 278), "getpid": (39, 172), "gettid": (186, 178)},
    **{"exit": (60, 93), "exit_group": (231, 94)},
}
# What reading files takes more, for processes that may read some folders.
_READING: Final = {
    **{"newfstatat": (262, 79), "statx": (332, 291)},
    **{"pread64": (17, 67), "readlinkat": (267, 78), "faccessat": (269, 48)},
    **{"faccessat2": (439, 439), "fcntl": (72, 25), "getdents64": (217, 61)},
    **{"statfs": (137, 43), "fstatfs": (138, 44), "fadvise64": (221, 223)},
}
# Of x86_64 alone, which has older names for them.
_OLDER: Final = (4, 6, 21, 89)  # stat, lstat, access, readlink
_OPEN: Final = (257, 56)  # openat, to read alone
# The column of a machine in that table, the kernel's number of its architecture, and
# that of the call `seccomp`.
_MACHINES: Final = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}

# Instructions of the filter, and its verdicts.
_LOAD, _AND, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FLAGS_AT = 0, 4, 32  # flags are the third argument
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000 | 1, 0x7FFF0000  # refuse with EPERM

# Landlock: its calls, the rights that it takes away, and those that reading needs.
_CREATE_RULES, _ADD_RULE, _RESTRICT = 444, 445, 446
_ALL_RIGHTS: Final = (1 << 13) - 1  # of its first version: run, write, read, list, ...
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_BENEATH: Final = 1

_END_WITH_PARENT: Final = 1  # of prctl
_NO_NEW_PRIVILEGES: Final = 38
_SET_FILTER, _ALL_THREADS = 1, 1  # of seccomp

# Audit events of Python that computing raises.
_HARMLESS: Final = frozenset(
    ("compile", "exec", "object.__getattr__", "sys._getframe", "builtins.id")
)


class ConfinedProcess:
    """A process of Python that answers lines with lines.

    It has neither the environment nor the paths of this one; it ends with this object.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: str | None = None,
        complaints: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:
        """Start it.

        Args:
            command: What Python runs: a file with its arguments, or `-m` and a module.
            folder: Its working directory; by default that of this process.
            complaints: Where its standard error goes.
        """
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=_environment(),
            cwd=folder,
        )
        self.end = weakref.finalize(self, _end, self._process)

    def ask(self, message: bytes, *, seconds: float, longest: int) -> bytes:
        """Return the line that answers a line.

        It is cut after `longest` bytes. If it takes longer than that many seconds, the
        process is killed; an answer of a process that has ended is empty.
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(max(0.0, seconds), process.kill)
        with self._lock:
            timer.start()
            try:
                process.stdin.write(message + b"\n")
                process.stdin.flush()
                return process.stdout.readline(longest)
            except OSError:
                return b""
            finally:
                timer.cancel()


class ForkServer:
    """A process that has imported what others need, and forks one for each request.

    The code that it runs calls `serve_forks`. Each process that it forks answers lines
    with lines on a connection of its own, and has nothing else of the server's. The
    server ends with this object, or when nobody has asked for a while.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Remember what Python runs, see `ConfinedProcess`; it starts when asked."""
        self._command = list(command)
        self._lock = threading.Lock()
        self._owner = 0
        self._control: socket.socket | None = None
        self._end: Callable[[], Any] = _nothing

    def forked(self) -> ForkedProcess:
        """Return a new process of the server, which is started where it is not there.

        Raises:
            OSError: The system starts no more.
        """
        one, other = socket.socketpair()
        with other, self._lock:
            for _ in range(2):
                if self._control is None or self._owner != os.getpid():
                    self._start()
                assert self._control is not None
                try:
                    socket.send_fds(self._control, [b"."], [other.fileno()])
                    break
                except OSError:  # it has ended since it was asked last
                    self._end()
                    self._control = None
        return ForkedProcess(one, self.end)

    def end(self) -> None:
        """End it, and all that it has forked."""
        with self._lock:
            self._end()  # of a fork it closes the connection alone
            self._control = None

    def _start(self) -> None:
        one, other = socket.socketpair()
        with other:
            process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", *self._command],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        self._control, self._owner = one, os.getpid()
        self._end = weakref.finalize(self, _end_server, process, one, os.getpid())


class ForkedProcess:
    """A process of a `ForkServer`, as `ConfinedProcess` is one."""

    def __init__(self, connection: socket.socket, kill: Callable[[], None]) -> None:
        self._connection = connection
        self._kill = kill
        self._lines = connection.makefile("rb")

    def ask(self, message: bytes, *, seconds: float, longest: int) -> bytes:
        """Return the line that answers a line, see `ConfinedProcess.ask`."""
        timer = threading.Timer(max(0.0, seconds), self._kill)
        timer.start()
        try:
            self._connection.sendall(message + b"\n")
            return self._lines.readline(longest)
        except OSError:
            return b""
        finally:
            timer.cancel()

    def end(self) -> None:
        """Close the connection, at which the process ends."""
        with suppress(OSError):
            self._lines.close()
        self._connection.close()


def _environment() -> dict[str, str]:
    """Return the environment of processes that are confined: what Windows needs."""
    return {k: os.environ[k] for k in ("SYSTEMROOT",) if k in os.environ}


def _nothing() -> None:
    pass


def _end_server(
    process: subprocess.Popen[bytes], control: socket.socket, owner: int
) -> None:
    control.close()
    if os.getpid() == owner:
        process.kill()
        process.wait()


def serve_forks(
    answer: Callable[[], None], *, prepare: Callable[[], None], idle: float
) -> None:
    """Fork a process for each request, which runs `answer`, and never return.

    In it, standard input and output are the connection to the one who asked. It is
    forked before the request comes, and runs `prepare`: what that touches is its own
    when it answers, and need not be copied then.

    idle: After how many seconds without a request it ends.
    """
    for name in ("ctypes", "resource"):  # or each process would import them
        with suppress(ImportError):
            importlib.import_module(name)
    control = socket.socket(fileno=os.dup(0))
    control.settimeout(idle)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what has ended leaves no trace
    gc.freeze()  # a collection would touch all that processes share
    server = os.getpid()
    while True:
        waiting, taken = os.pipe()
        if os.fork() == 0:
            os.close(waiting)
            try:
                _end_with_parent(server)
                prepare()
                _take_request(control, taken)
                answer()
            finally:
                os._exit(1)
        os.close(taken)
        if not os.read(waiting, 1):  # it has ended without a request
            os._exit(0)
        os.close(waiting)


def _take_request(control: socket.socket, taken: int) -> None:
    """Wait for a request, and make its connection standard input and output.

    Raises:
        OSError: None came, or nobody is there any more.
    """
    message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
    if not message:
        raise OSError("nobody asks any more")
    os.write(taken, b".")
    os.close(taken)
    control.close()
    os.dup2(descriptors[0], 0)
    os.dup2(descriptors[0], 1)
    os.close(descriptors[0])


def _end_with_parent(parent: int) -> None:
    """Let the kernel end this process with the one that forked it, where it can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_END_WITH_PARENT, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # what was not sent yet is lost
                stream.close()


def confine(
    memory: int, folders: Sequence[str] = (), seconds: int = 0, reserved: int = 0
) -> bool:
    """Give up, for good, all that this process can do but compute and answer.

    Args:
        memory: How much it may have [bytes], where the system limits that.
        folders: In which it may still read files, by Landlock. A kernel without that
            lets it read what the user may read, and nothing else.
        seconds: How long it may compute, from its start; without a limit if 0.
        reserved: Addresses that it may have besides, which libraries reserve and do not
            use [bytes].

    Returns:
        Whether the kernel enforces it. Elsewhere an audit hook of Python refuses the
        events that Python reports: it contains faults and known attacks, but is not a
        sandbox.
    """
    with suppress(ImportError):  # of Windows, which has no such limits
        import resource

        for kind, most in (
            (resource.RLIMIT_AS, memory + reserved),
            (resource.RLIMIT_DATA, memory),  # what it can write to
            (resource.RLIMIT_FSIZE, 1 << 20),  # complaints
            (resource.RLIMIT_NPROC, 0),
            (resource.RLIMIT_CORE, 0),
            *([(resource.RLIMIT_CPU, seconds)] if seconds else []),
        ):
            with suppress(OSError, ValueError):  # systems differ in what they limit
                resource.setrlimit(kind, (most, most))
    if _set_filter(folders):
        return True
    if folders:  # other code than Python reads the files, which no hook of it sees
        return False
    harmless = _HARMLESS

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event not in harmless:
            what = f"{event} of {args[0]!r}" if args else event
            raise PermissionError(f"code out of a file may not do this: {what}")

    sys.addaudithook(check)
    return False


def _keep_folders(folders: Sequence[str], library: Any) -> None:
    """Let the kernel refuse to open files outside of some folders, if it can."""
    import ctypes

    rights = ctypes.c_uint64(_ALL_RIGHTS)
    rules = library.syscall(
        _CREATE_RULES, ctypes.byref(rights), ctypes.sizeof(rights), 0
    )
    if rules < 0:
        return

    class FolderRule(ctypes.Structure):
        _pack_ = 1
        _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))

    for path in folders:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = FolderRule(_READ_FILE | _READ_FOLDER, folder)
        library.syscall(_ADD_RULE, rules, _BENEATH, ctypes.byref(rule), 0)
        os.close(folder)
    library.syscall(_RESTRICT, rules, 0)
    os.close(rules)


def _opening_to_read(call: int) -> list[tuple[int, int, int, int]]:
    """Return instructions that allow to open files, but none to be written."""
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    return [
        (_JUMP_IF_EQUAL, 0, 5, call),
        (_LOAD, 0, 0, _FLAGS_AT),
        (_AND, 0, 0, writes),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _set_filter(folders: Sequence[str]) -> bool:
    """Let the kernel refuse all other system calls, and return whether it does."""
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None or sys.maxsize < 2**32:
        return False
    import ctypes

    column, architecture, seccomp = machine
    calls = {**_CALLS, **_READING} if folders else _CALLS
    allowed = [numbers[column] for numbers in calls.values()]
    allowed += _OLDER if folders and column == 0 else ()

    class FilterInstruction(ctypes.Structure):
        _fields_ = (
            ("code", ctypes.c_ushort),
            ("if_true", ctypes.c_ubyte),  # how many instructions to skip
            ("if_false", ctypes.c_ubyte),
            ("operand", ctypes.c_uint),
        )

    class FilterProgram(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("start", ctypes.c_void_p))

    count = len(allowed)
    rows = [
        # Other architectures number their calls otherwise.
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        *(_opening_to_read(_OPEN[column]) if folders else ()),
        *((_JUMP_IF_EQUAL, count - k, 0, call) for k, call in enumerate(allowed)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    table = (FilterInstruction * len(rows))(*(FilterInstruction(*row) for row in rows))
    program = FilterProgram(len(rows), ctypes.addressof(table))
    library = ctypes.CDLL(None)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    if folders:
        _keep_folders(folders, library)
    return not library.syscall(
        seccomp, _SET_FILTER, _ALL_THREADS, ctypes.byref(program)
    )
