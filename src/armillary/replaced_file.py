"""Replace a file at once: readers see the old one or the new."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["replacing"]

_NEW_FILE: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], *, draft: str = ".part-", mode: int = 0o666
) -> Generator[BinaryIO, None, None]:
    """Open a new file that replaces another at once when the block ends.

    The permissions of a replaced file are kept; a symbolic link is replaced itself.
    After an error in the block nothing has changed. Devices such as `/dev/null` are
    never replaced: they belong to the system.

    Args:
        path: The file to replace.
        draft: How the name of the new file begins until then, in the same folder.
        mode: Permissions of a file that replaces none, less those of the umask.

    Raises:
        OSError: The system refuses, or the path is that of a device.
    """
    if _is_device(path):
        raise OSError(errno.EINVAL, "this is a device", os.fspath(path))
    name = Path(path).parent / (draft + os.urandom(8).hex())
    try:  # before the file is made: Ctrl-C may come right after
        with os.fdopen(os.open(name, _NEW_FILE, mode), "wb") as file:
            yield file
        with contextlib.suppress(FileNotFoundError):
            os.chmod(name, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _is_device(path: str | os.PathLike[str]) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
