"""The questions of a sweep: callables from rows of samples to arrays of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ArmillaryError, SweepError, quote
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reason import Reason
from armillary.ik.solution import Answers, Solution
from armillary.kernel import Kernel
from armillary.sweeps.fields import (
    NamedJoints,
    ResultAxis,
    ResultField,
    Results,
    full_name,
    rows,
)
from armillary.sweeps.samples import Samples

__all__ = ["Question", "RowError", "answers", "fields_of", "questions_of"]

Array = npt.NDArray[Any]

FIRST_BLOCK: Final = 512  # rows
LAST_BLOCK: Final = 1 << 15  # rows; their numbers stay in the caches
BLOCK_TIME: Final = 0.15  # [s] from which blocks do not grow: all end soon after a stop
# Of solvers, whose answer may depend on how many other targets a search misses.
CLOSED_BLOCK: Final = 1 << 15  # rows
SEARCH_BLOCK: Final = 256  # rows; of targets that are missed, within a second
MOST_BYTES: Final = 8  # of a number; Zarr has no longer ones
# What a question may raise on a row; Ctrl-C is of the sweep.
FAILURES: Final = (Exception, SystemExit)


class RowError(Exception):
    """A question failed: at which row, None where no row fails by itself, and why."""


@dataclass(frozen=True)
class Question:
    """A question and the names of its results.

    Attributes:
        name: The name of the result, if the answer has no names.
        prefix: What names of results begin with; empty for nothing.
        ask: The callable, which takes an array of rows.
        is_native: Whether it is a kernel, solver or check, which releases the
            interpreter's lock.
    """

    name: str
    prefix: str
    ask: Any
    is_native: bool

    @property
    def core(self) -> Any:
        """Return what computes: a function, or whose method it is."""
        return _core(self.ask)

    def __call__(self, rows: Array) -> Results:
        """Return the results for some rows, by their full names.

        Raises:
            SweepError: The question did not return arrays with a row for each row.
        """
        # A copy: functions may change their rows in place.
        value = _call(self.ask, rows if self.is_native else rows.copy())
        results = {
            full_name(self.prefix, field) or self.name: _array(value)
            for field, value in _fields(self.ask, value).items()
        }
        if not results:
            raise SweepError(f"The question {quote(self.name)} returned no arrays.")
        for name, array in results.items():
            if array.dtype.kind not in "fiub" or array.dtype.itemsize > MOST_BYTES:
                raise SweepError(
                    f"The question returned {quote(name)} as {array.dtype}; results "
                    "must be arrays of real numbers, at most float64, or truths."
                )
            if array.shape[:1] != (len(rows),) or 0 in array.shape:
                raise SweepError(
                    f"The question returned {quote(name)} of shape {array.shape} for "
                    f"{len(rows)} rows of samples; its first dimension must be "
                    f"{len(rows)}, and none 0. A question takes an array of rows, "
                    "(n, ...)."
                )
        return results


def questions_of(given: Any) -> list[Question]:
    """Return the questions of a mapping of names, or the only one.

    Raises:
        SweepError: There is none, or it cannot be called.
    """
    if not isinstance(given, Mapping):
        return [_question(_name_of(given), "", given)]
    if not given:
        raise SweepError("The mapping of questions is empty.")
    named = _named(cast("Mapping[Any, Any]", given))
    return [_question(name, name, ask) for name, ask in named.items()]


def _named(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping whose names can be those of results.

    Raises:
        SweepError: A name cannot.
    """
    for name in mapping:
        if not (isinstance(name, str) and name.isidentifier()):
            raise SweepError(
                f"{quote(name)} cannot name a result: use letters, digits and '_'."
            )
    return dict(mapping)


def _question(name: str, prefix: str, ask: Any) -> Question:
    if not callable(ask):
        raise SweepError(
            f"A {type(ask).__name__} is not a question. Use a kernel such as "
            "cell.fk(frame), a solver cell.ik(frame), a check cell.collision(), a "
            "function of an array of rows, or a mapping of names to them."
        )
    core = _core(ask)
    if _searches_for_all(ask, core):
        raise SweepError(
            "A search finds another number of answers for each target, so its all() "
            "has no array that a sweep could store. Ask the solver itself, or all() of "
            "a solver with a closed form; or pass a function that returns equally many "
            "answers for each row."
        )
    native = isinstance(core, Kernel | InverseKinematics | CollisionCheck)
    return Question(name, prefix, ask, native or core is rows)


def _searches_for_all(ask: Any, core: Any) -> bool:
    """Return whether a question is `all` of a solver without branches to count."""
    is_all = getattr(_function(ask), "__name__", "") == "all"
    if not (is_all and isinstance(core, InverseKinematics)):
        return False
    keywords: Mapping[str, Any] = getattr(ask, "keywords", {})
    return core.closed is None or keywords.get("method") == "numeric"


def _function(ask: Any) -> Any:
    """Return what is called, below partial functions."""
    while isinstance(ask, partial):
        ask = cast("Any", ask).func
    return ask


def _core(ask: Any) -> Any:
    """Return what computes: a function, or whose method it is."""
    function = _function(ask)
    method: Any = function
    return method.__self__ if isinstance(function, MethodType) else method


def _name_of(ask: Any) -> str:
    core = _core(ask)
    if isinstance(core, InverseKinematics):
        return ""
    if isinstance(core, Kernel):
        names = _kernel_fields(core)
        return names[0] if len(names) == 1 else ""
    if isinstance(_function(ask), CollisionCheck):
        return "touching"
    function = _function(ask)
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "result"


def _kernel_fields(kernel: Kernel) -> list[str]:
    return [port.name for port in kernel.computation.outputs]


def _call(ask: Any, rows: Array) -> Any:
    """Call a question; one of ours on the thread that calls."""
    core = _core(ask)
    if isinstance(core, Kernel):
        bound = getattr(ask, "args", ())  # of a partial function
        ports = core.computation.inputs[len(bound) :]
        return ask(*_split(rows, ports), threads=1)
    if isinstance(_function(ask), InverseKinematics):
        return ask(rows, threads=1)
    return ask(rows)


def _split(rows: Array, ports: Sequence[Any]) -> list[Array]:
    """Return the inputs of a kernel, which rows hold one after another."""
    if len(ports) < 2:
        return [rows]
    if rows.ndim != 2 or rows.shape[1] != sum(port.size for port in ports):
        return [rows]  # the kernel says what it takes
    # A row holds the inputs one after another, each flattened: q, then qd, then qdd.
    ends = np.cumsum([port.size for port in ports])[:-1]
    parts = np.split(rows, ends.tolist(), axis=1)
    return [
        part.reshape(len(rows), *port.shape)
        for part, port in zip(parts, ports, strict=True)
    ]


def _fields(ask: Any, value: Any) -> dict[str, Any]:
    """Return the arrays of an answer by name; a single one has none."""
    if isinstance(value, Solution | Answers):
        names = "q", "success", "residual", "reason"
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return _named(cast("Mapping[Any, Any]", value))
    if isinstance(value, tuple):
        arrays = cast("tuple[Any, ...]", value)
        core = _core(ask)
        count = map(str, range(len(arrays)))
        named = _kernel_fields(core) if isinstance(core, Kernel) else count
        return dict(zip(named, arrays, strict=True))
    return {"": value}


def _array(value: Any) -> Array:
    """Return an array; of a masked one the data alone would be wrong.

    Raises:
        SweepError: It is masked.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise SweepError("A question returned a masked array: use its filled(np.nan).")
    return np.asarray(value)


def fields_of(
    questions: Sequence[Question], samples: Samples
) -> dict[str, ResultField]:
    """Return the arrays that questions answer with, as the first row shows.

    Raises:
        ArmillaryError: The row does not fit, or a question fails.
    """
    row, joints = samples.rows(0, 1), samples.named_joints
    fields: dict[str, ResultField] = {}
    for question in questions:
        for name, array in _asked(question, row).items():
            if name in fields:
                raise SweepError(
                    f"Two results are called {quote(name)}: give the questions names, "
                    "as in {'pose': fk, 'ik': solver}."
                )
            field = ResultField(array.shape[1:], array.dtype, "")
            fields[name] = _labelled(field, question, name, joints)
    return fields


def _labelled(
    field: ResultField, question: Question, name: str, joints: NamedJoints
) -> ResultField:
    core = question.core
    output = name.removeprefix(question.prefix).removeprefix("_") or name
    meaning = meaning_of(core, _function(question.ask), output, field)
    if question.ask is rows:
        if not joints.names:
            return field._replace(units="as samples")
        meaning = POSITIONS
    if meaning is None:
        return field._replace(units="SI" if question.is_native else "unknown")
    return labelled(field, meaning, core, joints)


def _asked(question: Question, row: Array) -> Results:
    try:
        return question(row)
    except ArmillaryError:
        raise
    except FAILURES as error:
        raise SweepError(
            f"The question {quote(question.name)} raised {_shown(error)} at row 0."
        ) from error


def answers(
    questions: Sequence[Question],
    make: Callable[[int, int], Array],
    start: int,
    stop: int,
    *,
    check: bool,
    is_stopped: Callable[[], bool],
) -> Iterator[tuple[int, Array, Results]]:
    """Yield a block of rows after another: its first row, samples and results.

    Native questions are asked in blocks, so that the numbers stay in caches and a stop
    is quick: kernels and checks in blocks that grow with their speed, solvers in
    constant ones. A function is asked for all rows from `start` to `stop` at once, or
    beside a solver in the blocks of that.

    Raises:
        RowError: A question failed, or a row of samples is not finite.
    """
    constant = [each for q in questions if (each := _constant_block(q, stop - start))]
    size = min(constant, default=FIRST_BLOCK)
    while start < stop and not is_stopped():
        began = time.monotonic()
        end = min(stop, start + size)
        block = make(start, end)
        if check:
            _check_finite(block, start)
        results: Results = {}
        for question in questions:
            results |= _or_row(question, block, start)
        yield start, block, results
        start = end
        # Blocks grow while they are quick, so that Python costs little, and an
        # interruption is still noticed soon.
        if not constant and time.monotonic() - began < BLOCK_TIME:
            size = min(2 * size, LAST_BLOCK)


def _constant_block(question: Question, rows: int) -> int:
    """Return how many rows a question is always asked for at once; 0 for any number."""
    core = question.core
    if not question.is_native:
        return rows
    if isinstance(core, InverseKinematics):
        return CLOSED_BLOCK if core.closed is not None else SEARCH_BLOCK
    return 0


def _check_finite(block: Array, start: int) -> None:
    if block.dtype.kind != "f" or np.isfinite(block).all():
        return
    bad = ~np.isfinite(block.reshape(len(block), -1)).all(axis=1)
    if bad.any():
        raise RowError(start + int(bad.argmax()), "the samples are NaN or infinite")


def _or_row(question: Question, block: Array, start: int) -> Results:
    try:
        return question(block)
    except FAILURES as error:
        row, cause = _failing(question, block, error)
        text = f"the question {quote(question.name)} raised {_shown(cause)}"
        raise RowError(None if row is None else start + row, text) from error


def _failing(
    question: Question, block: Array, error: BaseException
) -> tuple[int | None, BaseException]:
    """Return the first row that fails by itself, found by halving, and its error."""
    first, last = 0, len(block)
    # A function may fail only for some rows together; then no half fails, and None says
    # that no row does by itself.
    while last - first > 1:
        middle = (first + last) // 2
        if (cause := _error_of(question, block[first:middle])) is None:
            first = middle
        else:
            last, error = middle, cause
    cause = _error_of(question, block[first:last])
    return (None, error) if cause is None else (first, cause)


def _error_of(question: Question, block: Array) -> BaseException | None:
    try:
        question(block)
    except FAILURES as error:
        return error
    return None


def _shown(error: BaseException) -> str:
    text = str(error).removesuffix(".")  # which ends another sentence
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# meanings


class Meaning(NamedTuple):
    """What a result is.

    Attributes:
        units: The units of its numbers.
        axes: The axes of its last dimensions.
        of_joint: Where each number belongs to a joint, its unit by the unit of the
            position of the joint.
    """

    units: str
    axes: tuple[ResultAxis, ...] = ()
    of_joint: dict[str, str] | None = None


JOINT: Final = ResultAxis("joint")
TWIST: Final = ResultAxis("twist", ("vx", "vy", "vz", "wx", "wy", "wz"))
MATRIX: Final = (
    ResultAxis("pose_row", ("x", "y", "z", "1")),
    ResultAxis("pose_column", ("x_axis", "y_axis", "z_axis", "origin")),
)
QUATERNION: Final = ResultAxis("pose_part", ("qw", "qx", "qy", "qz", "x", "y", "z"))
DUAL: Final = ResultAxis("pose_part", ("rw", "rx", "ry", "rz", "dw", "dx", "dy", "dz"))
POSE_UNITS: Final = "m; rotations have no unit"

POSITIONS: Final = Meaning(
    "m or rad", (JOINT,), {"m": "m", "rad": "rad", "": "unknown"}
)
"""Of joint positions."""

OF_SOLVERS: Final = {
    "q": POSITIONS,
    "success": Meaning(""),
    "residual": Meaning(
        "m, rad", (ResultAxis("residual_part", ("distance", "angle")),)
    ),
    "reason": Meaning(""),
}
OF_CHECKS: Final = {
    "": Meaning(""),
    "clearance": Meaning("m"),
    "distances": Meaning("m", (ResultAxis("pair"),)),
    "gradients": Meaning("m per unit of q", (ResultAxis("pair"), JOINT)),
}
# By the name of the question, or by the name of an output that several questions have.
OF_KERNELS: Final = {
    "jacobian": Meaning("m/s, rad/s; per unit of joint rates", (TWIST, JOINT)),
    "velocity": Meaning("m/s, rad/s", (TWIST,)),
    "acceleration": Meaning("m/s^2, rad/s^2", (TWIST,)),
    "bias_acceleration": Meaning("m/s^2, rad/s^2", (TWIST,)),
    "pose_error": Meaning("m, rad", (TWIST,)),
    "mass_matrix": Meaning("kg m^2, kg m or kg", (ResultAxis("force_of_joint"), JOINT)),
    "torque": Meaning("N m or N", (JOINT,), {"m": "N", "rad": "N m"}),
    "qdd": Meaning("rad/s^2 or m/s^2", (JOINT,), {"m": "m/s^2", "rad": "rad/s^2"}),
}


def meaning_of(
    core: Any, function: Any, name: str, field: ResultField
) -> Meaning | None:
    """Return what a result of a solver, check or kernel is; None if that is unknown.

    Args:
        core: What computes.
        function: What is called of it.
        name: The name of the result among those of the question.
        field: Its shape and type.
    """
    if isinstance(core, InverseKinematics):
        return OF_SOLVERS.get(name)
    if isinstance(core, CollisionCheck):
        is_method = isinstance(function, MethodType)
        return OF_CHECKS.get(function.__name__ if is_method else "")
    if not isinstance(core, Kernel):
        return None
    question = core.computation.name.partition(" ")[0]
    if question == "fk":
        return Meaning(POSE_UNITS, _pose_axes(field.shape))
    return OF_KERNELS.get(question) or OF_KERNELS.get(name)


def _pose_axes(shape: tuple[int, ...]) -> tuple[ResultAxis, ...]:
    if shape[-2:] == (4, 4):
        return MATRIX
    return (QUATERNION if shape[-1] == len(QUATERNION.names) else DUAL,)


def labelled(
    field: ResultField, meaning: Meaning, core: Any, joints: NamedJoints
) -> ResultField:
    """Return a field with its units, axes and attributes.

    Args:
        field: Its shape and type.
        meaning: What it is.
        core: What computes it.
        joints: The joints of the samples; solvers and checks have their own.
    """
    attributes: dict[str, Any] = {}
    before: tuple[ResultAxis, ...] = ()
    if isinstance(core, InverseKinematics):
        joints = NamedJoints.of(core.cell, core.joints)
        before = (ResultAxis("branch"),)  # of ik.all
        if meaning is OF_SOLVERS["reason"]:
            # As the CF conventions state flags, which xarray decodes.
            attributes["flag_values"] = [int(joint_units) for joint_units in Reason]
            attributes["flag_meanings"] = " ".join(
                joint_units.name for joint_units in Reason
            )
    elif isinstance(core, CollisionCheck):
        joints = NamedJoints.of(core.cell, core.cell.joint_names)
    if isinstance(core, Kernel):
        before = (ResultAxis("frame"),)  # of a list of frames
    # A result may have a further dimension in front, of branches or frames.
    axes = (*before, *meaning.axes)[-len(field.shape) :] if field.shape else ()
    if len(axes) < len(field.shape):
        return field._replace(units=meaning.units)
    units, named_axes = meaning.units, list[ResultAxis]()
    for axis, size in zip(axes, field.shape, strict=True):
        names = axis.names
        if axis.name == "pair" and isinstance(core, CollisionCheck):
            names = tuple(f"{a} {b}" for a, b in core.pairs)
        elif axis.name in {"joint", "force_of_joint"}:
            names = joints.names
        named_axes.append(axis._replace(names=names if len(names) == size else ()))
    if meaning.of_joint and named_axes[-1].names:
        joint_units = [meaning.of_joint.get(unit, "unknown") for unit in joints.units]
        attributes["joint_units"] = joint_units
        units = joint_units[0] if len({*joint_units}) == 1 else units
    return field._replace(units=units, axes=tuple(named_axes), attributes=attributes)
