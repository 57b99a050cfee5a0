"""The kernels of a step: scalar code for one row, vectors for batches of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from armillary.control.approach import Approach
from armillary.control.step import StepLayout
from armillary.control.step_pipeline import SETTINGS, step_pipeline
from armillary.control.task_parts import TaskStages
from armillary.control.torque_limits import TorqueLimits
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State
from armillary.model.fields import kept

__all__ = ["StepKernels"]


@dataclass(frozen=True, eq=False)
class StepKernels:
    """The code of a step with room for some obstacles.

    One row takes half the time in scalar code that it takes in vectors of which only
    one lane counts; either is compiled when it is first called.

    Attributes:
        twists: Of the moving links.
        stages: Those of the tasks.
        approach: The pairs that are kept apart.
        settings: The records of the table of settings.
        state: Whose attachments and moved bases count.
        conflict: What happens where constraints do not allow the rates that tasks
            request.
        torques: The limits of torques, if they count.
    """

    twists: MovingTwists
    stages: Sequence[TaskStages]
    approach: Approach
    settings: Mapping[str, Any]
    state: State
    conflict: str
    torques: TorqueLimits | None = None

    @property
    def layout(self) -> StepLayout:
        """Return what the numbers of an answer are of."""
        return StepLayout(self.twists.moving.cell, self.approach, self.twists.joints)

    def with_obstacles(self, count: int) -> Kernel:
        """Return the kernel for so many obstacles, at most `approach.slots`."""
        single = self._kernel(count, 1)
        batches: list[Kernel] = []

        def compute(
            *inputs: Any, out: Any = None, threads: Any = None
        ) -> npt.NDArray[Any]:
            row = single.compact_row(inputs)
            if row is not None:
                return single(*row) if out is None else single(*row, out=out)
            if not batches:
                batches.append(self._kernel(count, None))
            return batches[0](*inputs, out=out, threads=threads)

        return single.with_batches(compute)

    def _kernel(self, count: int, lanes: int | None) -> Kernel:
        code = self._code(lanes)
        native = code.native
        tables, callees = self.approach.records(native.dtype, native.lanes, count)
        tables |= self.twists.records(self.state)
        tables[SETTINGS] = self.settings
        if self.torques is not None:
            tables |= self.torques.records(self.approach.pair_room)
        for found in self.stages:
            tables |= found.records(self.state)
        return code(tables, callees)

    def _code(self, lanes: int | None) -> CompiledPipeline:
        return kept(
            self, ("code", lanes), lambda: compile_pipeline(self._pipeline, lanes=lanes)
        )

    @property
    def _pipeline(self) -> Pipeline:
        return kept(
            self,
            "pipeline",
            lambda: step_pipeline(
                self.twists,
                self.stages,
                self.approach,
                self.conflict,
                has_torques=self.torques is not None,
            ),
        )
