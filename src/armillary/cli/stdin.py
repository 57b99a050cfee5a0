"""`-` in place of a file: what arrives on stdin."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from armillary.errors import ShapeError

# The options that name a file to read.
FILES: Final = ("file", "srdf", "state", "q_file", "poses", "targets")


@contextmanager
def stdin_as_file(options: argparse.Namespace) -> Generator[None, None, None]:
    """Let an option that is `-` name a file with the content of stdin.

    The file is deleted when the block ends. Other files to which it refers are looked
    for beside it, so only in the folders that options name.

    Raises:
        ShapeError: Two options are `-`.
    """
    found = [name for name in FILES if getattr(options, name, None) == "-"]
    if not found:
        yield
        return
    if len(found) > 1:
        names = " and ".join(name.replace("_", "-") for name in found)
        raise ShapeError(f"Only one of {names} can be '-', which is stdin.")
    with TemporaryDirectory(prefix="armillary-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        setattr(options, found[0], str(path))
        yield
