"""The file that a page or a picture is written to."""

from __future__ import annotations

import os

from armillary.errors import ViewError, quote
from armillary.replaced_file import replacing

__all__ = ["check_target", "write_result"]


def check_target(path: str | os.PathLike[str], example: str) -> None:
    """Refuse a path that no file can have, before the work begins.

    Args:
        path: The path of the file to write.
        example: The name of such a file.

    Raises:
        ViewError: The folder does not exist, or the path is not that of a plain file.
    """
    name = os.fspath(path)
    folder = os.path.dirname(name) or "."
    if not os.path.isdir(folder):
        raise ViewError(
            f"There is no folder {quote(folder)} to write {quote(name)} to."
        )
    if not os.path.basename(name) or os.path.isdir(name):
        raise ViewError(f"{quote(name)} is a folder; name a file, such as {example}.")
    if os.path.exists(name) and not os.path.isfile(name):
        raise ViewError(f"{quote(name)} is not a plain file; name one, as {example}.")


def write_result(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file; of a symbolic link the target is replaced.

    Raises:
        ViewError: The file cannot be written.
    """
    name = os.fspath(path)
    try:
        with replacing(os.path.realpath(name)) as file:
            file.write(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ViewError(f"{quote(name)} cannot be written: {reason}.") from error
