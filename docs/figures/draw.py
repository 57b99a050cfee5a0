"""Draw the figures of the pages from the poses that armillary computes.

    python docs/figures/draw.py [FOLDER]

It needs the extra `examples`. The colours suit light and dark pages.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import armillary as arm

mpl.use("svg")
from matplotlib import pyplot as plt

GREY = "#808080"
AXES = {"x": "#d9534f", "y": "#3d9a50", "z": "#4285d6"}
ACCENT = "#b8860b"
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "armillary",  # the same file each time
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": GREY,
    "axes.edgecolor": GREY,
}
# Orthographic: x to the lower left, y to the right, z up.
VIEW = np.array([[-0.5, 0.85, 0.0], [-0.35, -0.2, 0.9]])


def flat(points: Any) -> Any:
    """Return points (..., 3) as seen, (..., 2)."""
    return np.asarray(points, float) @ VIEW.T


def line(ax: Any, points: Any, **style: Any) -> None:
    """Draw a line through points (k, 3)."""
    seen = flat(points)
    ax.plot(seen[:, 0], seen[:, 1], solid_capstyle="round", **style)


def arrow(ax: Any, start: Any, end: Any, **style: Any) -> None:
    """Draw an arrow from one seen point to another, both (2,)."""
    look = {"color": GREY, "lw": 1.2, "arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=look | style, annotation_clip=False)
    ax.update_datalim([start, end])


def frame(
    ax: Any, pose: arm.Pose, name: str = "", *, size: float = 0.25, alpha: float = 1.0
) -> None:
    """Draw the axes of a pose, red x, green y, blue z, and a name beside them."""
    origin = np.array(pose.position, float)
    for k, (axis, colour) in enumerate(AXES.items()):
        direction = np.array(pose.rotate(np.eye(3)[k].tolist()), float)
        tip = flat(origin + size * direction)
        arrow(ax, flat(origin), tip, color=colour, lw=2, alpha=alpha)
        if alpha == 1.0:
            label = flat(origin + 1.2 * size * direction)
            ax.text(*label, axis, color=colour, ha="center", va="center", fontsize=9)
    ax.text(*(flat(origin) + np.array((0.02, -0.08))), name, weight="bold", fontsize=13)


def note(ax: Any, at: Any, text: str, **style: Any) -> None:
    """Write beside a point (3,)."""
    ax.text(*flat(at), text, **({"color": ACCENT, "fontsize": 11} | style))


def formula(ax: Any, text: str, *, at: float, **style: Any) -> None:
    """Write a formula below a figure, at this part of its height."""
    centred = {"transform": ax.transAxes, "ha": "center", "family": "monospace"}
    ax.text(0.5, at, text, **centred, **style)


def joint_frames() -> Any:
    """Frames F and M of a joint that turns by q."""
    precursor = arm.Pose.translation(0, 0.75, 0.15) @ arm.Pose.rotation_x(-0.35)
    joint = arm.joints.Revolute(axis=(0, 0, 1), precursor=precursor)
    q = 1.0
    zero, turned = joint.transform(0.0), joint.transform(q)
    in_link = arm.Pose.translation(0.75, 0.0, 0.12)
    primary = turned @ in_link

    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    line(ax, [arm.Pose.identity().position, zero.position], color=GREY, lw=1.2, ls="--")
    note(ax, (0, 0.3, 0.12), "precursor", ha="center")
    frame(ax, arm.Pose.identity(), "F")
    frame(ax, zero, size=0.4, alpha=0.35)
    frame(ax, turned, "M", size=0.4)
    ring = [
        (zero @ arm.Pose.rotation_z(a)).rotate((0.33, 0, 0))
        for a in np.linspace(0, q, 30)
    ]
    line(ax, np.array(ring) + np.array(zero.position), color=ACCENT, lw=1.5)
    middle = np.array(ring[15]) * 1.25 + np.array(zero.position)
    note(ax, middle, "q", weight="bold", ha="center", va="center")
    line(ax, [turned.position, primary.position], color=GREY, lw=1.2, ls="--")
    frame(ax, primary, size=0.18)
    note(
        ax,
        np.array(primary.position) - (0, 0, 0.2),
        "primary frame\nof the link",
        va="top",
    )
    formula(ax, "X_FM(q) = precursor @ pose(q)", at=-0.02)
    return figure


MOTIONS = {
    "d": ("Tz(d)", lambda d: arm.Pose.translation(0, 0, d)),
    "theta": ("Rz(theta)", arm.Pose.rotation_z),
    "a": ("Tx(a)", lambda a: arm.Pose.translation(a, 0, 0)),
    "alpha": ("Rx(alpha)", arm.Pose.rotation_x),
}


def dh_orders() -> Any:
    """The four motions of both orders of Denavit and Hartenberg, one after another."""
    orders = [
        (
            "Paul (standard)",
            arm.joints.PaulRevolute,
            ("d", "theta", "a", "alpha"),
            -0.7,
        ),
        (
            "Craig (modified)",
            arm.joints.CraigRevolute,
            ("a", "alpha", "d", "theta"),
            0.7,
        ),
    ]
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 4.2))
    for ax, (title, joint, names, alpha) in zip(panels, orders, strict=True):
        given = {"d": 0.6, "theta": 0.9, "a": 0.7, "alpha": alpha}
        reached = arm.Pose.identity()
        for name in names:
            following = reached @ MOTIONS[name][1](given[name])
            if name in {"a", "d"}:
                ends = np.array([reached.position, following.position], float)
                line(ax, ends, color=ACCENT, lw=1.8)
                note(
                    ax,
                    ends.mean(axis=0) + np.array((0, 0.04, 0.05)),
                    name,
                    weight="bold",
                )
            else:
                frame(ax, reached, size=0.25, alpha=0.35)
                swept(ax, reached, name, given[name])
            reached = following
        assert reached.approx_equal(joint(**given).transform(0.0), 1e-12)
        frame(ax, arm.Pose.identity(), "F")
        frame(ax, reached, "M")
        ax.set_title(title, color=GREY)
        shown = " ".join(MOTIONS[name][0] for name in names)
        formula(ax, shown, at=-0.08, fontsize=10)
    return figure


def swept(ax: Any, pose: arm.Pose, name: str, angle: float) -> None:
    """Draw the angle by which a pose turns, about z for theta and x for alpha."""
    turn, start = (
        (arm.Pose.rotation_z, (0.19, 0, 0))
        if name == "theta"
        else (arm.Pose.rotation_x, (0, 0.19, 0))
    )
    arc = [(pose @ turn(part)).rotate(start) for part in np.linspace(0, angle, 20)]
    points = np.array(arc, float) + np.array(pose.position, float)
    line(ax, points, color=ACCENT, lw=1.8)
    beside = points[0] + 0.6 * (points[0] - np.array(pose.position, float))
    note(ax, beside, name, ha="center", va="center")


def oval_track() -> Any:
    """An oval track from above: its four pieces, and q along them."""
    track = arm.joints.OvalTrack(straight=4.0, radius=1.5)
    ends = np.cumsum([0.0, 2.0, np.pi * 1.5, 4.0, np.pi * 1.5, 2.0])
    assert np.isclose(ends[-1], track.period)

    figure, ax = plt.subplots(figsize=(7.2, 4.0))
    for start, end, colour in zip(
        ends[:-1], ends[1:], [ACCENT, AXES["z"]] * 3, strict=False
    ):
        way = np.array(
            [track.transform(q).position for q in np.linspace(start, end, 60)]
        )
        ax.plot(way[:, 0], way[:, 1], color=colour, lw=3)
    arrow(ax, (0, 0), (0.8, 0), color=AXES["x"], lw=2)
    arrow(ax, (0, 0), (0, 0.8), color=AXES["y"], lw=2)
    ax.text(0.9, 0, "x", color=AXES["x"], va="center")
    ax.text(0, 0.95, "y", color=AXES["y"], ha="center")
    ax.text(-0.1, -0.25, "F", weight="bold", fontsize=13, ha="right")
    for q in (0.0, 2.0, 4.5, 2 + np.pi * 1.5, 6 + np.pi * 1.5, 6 + 2 * np.pi * 1.5):
        pose = track.transform(q)
        origin, ahead = (
            np.array(pose.position, float)[:2],
            np.array(pose.rotate((0.7, 0, 0))),
        )
        aside = np.array(pose.rotate((0, 0.4, 0)))
        arrow(ax, origin, origin + ahead[:2], color=AXES["x"], lw=2)
        arrow(ax, origin, origin + aside[:2], color=AXES["y"], lw=2)
        outside = origin - (0.9 + 1.2 * (q == 4.5)) * aside[:2]
        ax.text(*outside, f"q = {q:.4g}", ha="center", va="center", color=GREY)
    ax.plot(
        [2, 2 + 1.5 * np.cos(0.6)], [0, 1.5 * np.sin(0.6)], color=GREY, lw=1, ls="--"
    )
    ax.text(2.45, 0.6, "radius", ha="center")
    ax.plot([-2, 2], [-1.1, -1.1], color=GREY, lw=1, ls="--")
    ax.text(0, -0.95, "straight", ha="center")
    return figure


def poses() -> Any:
    """X_AB: three frames, and the poses between them."""
    a = arm.Pose.translation(0, 0.75, 0.35) @ arm.Pose.rotation_z(0.5)
    b = a @ arm.Pose.translation(-0.35, 0.7, 0.25) @ arm.Pose.rotation_x(-0.6)
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    named = {"W": arm.Pose.identity(), "A": a, "B": b}
    ways = [("W", "A", -0.25, 0.1), ("A", "B", -0.3, 0.16), ("W", "B", 0.35, -0.4)]
    for start, end, bend, height in ways:
        begin, finish = (flat(named[each].position) for each in (start, end))
        bent = {"connectionstyle": f"arc3,rad={bend}", "shrinkA": 12, "shrinkB": 12}
        arrow(ax, begin, finish, color=ACCENT, lw=1.5, **bent)
        middle = (begin + finish) / 2 + np.array((0, height))
        style = {"color": ACCENT, "ha": "center", "family": "monospace"}
        ax.text(*middle, f"X_{start}{end}", **style)
    for name, pose in named.items():
        frame(ax, pose, name)
    formula(ax, "X_WB = X_WA @ X_AB", at=-0.04)
    return figure


JOINTS: dict[str, list[tuple[arm.Joint, tuple[float, ...]]]] = {
    "joints_of_axes": [
        (arm.joints.Revolute(axis=(0, 0, 1)), (0.0, 0.6, 1.2)),
        (arm.joints.Prismatic(axis=(0, 0, 1)), (0.0, 0.4, 0.8)),
        (arm.joints.Screw(axis=(0, 0, 1), pitch=0.25), (0.0, 1.2, 2.4)),
    ],
    "joints_of_paul": [
        (arm.joints.PaulRevolute(d=0.6, a=0.8, alpha=0.5), (0.0, 0.6, 1.2)),
        (arm.joints.PaulPrismatic(d=0.3, a=0.8, alpha=0.5), (0.0, 0.4, 0.8)),
    ],
    "joints_of_craig": [
        (arm.joints.CraigRevolute(d=0.6, a=0.8, alpha=0.5), (0.0, 0.6, 1.2)),
        (arm.joints.CraigPrismatic(d=0.3, a=0.8, alpha=0.5), (0.0, 0.4, 0.8)),
    ],
    "joints_of_tracks": [
        (arm.joints.CircleTrack(radius=1.0), (0.0, 1.0, 2.0)),
        (arm.joints.OvalTrack(straight=1.6, radius=0.7), (0.0, 1.4, 2.8)),
        (
            arm.joints.Curve(
                points=((0, 0, 0), (0.6, 0.7, 0.3), (0, 1.4, 0.3), (0.3, 2.1, 0))
            ),
            (0.1, 1.2, 2.4),
        ),
    ],
    "joint_of_four_bars": [
        (
            arm.joints.FourBarSlider(nominal=0.9, lever=0.7, opposite=1.2),
            (0.0, 0.25, 0.5),
        )
    ],
}
"""The joints of each picture in the table of joints, and the values of q drawn."""


def joints_in_motion(name: str) -> Any:
    """Draw each joint at three values of q, one after another stronger."""
    shown = JOINTS[name]
    figure, panels = plt.subplots(
        1, len(shown), figsize=(2.2 * len(shown), 2.1), squeeze=False
    )
    for ax, (joint, values) in zip(panels[0], shown, strict=True):
        ax.set_title(type(joint).__name__, color=GREY, fontsize=10)
        ends = values[0], values[-1]
        if joint.period is not None and joint.unit is arm.METRE:
            ends = 0.0, joint.period  # the whole track
        way = [joint.transform(q).position for q in np.linspace(*ends, 40)]
        line(ax, way, color=ACCENT, lw=1.5)
        axes_of(ax, arm.Pose.identity(), size=0.2, lw=1)
        note(ax, (0, 0, -0.12), "F", color=GREY, ha="center", va="top", fontsize=9)
        for q, alpha in zip(values, (0.3, 0.55, 1.0), strict=True):
            pose = joint.transform(q)
            for part, colour in parts_of(joint, pose):
                line(ax, part, color=colour, lw=3, alpha=0.8 * alpha)
            axes_of(ax, pose, size=0.35, lw=1.8, alpha=alpha)
    return figure


def axes_of(ax: Any, pose: arm.Pose, *, size: float, **style: Any) -> None:
    """Draw the axes of a pose as lines, red x, green y, blue z."""
    for axis, colour in zip(np.eye(3), AXES.values(), strict=True):
        tip = pose @ (size * axis)
        line(ax, [pose.position, tip], color=colour, **style)


def parts_of(joint: Any, pose: arm.Pose) -> list[tuple[list[Any], str]]:
    """Return what a joint moves, as lines through points (k, 3) of F and colours."""
    match type(joint).__name__:
        case "Revolute" | "Prismatic" | "Screw":
            corners = (0, 0, 0), (0.7, 0, 0), (0.7, 0.25, 0), (0, 0.25, 0), (0, 0, 0)
            return [([pose @ np.array(corner, float) for corner in corners], GREY)]
        case "PaulRevolute" | "PaulPrismatic":
            return [([(0, 0, 0), (0, 0, pose.position[2]), pose.position], GREY)]
        case "CraigRevolute" | "CraigPrismatic":
            return [([(0, 0, 0), (joint.a, 0, 0), pose.position], GREY)]
        case "FourBarSlider":
            tip = pose @ np.array((joint.lever, 0.0, 0.0))
            slider = [tip, (joint.opposite, joint.offset, 0)]
            return [([(0, 0, 0), tip], GREY), (slider, ACCENT)]
        case _:
            return []


PACKAGE = Path(arm.__file__).parent

# The columns of the picture of packages, from left to right: the title of each, the
# packages in it, and what it passes on to the next one.
FLOW = (
    ("files", (), "text"),
    ("read and write", ("formats", "scripts", "plugins"), "elements"),
    ("describe", ("model",), "Workcell"),
    (
        "state formulas",
        (
            *("kinematics", "ik", "collision", "dynamics", "control", "trajectories"),
            "planning",
        ),
        "functions",
    ),
    ("record", ("trace",), "Program"),
    ("compile", ("kernel",), "code"),
    ("answer", ("cell",), "arrays"),
    (
        "use",
        (
            *("cli", "view", "programs", "portable", "sweeps", "calibration"),
            "testing",
        ),
        "",
    ),
)
BELOW = (
    ("spatial", 3, 4),
    ("errors, replaced_file, user_folder, confined_process", 1, 7),
)
"""What several columns build on, with the first and the last of them."""


def packages() -> Any:
    """Return the packages, and what flows from each to the next."""
    drawn = {name for _, names, _ in FLOW for name in names}
    drawn |= {name for names, _, _ in BELOW for name in names.split(", ")}
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders - {"cells"} <= drawn, folders - drawn
    figure, ax = plt.subplots(figsize=(17, 4.8))
    step, width, height = 4.1, 2.5, 0.66
    for column, (title, names, passed) in enumerate(FLOW):
        x = step * column
        ax.text(x + width / 2, 3.1, title, ha="center", style="italic")
        for row, name in enumerate(names or ("URDF, STL, ...",)):
            y = 0.8 * ((len(names) or 1) - 1) / 2 - 0.8 * row
            _package(ax, name, (x, y - height / 2), (width, height))
        if passed:
            arrow = {"arrowstyle": "->", "color": ACCENT, "lw": 1.6}
            ends = (x + step - 0.08, 0.0), (x + width + 0.08, 0.0)
            ax.annotate("", *ends, arrowprops=arrow)
            middle = x + (width + step) / 2
            ax.text(middle, 0.12, passed, ha="center", color=ACCENT, fontsize=9)
    for row, (name, first, last) in enumerate(BELOW):
        long = step * (last - first) + width
        _package(ax, name, (step * first, -3.4 - 0.8 * row), (long, height))
    return figure


def _package(ax: Any, name: str, corner: Any, size: Any) -> None:
    ax.add_patch(plt.Rectangle(corner, *size, fill=False, edgecolor=GREY, lw=1.2))
    middle = np.add(corner, np.divide(size, 2.0))
    ax.text(*middle, name, ha="center", va="center", fontsize=9.5)


FIGURES = {
    **{name: partial(joints_in_motion, name) for name in JOINTS},
    "joint_frames": joint_frames,
    "dh_orders": dh_orders,
    "oval_track": oval_track,
    "packages": packages,
    "poses": poses,
}


def main(folder: Path) -> None:
    """Write all figures to a folder as SVG."""
    with plt.rc_context(STYLE):
        for name, draw in FIGURES.items():
            figure = draw()
            for ax in figure.axes:
                ax.set_aspect("equal")
                ax.margins(0.08)
                ax.autoscale_view()
                ax.axis("off")
            figure.savefig(
                folder / f"{name}.svg",
                transparent=True,
                bbox_inches="tight",
                metadata={"Date": None, "Creator": None},
            )
            plt.close(figure)


if __name__ == "__main__":
    main(Path(*sys.argv[1:]) if sys.argv[1:] else Path(__file__).parent)
