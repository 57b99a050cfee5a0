"""Run one script and answer questions about it; `isolation.py` starts this."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from armillary.errors import ArmillaryError
from armillary.scripts.component import ComponentData
from armillary.scripts.host import Host
from armillary.scripts.isolation import Description, Reply, Request
from armillary.scripts.source import prepared
from armillary.spatial.pose import Pose

HARMLESS: Final = frozenset(
    ("compile", "exec", "object.__getattr__", "sys._getframe", "builtins.id")
)
LONGEST_FAULT: Final = 10_000
WARM_UP: Final = """
from vcPythonKinematics import *
from math import *
import vcMatrix, vcVector
def OnGetJointCount(): return 1
def OnForward(kin):
  m = vcMatrix.new()
  m.rotateRelZ(kin.JointValues[0])
  m.WPR = m.WPR
  m.setEuler(m.getEuler())
  kin.Target = m
  return True
def OnInverse(kin):
  kin.JointValues = [0.0]
  return True
"""


def main() -> None:
    """Answer requests on the standard input, one a line, until it ends."""
    replies = os.fdopen(os.dup(1), "wb")
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    lines = sys.stdin.buffer
    first = msgspec.json.decode(lines.readline(), type=Request)
    data = msgspec.json.decode(first.component, type=ComponentData)
    one = msgspec.json.decode(b'{"joints": [{"name": "J1"}]}', type=ComponentData)
    warm = Host(prepared(WARM_UP, "warm-up"), one)  # what it imports is known then
    warm.solutions(warm.forward([1.0]))
    _limit(first.memory)
    sys.addaudithook(_guard())
    host: Host | None = None

    def answer(request: Request) -> Reply:
        nonlocal host
        if host is None:
            host = Host(
                prepared(first.source, first.file),
                data,
                relaxed=first.relaxed,
                is_isolated=True,
            )
            return Reply(description=_description(host))
        if request.values is not None:
            entries = host.forward(request.values).entries
            return Reply(entries=[_finite(x) for x in entries])
        e = request.entries or []
        pose = Pose.from_rotation_position([e[0:3], e[3:6], e[6:9]], e[9:12])
        found = host.solutions(pose)
        return Reply(
            solutions=[
                each and (float(each.warning), [float(x) for x in each.values])
                for each in found
            ]
        )

    request = first
    while True:
        try:
            reply = answer(request)
        except (ArmillaryError, MemoryError, KeyboardInterrupt) as error:
            fault = str(error) or "the script took too much memory, or was interrupted"
            reply = Reply(fault=fault.encode(errors="replace").decode()[:LONGEST_FAULT])
        replies.write(msgspec.json.encode(reply) + b"\n")
        replies.flush()
        line = lines.readline()
        if not line:
            break
        request = msgspec.json.decode(line, type=Request)
    os._exit(0)  # nothing more is wanted, and the guard allows nothing


def _description(host: Host) -> Description:
    return Description(
        joints=host.joints,
        secondary=host.secondary,
        configurations=host.configurations,
        limits=[(_finite(low), _finite(high)) for low, high in host.limits],
        diagnostics=host.diagnostics,
        is_limited=host.is_limited,
    )


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def _guard() -> Callable[[str, tuple[Any, ...]], None]:
    """Return a hook that refuses what a kinematics script has no need of."""
    harmless = HARMLESS

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event not in harmless:
            what = f"{event} of {args[0]!r}" if args else event
            raise PermissionError(f"an isolated script may not do this: {what}")

    return check


def _limit(memory: int) -> None:
    """Limit this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows: the time limit of each question is left
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
