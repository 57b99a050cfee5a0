"""The executor of a Dask cluster that exists."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from armillary.errors import SweepError, printable, quote

__all__ = ["executor_at"]

CONNECTING: Final = 5.0  # [s]
CLOSING: Final = 0.5  # [s]


@contextmanager
def executor_at(address: str | None) -> Generator[Executor | None]:
    """Give the executor of the cluster of a scheduler; None without an address.

    Raises:
        SweepError: Dask is not installed, or no scheduler answers.
    """
    if address is None:
        yield None
        return
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise SweepError(
            "--dask needs Dask: pip install 'armillary[sweep]'."
        ) from error
    # What it logs when a scheduler is lost, our errors say.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        asyncio.run(_check_answer(distributed, address))
        client = distributed.Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise SweepError(
            f"No Dask scheduler answers at {quote(address)}: {printable(str(error))}. "
            "Start one with 'dask scheduler' and workers with 'dask worker ADDRESS', "
            "or name another address, tcp://host:8786."
        ) from error
    try:
        if not client.scheduler_info()["workers"]:
            print(
                f"warning: the scheduler at {printable(address)} has no workers yet; "
                f"waiting for 'dask worker {printable(address)}'",
                file=sys.stderr,
            )
        yield client.get_executor()
    finally:
        client.close(timeout=CLOSING)


async def _check_answer(distributed: Any, address: str) -> None:
    """Raise OSError if nobody answers; a client would take long to give up."""
    comm = await distributed.comm.connect(address, timeout=CONNECTING)
    await comm.close()
