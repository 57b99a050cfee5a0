"""Empty a bin: which parts can be gripped without touching the bin or other parts.

All grasps of all parts are one batch of inverse kinematics whose answers avoid
collisions. The free one that is nearest to the arm is used: grip, lift straight up, put
down beside the bin, and look again, since other parts may be free then. Motions from
one to the next are planned; a part in the gripper counts as a link of the arm.
"""

from __future__ import annotations

import numpy as np

import armillary as arm
from armillary.model.display import plural

PARTS = 10
SIZE = (0.04, 0.04, 0.05)  # of a part [m]
INSIDE, WALL, HEIGHT = 0.28, 0.01, 0.08  # of the bin [m]
WHERE = np.array([0.5, 0.0])  # its middle [m]
OPEN, CLOSED = 0.032, 0.0201  # how far each finger is from the middle [m]
GAP = 0.0005  # between what lies and what it lies on [m]
QUARTERS = np.arange(4) * np.pi / 2  # from which sides a part is gripped [rad]
DEPTHS = (0.0, 0.008, 0.015)  # how high above its middle [m]
LIFT = np.linspace(0.0, 0.2, 41)  # straight up [m]
DOWN = arm.Pose.rotation_x(np.pi)

like = arm.example("oval_track_cell")
robot, gripper = like.manipulators[1:3]


def boxes(*sizes_and_places):
    """Return boxes of given sizes at given places [m]."""
    return [
        arm.shapes.Box(size=size, pose=arm.Pose.translation(*place))
        for size, place in sizes_and_places
    ]


far = (INSIDE + WALL) / 2
crate = arm.Link(
    name="crate",
    parent="floor",
    joint=arm.joints.Fixed(precursor=arm.Pose.translation(*WHERE, 0)),
    collisions=boxes(
        ((INSIDE, INSIDE, WALL), (0, 0, WALL / 2)),
        ((WALL, INSIDE, HEIGHT), (far, 0, HEIGHT / 2)),
        ((WALL, INSIDE, HEIGHT), (-far, 0, HEIGHT / 2)),
        ((INSIDE, WALL, HEIGHT), (0, far, HEIGHT / 2)),
        ((INSIDE, WALL, HEIGHT), (0, -far, HEIGHT / 2)),
    ),
)
ground = arm.shapes.HalfSpace.below((0, 0, 0), (0, 0, 1))
room = arm.Manipulator(
    name="room", links=[arm.Link(name="floor", collisions=[ground]), crate]
)
block = arm.Link(name="block", collisions=[arm.shapes.Box(size=SIZE)])
names = [f"part{k}" for k in range(PARTS)]
cell = arm.Cell(
    manipulators=[
        robot,
        gripper,
        room,
        *(arm.Manipulator(name=name, links=[block]) for name in names),
    ],
    mounts=[
        arm.Mount(manipulator=robot.name, pose=arm.Pose.translation(0, 0, GAP)),
        arm.Mount(manipulator=gripper.name, on="tool0"),
        arm.Mount(manipulator="room"),
    ],
    rules=arm.Rules()
    .include("ur5e/*", "ur5e/*")
    .exclude("gripper/*", "gripper/*", reason="fingers close")
    .let_touch(
        "gripper/*_finger", "gripper/*_finger", held_by="gripper/body", part="*"
    ),
)
ARM = [name for name in cell.joint_names if name.startswith("ur5e/")]
rng = np.random.default_rng(4)


def filled():
    """Return the state with all parts at random places in the bin, apart."""
    state = cell.home.joints({"gripper/opening": OPEN})
    for k, name in enumerate(names):
        state = state.place(name, arm.Pose.translation(5 + k, 5, 1))  # far away
    lying = (
        arm.Rules.nothing().include("part*/*", "part*/*").include("part*/*", "crate")
    )
    for name in names:
        while True:
            x, y = WHERE + rng.uniform(-INSIDE, INSIDE, 2) / 2
            turned = arm.Pose.rotation_z(rng.uniform(0, np.pi))
            z = WALL + SIZE[2] / 2 + GAP
            there = state.place(name, arm.Pose.translation(x, y, z) @ turned)
            if not cell.collision(there, rules=lying)(there.q):
                state = there
                break
    return state


def grasps(state, name):
    """Return poses of the tool center point that grip a part, shape (12, 4, 4)."""
    ways = [
        (arm.Pose.translation(0, 0, up) @ arm.Pose.rotation_z(turn) @ DOWN).matrix()
        for turn in QUARTERS
        for up in DEPTHS
    ]
    return cell.pose(f"{name}/block", state) @ np.array(ways)


def moved(state, q):
    """Return the state with the arm at q."""
    return state.joints(dict(zip(ARM, q.tolist(), strict=True)))


def solver(state, margin=0.0):
    """Return the inverse kinematics of the arm, free of collision in a state."""
    check = cell.collision(state, margin=margin)
    return cell.ik("tcp", joints=ARM, state=state, avoid=check)


def picked(state, left):
    """Return which part is gripped, and the state with it; None if all are blocked."""
    targets = np.array([grasps(state, name) for name in left])
    answer = solver(state, margin=GAP / 2)(targets, near=state)
    free = answer.success.sum(axis=1)
    print(f"{plural(len(left), 'part')}, free grasps of 12:", *free)
    steps = ((answer.q - cell.device(joints=ARM).q(state)) ** 2).sum(axis=-1)
    best = np.where(answer.success, steps, np.inf)
    if not np.isfinite(best).any():
        return None
    k, way = np.unravel_index(best.argmin(), best.shape)
    there = moved(state, answer.q[k, way]).joints({"gripper/opening": CLOSED})
    return left[k], there.grip(left[k], by="gripper/body")


def lifted(state):
    """Return the states of a straight way up."""
    X = np.tile(cell.pose("tcp", state), (len(LIFT), 1, 1))
    X[:, 2, 3] += LIFT
    answer, jumps = solver(state).path(X, start=cell.device(joints=ARM).q(state))
    assert answer.success.all() and not jumps.size, answer
    return [moved(state, q) for q in answer.q]


def put_down(state, name, k):
    """Return the state with the part at place k beside the bin, released."""
    x, y, z = 0.2 + 0.09 * (k % 5), -0.35 - 0.09 * (k // 5), SIZE[2] / 2 + GAP
    to_part = np.linalg.inv(cell.pose("tcp", state)) @ cell.pose(f"{name}/block", state)
    places = [
        (arm.Pose.translation(x, y, z) @ arm.Pose.rotation_z(turn)).matrix()
        for turn in QUARTERS
    ]
    answer = solver(state)(np.array(places) @ np.linalg.inv(to_part), near=state)
    assert answer.success.any(), answer
    there = moved(state, answer.q[answer.success.argmax()])
    return there.release(name).joints({"gripper/opening": OPEN})


def motion(state, goal):
    """Return a motion of the arm to where it is in another state."""
    plan = cell.planner(cell.collision(state))(state, goal.joints(fingers(state)).q)
    assert plan.proven, plan
    return plan.timed(acceleration=5.0)


def fingers(state):
    """Return where the fingers are."""
    return {"gripper/opening": state.q[cell.joint_names.index("gripper/opening")]}


state = filled()
history = [state]
motions = []
left = list(names)
while left:
    grip = picked(state, left)
    if grip is None:
        break
    name, gripped = grip
    motions.append(motion(state, gripped))
    way = lifted(gripped)
    state = put_down(way[-1], name, PARTS - len(left))
    motions.append(motion(way[-1], state))
    history += [gripped, *way, state]
    left.remove(name)
print(f"{PARTS - len(left)} parts are out of the bin, {len(left)} cannot be gripped")
seconds = sum(each.duration for each in motions)
print(f"{len(motions)} motions were planned, {seconds:.1f} s in all")

# The check: nothing touches in any state, parts in the bin did not move meanwhile, and
# grasps that are said to touch do so.
for each in history:
    assert cell.violations(each) == (), cell.violations(each)
for each in motions:
    check = cell.collision(each.state(0.0))
    assert not check(each.sampled(rate=200).q).any()
for name in left:
    X = cell.pose(f"{name}/block", state)
    assert np.array_equal(X, cell.pose(f"{name}/block", history[0]))
outside = [cell.pose(f"{name}/block", state) for name in names if name not in left]
assert len(outside) > 1
assert all(X[1, 3] < -0.3 for X in outside)
first = solver(history[0], margin=GAP / 2)
targets = np.array([grasps(history[0], name) for name in names])
answer = first(targets)
every = cell.ik("tcp", joints=ARM, state=history[0]).all(targets)
check = cell.collision(history[0], margin=GAP / 2)
whole = cell.device(joints=ARM, state=history[0]).whole(np.nan_to_num(every.q))
some = (every.success & ~check(whole)).any(axis=-1)
assert np.array_equal(answer.success, some)
