"""A script in a confined process, which computes poses and can do nothing else.

See `confined_process.py` for what confines it; each question has a time limit, too.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from armillary.confined_process import ConfinedProcess, confine
from armillary.errors import ArmillaryError, NotCompiled, ScriptError, printable
from armillary.limits import (
    PROCESS_MEMORY,
    SCRIPT_ANSWER,
    SCRIPT_SECONDS,
    SCRIPT_START,
    Limit,
)
from armillary.scripts.component import ComponentData, JointData
from armillary.scripts.host import Host, ScriptSolution
from armillary.scripts.source import ScriptDiagnostic, prepared
from armillary.spatial.pose import Pose, pose_of_entries
from armillary.trace import Traced

__all__ = ["IsolatedHost", "main"]

# The process runs the armillary of this one, which may not be the one installed.
CODE: Final = """
import importlib.machinery, importlib.util, sys
spec = importlib.machinery.PathFinder.find_spec("armillary", sys.argv[1:])
package = sys.modules["armillary"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from armillary.scripts.isolation import main
main()
"""
COMMAND: Final = ("-c", CODE, str(Path(__file__).parents[2]))


class ScriptRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A question to the process.

    Attributes:
        file, source, component, relaxed, memory: Of the first: what it is to run.
        values: Joint values [deg or mm], of which the pose is asked.
        entries: Twelve numbers of a pose, for which solutions are asked.
    """

    file: str = ""
    source: str = ""
    component: str = ""
    relaxed: bool = False
    memory: int = PROCESS_MEMORY.most
    values: list[float] | None = None
    entries: list[float] | None = None


class Description(msgspec.Struct, kw_only=True):
    """What the process says of its script; see `Host`."""

    joints: tuple[JointData, ...]
    secondary: tuple[JointData, ...]
    configurations: tuple[tuple[str, ...], ...]
    limits: list[tuple[float | None, float | None]]
    diagnostics: list[ScriptDiagnostic]
    is_limited: bool


class Reply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the process answers: a fault, or what was asked for."""

    fault: str = ""
    description: Description | None = None
    entries: list[float | None] | None = None
    solutions: list[tuple[float, list[float]] | None] | None = None


class IsolatedHost:
    """A host in a process of its own; it answers as a `Host` does, on floats alone."""

    def __init__(
        self, file: str, source: str, component: str, *, relaxed: bool
    ) -> None:
        """Start the process and run the script there.

        Raises:
            ScriptError: The script is wrong, or exceeds a limit.
        """
        self._file = file
        self._process = ConfinedProcess(COMMAND)
        first = ScriptRequest(
            file=file, source=source, component=component, relaxed=relaxed
        )
        description = self._ask(first, SCRIPT_START).description
        assert description is not None
        self.joints, self.secondary = description.joints, description.secondary
        self.configurations = description.configurations
        self.diagnostics = description.diagnostics
        self.is_limited = description.is_limited
        ends = float("-inf"), float("inf")
        self.limits = [
            (ends[0] if low is None else low, ends[1] if high is None else high)
            for low, high in description.limits
        ]

    def forward(self, values: Sequence[Any]) -> Pose:
        """Return the pose of the flange; see `Host.forward`.

        Raises:
            ScriptError: The script fails, or exceeds a limit.
            NotCompiled: A value is traced.
        """
        _refuse_traced(values)
        e = self._ask(ScriptRequest(values=[float(x) for x in values])).entries
        assert e is not None
        return pose_of_entries([float("nan") if x is None else x for x in e])

    def solutions(self, pose: Pose) -> list[ScriptSolution | None]:
        """Return what the script gives for each configuration; see `Host.solutions`.

        Raises:
            ScriptError: The script fails, or exceeds a limit.
            NotCompiled: The pose is traced.
        """
        _refuse_traced(pose.entries)
        asked = ScriptRequest(entries=[float(x) for x in pose.entries])
        solutions = self._ask(asked).solutions
        assert solutions is not None
        return [each and ScriptSolution(each[0], tuple(each[1])) for each in solutions]

    def _ask(self, request: ScriptRequest, seconds: Limit = SCRIPT_SECONDS) -> Reply:
        message = msgspec.json.encode(request)
        line = self._process.ask(
            message, seconds=seconds.most, longest=SCRIPT_ANSWER.most
        )
        try:
            reply = msgspec.json.decode(line, type=Reply)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._process.end()
            raise ScriptError(
                f"{self._file}: the script took more than {seconds.most} s or "
                f"{PROCESS_MEMORY.most >> 20} MiB, or ended its process; it was "
                "stopped."
            ) from error
        if reply.fault:
            raise ScriptError(printable(reply.fault))
        return reply


def _refuse_traced(values: Sequence[Any]) -> None:
    if any(isinstance(each, Traced) for each in values):
        raise NotCompiled("The script runs in a process of its own, as Python.")


# The process itself, which runs one script and answers questions about it.


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
        solutions = host.solutions(pose)
        return Reply(
            solutions=[
                each and (float(each.warning), [float(x) for x in each.values])
                for each in solutions
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
