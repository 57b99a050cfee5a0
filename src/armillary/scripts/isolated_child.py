"""Run one script and answer questions about it; `isolation.py` starts this."""

from __future__ import annotations

import math
import os
import sys
from typing import Final

import msgspec

from armillary.confined_process import confine
from armillary.errors import ArmillaryError
from armillary.scripts.component import ComponentData
from armillary.scripts.host import Host
from armillary.scripts.isolation import Description, Reply, ScriptRequest
from armillary.scripts.source import prepared
from armillary.spatial.pose import Pose

LONGEST_FAULT: Final = 10_000
NOT_CONFINED: Final = (
    "This system offers no filter of system calls that confines a process, as Linux "
    "does on x86-64 and arm64, so scripts do not run isolated here. Read the script "
    "with 'armillary trust show FILE', and approve it if you trust it."
)
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
    first = msgspec.json.decode(lines.readline(), type=ScriptRequest)
    data = msgspec.json.decode(first.component, type=ComponentData)
    one = msgspec.json.decode(b'{"joints": [{"name": "J1"}]}', type=ComponentData)
    warm = Host(prepared(WARM_UP, "warm-up"), one)  # what it imports is known then
    warm.solutions(warm.forward([1.0]))
    is_confined = confine(first.memory)
    host: Host | None = None

    def answer(request: ScriptRequest) -> Reply:
        nonlocal host
        if not is_confined:
            return Reply(fault=NOT_CONFINED)
        if host is None:
            host = Host(
                prepared(first.source, first.file),
                data,
                relaxed=first.relaxed,
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
        request = msgspec.json.decode(line, type=ScriptRequest)
    os._exit(0)  # what else Python does at its end is not allowed


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
