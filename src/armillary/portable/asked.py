"""What a cell is compiled for: questions as texts, `fk:tool0`, or kernels by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck, check_of
from armillary.collision.check_stages import Question
from armillary.control.controller import Controller
from armillary.control.obstacles import Obstacles, obstacle_numbers
from armillary.control.tasks import Frame
from armillary.dynamics import questions as dynamics
from armillary.errors import KernelError, ModelError, quote, unknown
from armillary.ik.differential import DifferentialSolver, differential_of
from armillary.ik.factory import solver_of
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reason import RateReason, Reason
from armillary.ik.recognised_form import RecognisedForm
from armillary.kernel import Kernel
from armillary.kernel.python_kernel import PythonKernel
from armillary.kinematics import questions
from armillary.kinematics.bound_kernel import AnyKernel, BoundKernel
from armillary.kinematics.state import State
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell
from armillary.trace import Port

__all__ = ["Asked", "asked_of", "check_names"]

Array = npt.NDArray[Any]
Draw = Callable[[Array], Array]

IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
KEYWORDS: Final = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "alignas",
        "alignof",
        "bool",
        "constexpr",
        "false",
        "nullptr",
        "static_assert",
        "thread_local",
        "true",
        "typeof",
        "and",
        "asm",
        "catch",
        "class",
        "compl",
        "delete",
        "explicit",
        "export",
        "friend",
        "mutable",
        "namespace",
        "new",
        "not",
        "operator",
        "or",
        "private",
        "protected",
        "public",
        "template",
        "this",
        "throw",
        "try",
        "typeid",
        "typename",
        "using",
        "virtual",
        "wchar_t",
        "xor",
        "main",
        "errno",
        "NAN",
        "INFINITY",
    ]
)
"""Words that no function or parameter may have as a name in C, nor in C++."""

OF_HEADERS: Final = frozenset(
    {"joint_names", "lower", "upper", "home"}
    | {f"{what}_limit" for what in ("velocity", "acceleration", "effort")}
)
"""What headers declare beside functions, behind the name of the library."""

OF_SOURCES: Final = re.compile(
    r"(load|store)_(ptr|i8|i16|i32|i64)|exact_fmaf?|(size|ptrdiff|u?int\d+)_t"
)
"""Names that sources have for themselves."""

OF_CMAKE: Final = frozenset(
    {"all", "clean", "edit_cache", "help", "install", "package", "package_source"}
    | {"rebuild_cache", "test", "ALL_BUILD", "INSTALL", "PACKAGE", "RUN_TESTS"}
    | {"ZERO_CHECK", "list_install_components", "preinstall"}
)
"""Targets of CMake's own, whose names no library can have."""

LONGEST: Final = 63
"""Letters of a name; tools of C need not tell longer ones apart."""

OF_FRAMES: Final[Mapping[str, tuple[Callable[..., AnyKernel], str]]] = {
    "fk": (questions.fk, "the pose of {frame} in the world"),
    "jacobian": (questions.jacobian, "the Jacobian of {frame} in the world"),
}
OF_CELLS: Final[Mapping[str, tuple[Callable[..., AnyKernel], str]]] = {
    "inverse_dynamics": (dynamics.inverse_dynamics, "the forces that joints need"),
    "forward_dynamics": (dynamics.forward_dynamics, "the accelerations of joints"),
    "mass_matrix": (dynamics.mass_matrix, "the mass matrix"),
    "gravity_torque": (dynamics.gravity_torque, "the forces that gravity demands"),
    "bias_torque": (dynamics.bias_torque, "the forces without accelerations"),
}
OF_SOLVERS: Final = ("ik", "differential_ik")
OF_CHECKS: Final[Mapping[str, tuple[Question, str]]] = {
    "check": ("touching", "whether links touch, or are nearer than {margin} m"),
    "clearance": ("clearance", "the least distance of all pairs of links"),
}
KINDS: Final = (
    *(f"{kind}:FRAME" for kind in (*OF_FRAMES, *OF_SOLVERS)),
    *OF_CELLS,
    *OF_CHECKS,
)

MEANINGS: Final[Mapping[str, str]] = {
    "q": "joint positions [m or rad]",
    "qd": "velocities of joints [m/s or rad/s]",
    "qdd": "accelerations of joints [m/s^2 or rad/s^2]",
    "torque": "forces of joints [N or N m]",
    "pose": "a pose, row by row, lengths in [m]",
    "jacobian": "rows of linear, then angular velocity [m and rad by m or rad]",
    "mass_matrix": "masses by joints [kg, kg m or kg m^2]",
    "target": "the pose to reach, row by row, lengths in [m]",
    "arm_angle": "the angle of the elbow [rad]",
}
"""What arrays are, by the name of the port."""

REASONS: Final = ", ".join(
    f"{each.value} {each.name.lower().replace('_', ' ')}" for each in Reason
)
OF_BRANCHES: Final = {
    "q": "joint positions of each branch [m or rad], NaN where it does not exist",
    "residual": "squares of the distance [m^2] and the chord of the angle missed",
    "reason": f"of each branch: {REASONS}; 0.5 more: just beyond a limit",
    "outside": "how many branches are so far beyond a limit",
    "singular": "how many branches stand for infinitely many answers",
}


OF_SEARCH: Final = {
    "near": "joint positions to start from [m or rad]",
    "answer": "joint positions [m or rad], of the last attempt where none was found, "
    "NaN where the target is not a pose",
    "errors": "squares of the distance [m^2] and of the sine of the angle missed",
    "found": "1 where the target is met, else 0; -1 where it is not a pose",
}


OF_ANSWERS: Final[Mapping[str, Mapping[str, str]]] = {
    "check": {
        "found": "0 free, 1 touching; 0.5 where rounding decides, or a number is NaN: "
        "take that as touching"
    },
    "clearance": dict.fromkeys(
        ("found", "least"), "the distance [m], below 0 where links overlap"
    ),
}

STEADY: Final = 1000.0
"""By how much more than itself rounding of inputs may change results of a test."""

TRIALS: Final = 8
"""How often inputs of a test are changed by rounding, which may tip over or not."""

STEP: Final = 0.001
"""How long the rates of differential inverse kinematics hold [s]."""

RATES: Final = ", ".join(f"{each.value} {each.name.lower()}" for each in RateReason)
OF_RATES: Final = {
    "twists": "the twist, linear [m/s], then angular [rad/s]",
    "answer": "rates of joints [m/s or rad/s], the share of the twist that limits "
    "leave, what is missing of its linear and its angular part, the reason, the twist "
    f"that is met; reasons: {RATES}",
}
OF_STEPS: Final = {
    "answer": "joint positions after the step, rates of joints, the reason, and what "
    f"else armillary's Step.numbers has; reasons: {RATES}",
}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A question that is compiled.

    Attributes:
        name: Of the function, behind that of the cell.
        title: What it computes.
        kernel: What computes it here, of all inputs.
        bound: Inputs that callers do not give, by name.
        meanings: What its inputs and outputs are, by name.
        draws: For inputs by name, what draws rows for a test from joint positions.
    """

    name: str
    title: str
    kernel: Kernel
    bound: Mapping[str, Array]
    meanings: Mapping[str, str] = field(default_factory=dict[str, str])
    draws: Mapping[str, Draw] = field(default_factory=dict[str, Draw])

    def samples(
        self, generator: np.random.Generator, count: int, limits: tuple[Array, Array]
    ) -> list[Array]:
        """Return rows of the inputs that callers give, and of the results.

        Where rounding of inputs changes results by far more than itself, as near
        singularities, other machines get others, too: such rows are left out as far as
        there are better ones among twice as many.

        Args:
            generator: Draws them.
            count: The number of rows.
            limits: Of the cell's joints.
        """
        rows = self._drawn(generator, 2 * count, limits)
        unit = np.finfo(self.kernel.dtype).eps
        results, change = self._results(rows), np.zeros(2 * count)
        for _ in range(TRIALS):
            near = [
                (x * (1.0 + unit * generator.choice([-2.0, 2.0], x.shape))).astype(
                    x.dtype
                )
                for x in rows
            ]
            change = np.maximum(change, _changes(results, self._results(near)))
        order = np.argsort(np.maximum(change, STEADY * unit), kind="stable")
        kept = np.sort(order[:count])
        return [x[kept] for x in (*rows, *results)]

    def _drawn(
        self, generator: np.random.Generator, count: int, limits: tuple[Array, Array]
    ) -> list[Array]:
        """Return rows of the inputs that callers give."""
        positions = self._positions(generator, count, limits)
        free: list[Array] = []
        # Positions within limits, starts of searches near them, else numbers around 0.
        for port in self.kernel.computation.inputs:
            if port.name in self.bound:
                continue
            rows = generator.uniform(-1.0, 1.0, (count, *port.shape))
            if port.name == "q" and port.shape == positions.shape[1:]:
                rows = positions
            elif port.name == "near" and port.shape == positions.shape[1:]:
                rows = 0.9 * positions + 0.1 * np.roll(positions, 1, axis=0)
            elif port.name in self.draws:
                rows = self.draws[port.name](positions).reshape(count, *port.shape)
            free.append(np.asarray(rows, self.kernel.dtype))
        return free

    def _results(self, rows: Sequence[Array]) -> tuple[Array, ...]:
        """Return what the kernel computes of rows of the inputs that callers give."""
        given = iter(rows)
        ports = self.kernel.computation.inputs
        made: Any = self.kernel(
            *[
                self.bound[x.name] if x.name in self.bound else next(given)
                for x in ports
            ]
        )
        return cast("tuple[Array, ...]", made if isinstance(made, tuple) else (made,))

    @staticmethod
    def _positions(
        generator: np.random.Generator, count: int, limits: tuple[Array, Array]
    ) -> Array:
        lower = np.where(np.isfinite(limits[0]), limits[0], -np.pi)
        upper = np.where(np.isfinite(limits[1]), limits[1], np.pi)
        return generator.uniform(lower, upper, (count, len(lower)))

    def meaning(self, port: Port) -> str:
        """Return what an input or output is, empty where nothing is known."""
        return self.meanings.get(port.name) or MEANINGS.get(port.name, "")


def _changes(results: Sequence[Array], others: Sequence[Array]) -> Array:
    """Return by how much rows of results differ, relative to one and their size."""
    change = np.zeros(len(results[0]))
    for x, y in zip(results, others, strict=True):
        with np.errstate(invalid="ignore"):  # of infinite numbers
            each = np.where(x == y, 0.0, np.abs(x - y) / (1.0 + np.abs(x)))
        each = np.where(np.isnan(x) & np.isnan(y), 0.0, each)
        each = np.where(np.isnan(each), np.inf, each).reshape(len(each), -1)
        change = np.maximum(change, each.max(axis=1, initial=0.0))
    return change


def asked_of(
    cell: Workcell,
    ask: Iterable[str] | Mapping[str, Any],
    *,
    state: State | None,
    dtype: np.dtype[Any],
) -> list[Asked]:
    """Return the questions that are asked, in order.

    Args:
        cell: What is asked about.
        ask: Texts such as `fk:tool0`, `pose=fk:arm/tool0` or `mass_matrix`; or a
            mapping of names to such texts, kernels or solvers.
        state: Where other joints and bases are; by default as built.
        dtype: What is computed in.

    Raises:
        UnknownName: No question or frame has this name.
        ModelError: A text or name is not what it must be, or two names are the same.
        KernelError: A question cannot be compiled.
    """
    pairs = _pairs(ask)
    made: list[Asked] = []
    for name, question in pairs:
        one = _asked(cell, name, question, state, dtype)
        if not _is_identifier(one.name):
            shown = question if isinstance(question, str) else "..."
            raise ModelError(
                f"{quote(one.name)} cannot be a name in C, which has letters, digits "
                f"and '_', at most {LONGEST}. Give the question a name: name={shown}."
            )
        made.append(one)
    for k, one in enumerate(made):
        # Functions of rows, and of blocks of them, have names of the same beginning.
        others = re.compile(rf"{one.name}(_rows|_x\d+_\w+)?")
        for n, other in enumerate(made):
            if n != k and others.fullmatch(other.name):
                raise ModelError(
                    f"Two questions have the name '{other.name}', or functions that "
                    "belong to it; give one another name, as in other=fk:tool0."
                )
    return made


def _pairs(ask: Iterable[str] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the names that questions are given, and the questions."""
    given: Any = ask  # by callers who need not check types
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ModelError(f"ask= takes a list of questions, not {quote(given)}.")
    pairs: list[tuple[str, Any]] = []
    if isinstance(ask, Mapping):
        pairs = list(cast("Mapping[str, Any]", ask).items())
    else:
        for text in cast("Iterable[Any]", ask):
            if not isinstance(text, str):
                raise ModelError(
                    f"ask= lists texts such as fk:tool0, not {quote(text)}; give "
                    "others a name, as in ask={'pose': kernel}."
                )
            name, _, question = text.rpartition("=")
            pairs.append((name, question))
    if not pairs:
        raise ModelError(f"ask= names no question; there are {', '.join(KINDS)}.")
    names: list[Any] = [name for name, _ in pairs]
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"The name of a question is a text, not {quote(name)}.")
    return pairs


def check_names(name: Any, asked: Sequence[Asked]) -> None:
    """Check that a library can be called `name` in C, with some functions in it.

    Raises:
        ModelError: It cannot.
    """
    if not isinstance(name, str) or not _is_identifier(name):
        raise ModelError(
            f"{quote(name)} cannot be the name of a library; give name=: an identifier "
            "of C has letters, digits and '_', begins with a letter, is not a keyword, "
            f"and has at most {LONGEST} letters here."
        )
    if name in OF_CMAKE:
        raise ModelError(
            f"CMake has a target '{name}' of its own, so no library can have this "
            "name; give another, as in name='lab'."
        )
    of_macros = {f"{name.upper()}_{end}" for end in ("JOINTS", "H")}
    for one in asked:
        whole = f"{name}_{one.name}"
        is_taken = one.name in OF_HEADERS or whole in of_macros
        if is_taken or OF_SOURCES.fullmatch(whole):
            raise ModelError(
                f"'{whole}' has another meaning in the header or the source; give the "
                "question another name, as in other=fk:tool0."
            )


def _is_identifier(name: str) -> bool:
    is_short = len(name) <= LONGEST
    return is_short and bool(IDENTIFIER.fullmatch(name)) and name not in KEYWORDS


def _asked(
    cell: Workcell, name: str, question: Any, state: State | None, dtype: np.dtype[Any]
) -> Asked:
    if isinstance(question, str):
        return _asked_by_text(cell, name, question, state, dtype)
    if isinstance(question, Kernel | BoundKernel | PythonKernel):
        return _of_kernel(name, f"'{name}'", question)
    if isinstance(question, InverseKinematics):
        return _of_solver(name, f"what '{name}' reaches", question)
    if isinstance(question, DifferentialSolver):
        return _of_differential(name, f"the rates of '{name}'", question)
    if isinstance(question, Controller):
        return _of_controller(name, question, None)
    if _is_controller_among_obstacles(question):
        return _of_controller(name, *question)
    if isinstance(question, CollisionCheck):
        return _of_check(name, "check", question, dtype)
    if getattr(question, "__func__", None) is CollisionCheck.clearance:
        return _of_check(name, "clearance", question.__self__, dtype)
    raise ModelError(
        f"{quote(name)} is {type(question).__name__}, which cannot be compiled; give a "
        "text such as fk:tool0, a kernel such as cell.fk(frame), a solver such as "
        "cell.ik(frame), a controller, alone or as (controller, obstacles), or a "
        "collision check."
    )


def _asked_by_text(
    cell: Workcell, name: str, text: str, state: State | None, dtype: np.dtype[Any]
) -> Asked:
    kind, colon, frame = text.partition(":")
    if kind in OF_CELLS and not colon:
        ask, title = OF_CELLS[kind]
        return _of_kernel(name or kind, title, ask(cell, state=state, dtype=dtype))
    if kind in OF_CHECKS and not colon:
        return _of_check(name or kind, kind, check_of(cell, state), dtype)
    if kind not in OF_FRAMES and kind not in OF_SOLVERS:
        raise unknown("question", text, KINDS)
    if not frame:
        raise ModelError(f"The question '{kind}' needs a frame, as in {kind}:tool0.")
    name = name or f"{kind}_{frame}"
    if kind == "ik":
        solver = solver_of(cell, frame, state=state)
        title = f"joint positions that bring {frame} to a target"
        return _of_solver(name, title, solver)
    if kind == "differential_ik":
        names = (frame, WORLD, None, None)
        solver = differential_of(cell, names, ("xyz", "xyz"), None, state, True)
        return _of_differential(name, f"rates that move {frame} with a twist", solver)
    ask, title = OF_FRAMES[kind]
    kernel = ask(cell, frame, state=state, dtype=dtype)
    return _of_kernel(name, title.format(frame=frame), kernel)


def _of_kernel(name: str, title: str, kernel: Any) -> Asked:
    if isinstance(kernel, PythonKernel):
        raise KernelError(
            f"{quote(title)} runs in Python only: a script of this cell is not "
            "compiled, so there is nothing to compile for elsewhere."
        )
    values = kernel.bound if isinstance(kernel, BoundKernel) else ()
    whole: Kernel = kernel.kernel if isinstance(kernel, BoundKernel) else kernel
    ports = whole.computation.inputs[: len(values)]
    bound = {port.name: v for port, v in zip(ports, values, strict=True)}
    return Asked(name=name, title=title, kernel=whole, bound=bound)


def _of_check(
    name: str, kind: str, check: CollisionCheck, dtype: np.dtype[Any]
) -> Asked:
    question, title = OF_CHECKS[kind]
    asked = _of_kernel(name, title, check.kernel(question, dtype))
    return replace(
        asked, title=title.format(margin=check.margin), meanings=OF_ANSWERS[kind]
    )


def _of_differential(name: str, title: str, solver: DifferentialSolver) -> Asked:
    kernel, given = solver.of_one_twist(STEP)
    asked = _of_kernel(name, f"{title}, which hold for {STEP} s", kernel)
    return replace(asked, bound={**asked.bound, **given}, meanings=OF_RATES)


def _is_controller_among_obstacles(question: Any) -> bool:
    """Tell whether a question is a pair of a controller and obstacles."""
    pair = cast("tuple[Any, ...]", question) if isinstance(question, tuple) else ()
    return tuple(map(type, pair)) == (Controller, Obstacles)


def _of_controller(
    name: str, controller: Controller, obstacles: Obstacles | None
) -> Asked:
    tasks = ", ".join(type(task).__name__ for task in controller.tasks)
    kernel = controller.kernel_with(obstacles)
    asked = _of_kernel(name, f"a step of a controller: {tasks}", kernel)
    draws: dict[str, Draw] = {}
    meanings = dict(OF_STEPS)
    if obstacles is not None:
        numbers = obstacles.numbers
        first = numbers.reshape(-1, *numbers.shape[-2:])[0]
        draws["obstacles"] = partial(_grown, first)
        parts = type(obstacle_numbers(numbers)).parts()
        listed = ", ".join(f"{x.meaning} [{x.unit or '1'}]" for x in parts)
        meanings["obstacles"] = f"of each obstacle {listed}"
    for k, task in enumerate(controller.tasks):
        if isinstance(task, Frame):
            # Poses to which there is a way, not where the test stands already.
            fk = questions.fk(controller.cell, task.frame, state=controller.state)
            draws[f"target_{k}"] = lambda q, fk=fk: fk(0.9 * q)
    return replace(asked, draws=draws, meanings=meanings)


def _grown(numbers: Array, q: Array) -> Array:
    """Return obstacles for rows of a test, each a little larger than the last."""
    rows = np.repeat(numbers[np.newaxis], len(q), axis=0)
    obstacle_numbers(rows).radius += 1e-3 * np.arange(len(q))[:, np.newaxis]
    return rows


def _of_solver(name: str, title: str, solver: InverseKinematics) -> Asked:
    problem = solver.numeric.problem
    chosen = list(problem.selection.inputs)
    draws: dict[str, Draw] = {"target": lambda q: problem.fk(q[..., chosen])}
    form, whole = solver.closed, solver.kernel
    is_closed = isinstance(form, RecognisedForm)
    if is_closed:
        branches = ", ".join(" ".join(branch) for branch in form.branches)
        title = f"all {title}; branches: {branches}"
    else:
        title = f"{title}; searched for from near, then from fixed starts"
    return Asked(
        name=name,
        title=title,
        kernel=whole.kernel,
        bound=whole.bound,
        meanings=OF_BRANCHES if is_closed else OF_SEARCH,
        draws=draws,
    )
