"""A script in a confined process, which computes poses and can do nothing else.

See `confined_process.py` for what confines it; each question has a time limit, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from armillary.confined_process import ConfinedProcess
from armillary.errors import NotCompiled, ScriptError, printable
from armillary.limits import (
    PROCESS_MEMORY,
    SCRIPT_ANSWER,
    SCRIPT_SECONDS,
    SCRIPT_START,
    Limit,
)
from armillary.scripts.component import JointData
from armillary.scripts.host import Solution
from armillary.scripts.source import Diagnostic
from armillary.spatial.pose import Pose, pose_of_entries
from armillary.trace import Traced

__all__ = ["Description", "IsolatedHost", "Reply", "ScriptRequest"]

# The process runs the armillary of this one, which may not be the one installed.
CODE: Final = """
import importlib.machinery, importlib.util, sys
spec = importlib.machinery.PathFinder.find_spec("armillary", sys.argv[1:])
package = sys.modules["armillary"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from armillary.scripts.isolated_child import main
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
    diagnostics: list[Diagnostic]
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
        found = self._ask(first, SCRIPT_START).description
        assert found is not None
        self.joints, self.secondary = found.joints, found.secondary
        self.configurations = found.configurations
        self.diagnostics = found.diagnostics
        self.is_limited = found.is_limited
        ends = float("-inf"), float("inf")
        self.limits = [
            (ends[0] if low is None else low, ends[1] if high is None else high)
            for low, high in found.limits
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

    def solutions(self, pose: Pose) -> list[Solution | None]:
        """Return what the script gives for each configuration; see `Host.solutions`.

        Raises:
            ScriptError: The script fails, or exceeds a limit.
            NotCompiled: The pose is traced.
        """
        _refuse_traced(pose.entries)
        asked = ScriptRequest(entries=[float(x) for x in pose.entries])
        found = self._ask(asked).solutions
        assert found is not None
        return [each and Solution(each[0], tuple(each[1])) for each in found]

    def _ask(self, request: ScriptRequest, seconds: Limit = SCRIPT_SECONDS) -> Reply:
        message = msgspec.json.encode(request)
        line = self._process.ask(
            message, seconds=seconds.most, longest=SCRIPT_ANSWER.most
        )
        try:
            reply = msgspec.json.decode(line, type=Reply)
        except msgspec.MsgspecError as error:
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
