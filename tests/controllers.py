"""Programs of robot controllers, played as the controllers are stated to do.

Each reader knows nothing of how programs are made: it reads the text, with numbers of
24 bits where the language has those, and says where joints are at which time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
EXTERNAL = "mm"
NUMBER = r"-?[0-9]+\.[0-9]+"


class Played(NamedTuple):
    """What a controller does.

    Attributes:
        times: Instants [s], shape (k,).
        q: Positions of its axes then [rad or m], shape (k, n).
        events: What else it does, with the time.
    """

    times: Array
    q: Array
    events: list[tuple[float, str]]

    def at(self, times: Array) -> Array:
        """Positions, where axes move straight between the points."""
        columns = [np.interp(times, self.times, column) for column in self.q.T]
        return np.stack(columns, axis=1)


def single(text: str) -> float:
    """The number that a controller with numbers of 24 bits reads."""
    assert re.fullmatch(NUMBER, text), text
    return float(np.float32(text))


def in_si(numbers: list[float], slides: tuple[int, ...]) -> list[float]:
    """Degrees in radians, of axes that slide millimetres in metres."""
    return [
        value / 1000.0 if k in slides else math.radians(value)
        for k, value in enumerate(numbers)
    ]


def play_rapid(
    path: Path, slides: tuple[int, ...] = (), lacks: tuple[int, ...] = ()
) -> Played:
    """Play MoveAbsJ: all axes straight, each move in the time of its argument T.

    lacks: Axes of the robot that are not there, from 0 on; their numbers are 0.
    """
    move = re.compile(
        r"MoveAbsJ \[\[(.*?)\],\[(.*?)\]\]\\NoEOffs,(v\d+)(?:\\T:=(.*?))?,(fine|z0),"
        r"tool0;"
    )
    lines = [line.strip() for line in path.read_text().splitlines()]
    assert lines[0] == f"MODULE {path.stem}" and lines[-1] == "ENDMODULE"
    body = lines[lines.index("PROC main()") + 1 : lines.index("ENDPROC")]
    now, times, rows, events = 0.0, list[float](), list[list[float]](), []
    stands = False
    for line in body:
        found = move.fullmatch(line)
        if found is None:
            assert stands, "it would be done before the robot is there"
            events.append((now, line.rstrip(";")))
            continue
        robot, external, _, time, zone = found.groups()
        given = robot.split(",")
        assert len(given) == len(external.split(",")) == 6
        assert all(given[k] == "0" for k in lacks)
        texts = [text for k, text in enumerate(given) if k not in lacks]
        texts += [text for text in external.split(",") if text != "9E9"]
        now += single(time) if time else 0.0
        times.append(now)
        rows.append(in_si(list(map(single, texts)), slides))
        stands = zone == "fine"
    assert stands
    return Played(np.array(times), np.array(rows), events)


def play_krl(
    path: Path, slides: tuple[int, ...] = (), lacks: tuple[int, ...] = ()
) -> Played:
    """Play a PTP spline block whose points are passed at the times of its TIME_BLOCK.

    What it does in between is not published; here axes move straight. Axes that the
    robot lacks, from 0 on, are in no point.
    """
    data = path.with_suffix(".dat").read_text().splitlines()
    assert data[2] == f"DEFDAT {path.stem}" and data[-1] == "ENDDAT"
    points: dict[str, list[float]] = {}
    for line in data[3:-1]:
        found = re.fullmatch(r"DECL E6AXIS (\w+)=\{(.*)\}", line)
        assert found, line
        axes = [part.split() for part in found[2].split(",")]
        names = [f"A{k + 1}" for k in range(6) if k not in lacks]
        names += [f"E{k}" for k in range(1, 7)]
        assert [name for name, _ in axes] == names[: len(axes)]
        points[found[1]] = in_si([single(text) for _, text in axes], slides)
    lines = path.read_text().splitlines()
    assert lines[2] == f"DEF {path.stem} ( )" and lines[-1] == "END"
    now, block = 0.0, False
    times, rows, events = list[float](), list[list[float]](), []
    passed, waiting = list[tuple[str, float]](), list[tuple[int, str]]()
    for line in lines[3:-1]:
        word, _, rest = line.partition(" ")
        match word:
            case ";" | "BAS" | "PTP_SPLINE":
                continue
            case "PTP":
                times.append(now)
                rows.append(points[rest])
            case "SPTP":
                passed.append((rest, math.nan))
            case "TRIGGER":
                what = rest.removeprefix("WHEN PATH=0 DELAY=0 DO ")
                waiting.append((len(passed), what))
            case "TIME_BLOCK" if rest == "START":
                block, passed, waiting = True, [], []
            case "TIME_BLOCK" if rest.startswith("PART = "):
                assert block
                passed[-1] = passed[-1][0], single(rest.removeprefix("PART = "))
            case "TIME_BLOCK":
                whole = single(rest.removeprefix("END = "))
                shares = np.cumsum([part for _, part in passed])
                ends = now + whole * shares / shares[-1]
                times += ends.tolist()
                rows += [points[name] for name, _ in passed]
                events += [(float(ends[k]), what) for k, what in waiting]
                now, block = now + whole, False
            case "ENDSPLINE":
                assert not block
            case _:
                assert not block, line
                events.append((now, line))
    return Played(np.array(times), np.array(rows), events)


def play_urscript(path: Path, step: float = 0.002) -> Played:
    """Run the program: its statements, in Python, with targets of `servoj`.

    step: The cycle of the controller [s].
    """
    lines = path.read_text().splitlines()
    assert lines[0] == f"def {path.stem}():" and lines[-1] == "end"
    code, depth = list[str](), 0
    for line in lines[1:-1]:
        text = re.sub(r"^(local|global) ", "", line.strip())
        text = re.sub(r"\[([^\]]*)\]", r"array([\1])", text)
        if text == "end":
            depth -= 1
            continue
        code.append("  " * depth + text)
        if text.endswith(":") and not text.startswith("#"):
            depth += 1
            if text.startswith("def "):
                code.append("  " * depth + "global clock")
    assert depth == 0
    world: dict[str, Any] = {}
    times, rows, events = list[float](), list[Array](), []

    def says(name: str) -> Callable[..., None]:
        return lambda *values: events.append((world["clock"], f"{name}{values}"))

    def servoj(q: Array, *, t: float, lookahead_time: float, gain: float) -> None:
        assert 0.03 <= lookahead_time <= 0.2 and 100 <= gain <= 2000
        assert t in {step, lookahead_time}
        if t == step:
            times.append(world["clock"])
            rows.append(q)

    def movej(q: Array, *, a: float, v: float) -> None:
        times.append(0.0)
        rows.append(q)

    def ready(port: int) -> bool:
        says("get_standard_digital_in")(port)
        return True

    world |= {
        "array": lambda values: np.array(values, np.float64),
        "get_steptime": lambda: step,
        "stopj": lambda a: None,
        "get_standard_digital_in": ready,
        "servoj": servoj,
        "movej": movej,
    }
    world |= {name: says(name) for name in ("set_standard_digital_out", "sleep")}
    exec("\n".join(code), world)
    return Played(np.array(times), np.array(rows), events)
