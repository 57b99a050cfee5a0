"""Writing a file as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import Final

from armillary.formats.format import fault

__all__ = ["write_bytes"]

_NEW_FILE: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a plain file by these bytes, at once: readers see the old or the new.

    A symbolic link stays, and what it leads to is replaced. The rights of a file that
    is replaced are kept.

    Raises FormatError where the folder does not exist or the system refuses.
    """
    name = os.fspath(path)
    try:
        target = os.path.realpath(name)
        folder = os.path.dirname(target)
        if os.path.exists(target) and not os.path.isfile(target):
            raise fault(
                name, "not-a-file", "this is no plain file", hint="Name a file."
            )
        if not os.path.isdir(folder):
            raise fault(
                name,
                "no-such-folder",
                f"there is no folder {folder}",
                hint="Make it first.",
            )
        _replace(target, data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise fault(
            name, "unwritable-file", f"the file cannot be written: {reason}"
        ) from error


def _replace(target: str, data: bytes) -> None:
    """Write beside the target, then rename, which is atomic."""
    draft = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.part")
    descriptor = os.open(draft, _NEW_FILE, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.chmod(draft, os.stat(target).st_mode & 0o7777)
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
