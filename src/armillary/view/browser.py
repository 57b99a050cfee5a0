"""The browser of this machine, without a window, for pictures."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from armillary.errors import ViewError, printable

__all__ = ["Browser", "browser_flags", "browser_path", "hidden_browser"]

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS: Final = (
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
)
"""Draw with the processor, and ask nothing of the network."""

PATIENCE: Final = 10.0
"""How long the browser may take to end [s]."""


class Browser:
    """A browser that has one page open."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        """Take a process that writes to a log."""
        self._process = process
        self._log = log

    @property
    def is_running(self) -> bool:
        """Return whether it has not ended."""
        return self._process.poll() is None

    def last_words(self) -> str:
        """Return the last line that it wrote, as a sentence, or nothing."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f" It wrote: {printable(said[-1])}" if said else ""


@contextmanager
def hidden_browser(address: str, size: tuple[int, int]) -> Generator[Browser]:
    """Open a page without a window until the block ends.

    Args:
        address: Of the page.
        size: Width and height of the page [pixels].

    Raises:
        ViewError: No browser is installed.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        (Path(folder) / "log").open("w+b") as log,
    ):
        process = subprocess.Popen(
            [
                browser_path(),
                "--headless",
                *browser_flags(),
                f"--user-data-dir={folder}",
                f"--window-size={size[0]},{size[1] + 200}",  # and its frame
                address,
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            yield Browser(process, log)
        finally:
            _end(process)


def browser_path() -> str:
    """Return the path of the first browser that is installed.

    Raises:
        ViewError: There is none.
    """
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    raise ViewError(
        f"A picture needs a browser, and none of these is installed: "
        f"{', '.join(NAMES)}. On Debian and Ubuntu: apt install chromium."
    )


def browser_flags() -> tuple[str, ...]:
    """Return the options that let it draw anywhere; root has no sandbox."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return (*FLAGS, "--no-sandbox") if is_root else FLAGS


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
