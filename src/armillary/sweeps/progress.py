"""The progress bar of a sweep, on terminals."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["showing"]


@contextmanager
def showing(total: int, wanted: bool) -> Generator[Callable[[int, int], None]]:
    """Give a function that shows that more rows are done, and how many chunks failed.

    It shows nothing if stderr is not a terminal, or tqdm is not installed.
    """
    if not wanted or find_spec("tqdm") is None:
        yield lambda rows, failed: None
        return
    tqdm: Any = import_module("tqdm").tqdm
    with tqdm(total=total, unit=" rows", unit_scale=True, disable=None) as bar:

        def show(rows: int, failed: int) -> None:
            bar.update(rows)
            if failed:
                bar.set_postfix_str(f"{failed} chunks failed")

        yield show
