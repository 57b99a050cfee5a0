"""Two arms share a table: each keeps clear of the other, wherever that is.

The right arm works at one place. For every place of a grid on the table, inverse
kinematics of the left arm gives joint positions at which it touches neither the table
nor the right arm, or the reason why there are none. Then the left arm comes as near to
the right one as it can. At last they reach past each other, and change places: one
motion of both, which is planned.
"""

from __future__ import annotations

import numpy as np

import armillary as arm

APART = 0.9  # between the bases [m]
MARGIN = 0.01  # how far links are to stay apart [m]
ABOVE = 0.15  # how high tools are over the table [m]
PLACE = 0.05, 0.1  # x, y where the right arm works [m]
ROW = np.linspace(0.0, 0.5, 251)  # how far from there the left tool may be [m]

robot = arm.example("oval_track_cell").manipulators[1]
table = arm.Link(
    name="top",
    collisions=[
        arm.shapes.Box(size=(1.6, 1.2, 0.1), pose=arm.Pose.translation(0, 0, -0.05))
    ],
)
cell = arm.Cell(
    manipulators=[
        arm.Manipulator(name="table", links=[table]),
        robot.replace(name="left"),
        robot.replace(name="right"),
    ],
    mounts=[
        arm.Mount(
            manipulator=name, on="table/top", pose=arm.Pose.translation(x, 0, 0.001)
        )
        for name, x in (("left", -APART / 2), ("right", APART / 2))
    ],
    # Links of one arm are tested against each other, too.
    rules=arm.Rules().include("left/*", "left/*").include("right/*", "right/*"),
)
LEFT = [name for name in cell.joint_names if name.startswith("left/")]
RIGHT = [name for name in cell.joint_names if name.startswith("right/")]


def tool_down(x, y):
    """Return poses over the table that look down, shape (..., 4, 4)."""
    X = np.zeros((*np.broadcast(x, y).shape, 4, 4))
    X[...] = np.diag([1.0, -1.0, -1.0, 1.0])
    X[..., 0, 3], X[..., 1, 3], X[..., 2, 3] = x, y, ABOVE
    return X


def with_joints(state, names, q):
    """Return the state with some joints at q."""
    return state.joints(dict(zip(names, q.tolist(), strict=True)))


def moved(state, frame, names, target):
    """Return the state with one arm at a target, and how that ended."""
    check = cell.collision(state, margin=MARGIN)
    ik = cell.ik(frame, joints=names, state=state, avoid=check)
    answer = ik(target)
    return with_joints(state, names, answer.q), answer


def closest(frame, names, state, xs, y):
    """Return the first of some places in a row that an arm reaches without contact."""
    check = cell.collision(state, margin=MARGIN)
    ik = cell.ik(frame, joints=names, state=state, avoid=check)
    answer = ik(tool_down(xs, y))
    k = int(np.argmax(answer.success))
    assert answer.success[k], answer
    return xs[k], with_joints(state, names, answer.q[k])


print(f"{len(cell.pairs(cell.home))} pairs of links are tested")

# The right arm goes to the middle of the table.
state, answer = moved(cell.home, "right/tool0", RIGHT, tool_down(*PLACE))
assert answer.success, answer
print("the right arm is over the middle:", answer)

# Where can the left arm work meanwhile, and where could it without the other?
x, y = np.linspace(-0.75, 0.75, 61), np.linspace(-0.5, 0.5, 41)
targets = tool_down(x, y[:, None])
check = cell.collision(state, margin=MARGIN)
ik = cell.ik("left/tool0", joints=LEFT, state=state, avoid=check)
shared = ik(targets)
no_right = cell.rules.exclude("right/*", "*")
alone_check = cell.collision(state, rules=no_right, margin=MARGIN)
alone = cell.ik("left/tool0", joints=LEFT, state=state, avoid=alone_check)(targets)
print("the left arm alone:   ", alone)
print("beside the right arm: ", shared)
marks = {arm.Reason.SOLVED: "o", arm.Reason.IN_COLLISION: "x"}
for row in shared.reason[::-4]:
    print("   ", "".join(marks.get(arm.Reason(int(each)), ".") for each in row))

# The arms meet: the left one comes as near to the right one as it can.
where, both = closest("left/tool0", LEFT, state, PLACE[0] - ROW, PLACE[1])
clearance = float(cell.collision(both).clearance(both.q))
print(f"the left tool gets as near as {PLACE[0] - where:.3f} m to the right one")
wide = cell.collision(both, margin=2 * clearance)
print("nearest then:", wide.contacts(both.q)[0])

# They change places, each reaching over the middle to the far half of the table.
crossed = []
for side in (1, -1):
    reach = cell.home
    for frame, names, x, y in (
        ("left/tool0", LEFT, 0.1, 0.16 * side),
        ("right/tool0", RIGHT, -0.1, -0.16 * side),
    ):
        reach, answer = moved(reach, frame, names, tool_down(x, y))
        assert answer.success, answer
    crossed.append(reach)
free_way = cell.planner(check)(*crossed)
print(free_way)
swap = free_way.timed(acceleration=5.0)
print(f"they change places in {swap.duration:.1f} s")

# The check: what is solved is free, beside the right arm fewer places are, and where
# the left arm is not hindered, it goes where it would alone.
assert cell.violations(both) == ()
device = cell.device(joints=LEFT, state=state)
free = device.whole(shared.q[shared.success])
assert check.clearance(free).min() > MARGIN
tips = cell.fk("left/tool0")(free)
assert np.abs(tips - targets[shared.success]).max() < 1e-5
assert (shared.success <= alone.success).all()
hindered = alone.success & ~shared.success
assert hindered.any()
assert (shared.reason[hindered] == arm.Reason.IN_COLLISION).all()
same = shared.success & ~check(device.whole(alone.q))
assert np.array_equal(shared.q[same], alone.q[same])
assert clearance > MARGIN

# They could not have moved straight, and keep their distance all the way.
assert free_way.proven
assert not check.motion(*(each.q for each in crossed)).free
samples = swap.sampled(rate=250).q
assert check.clearance(samples).min() > MARGIN - 1e-9
assert np.abs(samples[-1] - crossed[1].q).max() < 1e-9
