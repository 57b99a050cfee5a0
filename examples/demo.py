"""The main job: an arm on a track grips a part, refuses to hit a stand, follows a path.

Then a box is pushed through the cell: the arm avoids it and returns to its path. Last,
a motion past the box is planned, which takes the part back to where that began.

`make demo` runs this. Every figure is measured on the machine it runs on. At the end
the viewer shows the arm and the box, if there are viser, a terminal and a browser;
`--no-view` leaves it out. `make demo ARGS=box.html` writes a page that shows them.
"""

from __future__ import annotations

import math
import sys
import webbrowser

import numpy as np

import armillary as arm
from armillary import tasks
from armillary.cli.bench import first_kernels, random_vectors, seconds
from armillary.cli.info import described
from armillary.collision.motion import MotionReason
from armillary.errors import ViewError
from armillary.ik.solution import Solution

COUNT = 1_000_000
FRAME = "tool0"


class MyTrack(arm.Joint, frozen=True):
    """The oval track once more, as a user writes it: plain Python, with `if`."""

    straight: float  # [m]
    radius: float  # [m]
    unit = arm.METRE  # q is the distance travelled

    def pose(self, q):
        """Return where the cart is after the distance q, heading along the track."""
        bend = math.pi * self.radius
        lap = 2 * (self.straight + bend)
        s = q + self.straight / 2
        s = s - lap * np.floor(s / lap)
        if s < self.straight:
            x, heading = s - self.straight / 2, 0.0
        elif s < self.straight + bend:
            x, heading = self.straight / 2, (s - self.straight) / self.radius
        elif s < 2 * self.straight + bend:
            x, heading = self.straight * 1.5 + bend - s, math.pi
        else:
            x, heading = -self.straight / 2, (s - 2 * self.straight) / self.radius
        centre = arm.Pose.translation(x, 0, 0) @ arm.Pose.rotation_z(heading)
        return centre @ arm.Pose.translation(0, -self.radius, 0)


def with_joint(cell: arm.Cell, joint: arm.Joint) -> arm.Cell:
    """The cell with another joint under the cart."""
    track = cell.manipulators[0]
    cart = track.link("cart").replace(joint=joint)
    return cell.exchange(track.exchange(cart))


def print_result(name: str, answer: Solution, *more: str) -> None:
    """Print how many targets ended for which reason, and more."""
    reasons = answer.summary().items()
    lines = [f"{count:6,} {arm.Reason[reason].sentence}" for reason, count in reasons]
    for line in (*lines, *more):
        print(f"{name:17}{line}")
        name = ""


def title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")
    print("─" * len(text))


def numbers(values: np.ndarray) -> str:
    """Lengths in a row, aligned."""
    return " ".join(f"{round(value, 4) + 0.0:8.4f}" for value in values)


cell = arm.example("oval_track_cell")
title("The cell: an arm on an oval track, a gripper, a stand, a part")
for line in described(cell):
    print(line)

home = cell.home
ik = cell.ik("tcp", joints=cell.joint_names[:7])  # the track and the arm


def reach(state: arm.State, target: np.ndarray) -> arm.State:
    """The state with the gripper at a target, the joints near where they were."""
    answer = ik(target, near=state.q[:7])
    assert answer.success, answer
    return state.joints(dict(zip(ik.joints, answer.q.tolist(), strict=True)))


def part(state: arm.State, frame: str = "world") -> np.ndarray:
    """The pose of the part in a frame."""
    return cell.pose("part/block", state, relative_to=frame)


title("Gripping the part and putting it down elsewhere")
grasp = cell.pose("grasp", home)
there = reach(home, grasp)
gripped = there.joints({"opening": 0.0255}).grip("part", by="gripper/tcp")
carried = gripped.joints({"track/cart": 5.0, "shoulder_pan": -0.5, "elbow": 1.0})
aside = arm.Pose.translation(0.12, 0, 0).matrix() @ grasp
free = reach(gripped, aside).release("part").joints({"opening": 0.035})
gone = free.replace(q=home.q)
print(
    f"{'':26}{'attached to':12}{'part in the world [m]':>28}{'in the gripper [m]':>28}"
)
for what, state in {
    "it lies on its stand": there,
    "gripped": gripped,
    "carried around the bend": carried,
    "put down and released": free,
    "the arm is back at home": gone,
}.items():
    places = [numbers(part(state, frame)[:3, 3]) for frame in ("world", "tcp")]
    print(f"{what:26}{state.parent('part'):12}{places[0]:>28}{places[1]:>28}")

title("Driving past the stand while the arm reaches out")
beside = home.joints({"track/cart": -1.2})
check = cell.collision(beside)
reach_out = cell.ik("tcp", joints=cell.joint_names[1:7], state=beside, avoid=check)
motions = {}
for height in (0.45, 0.9):
    ahead = arm.Pose.translation(-1.2, -1.6, height) @ arm.Pose.rotation_x(math.pi / 2)
    answer = reach_out(ahead.matrix(), near=beside)
    assert answer.success, answer
    q = dict(zip(reach_out.joints, answer.q.tolist(), strict=True))
    start = beside.joints(q)
    goal = start.joints({"track/cart": 1.2})
    motion = check.motion(start.q, goal.q)
    passed = np.linspace(start.q, goal.q, 241)  # the cart moves 10 mm each
    clearance = check.clearance(passed)
    said = f"proven free; nearest is {clearance.min():.3f} m, of 241 samples"
    if not motion.free:
        first, worst = check.contacts(motion.q, within=1e-5)[0], clearance.argmin()
        x, y, z = first.points[0] + 0.0
        said = f"refused: {first.links[0]} would touch {first.links[1]}\n{'':15}"
        said += f"at ({x:.3f}, {y:.3f}, {z:.3f}) m, the cart being at "
        said += f"{motion.q[0]:.4f} m; at worst, at {passed[worst][0]:.2f} m:\n{'':15}"
        said += f"{check.contacts(passed[worst])[0]}"
    print(f"{height:.2f} m high    {said}")
    motions[height] = motion

title("Following a path around the track with all seven joints")
s = np.linspace(0, 2 * (3 + math.pi), 10_000)  # one lap [m]
offsets = np.tile(np.diag([-1.0, 1.0, -1.0, 1.0]), (len(s), 1, 1))
offsets[:, 1, 3] = -0.45  # outside of the track, heading on, pointing down
offsets[:, 2, 3] = 0.3 + 0.1 * np.sin(3 * s)
path = cell.fk("plate", joints=["track/cart"])(s[:, None]) @ offsets
start = ik(path[0], near=home.q[:7]).q
answer, jumps = ik.path(path, start=start)
took = seconds(lambda: ik.path(path, start=start))
off = answer.residual.max(axis=0)
errors = f"at most {1e6 * off[0]:.1f} um and {1e6 * off[1]:.1f} urad off"
rate = f"{len(s) / took / 1e6:.2f} million poses per second"
print_result(
    "once around",
    answer,
    f"{len(jumps):6} jumps; {errors}",
    f"{1e3 * took:6.1f} ms   {rate}",
)
up = path[:1].repeat(61, axis=0)
up[:, 2, 3] += np.linspace(0, 6, 61)
leaving, _ = ik.path(up, start=start)
print_result("6 m straight up", leaving)

title("Following a target while a box is pushed through the cell")
RATE, MARGIN, SPEED = 250.0, 0.02, 0.3  # [1/s], [m], of the target [m/s]
BOX, PUSHED = (0.4, 0.4, 0.3), np.array([-0.15, 0.0, 0.0])  # [m], [m/s]
control = cell.controller(
    [tasks.Frame("tcp"), tasks.Posture()],
    avoid=cell.collision(gripped, margin=MARGIN),
    acceleration=15.0,  # [m/s^2 and rad/s^2]
    rate=RATE,
    joints=ik.joints,
    state=gripped,
)
plate = cell.fk("plate", joints=["track/cart"])


def moving_target(time: float) -> np.ndarray:
    """Where the tool is to be: along the far side of the track, up and down."""
    along = 4.9 + SPEED * time
    pose = plate([along]) @ offsets[0]
    pose[2, 3] += 0.05 * math.sin(3 * along)
    return pose


def target_rate(time: float) -> np.ndarray:
    """How fast the target moves and turns [m/s and rad/s]."""
    before, after = moving_target(time - 1e-3), moving_target(time + 1e-3)
    turn = (after - before)[:3, :3] @ moving_target(time)[:3, :3].T / 2e-3
    spin = turn[2, 1], turn[0, 2], turn[1, 0]
    return np.array([*(after - before)[:3, 3] / 2e-3, *spin])


def box_pose(time: float) -> np.ndarray:
    """Where the box is, turned by 0.4 rad."""
    at = np.array([0.0, 1.75, 0.75]) + PUSHED * (time - 4.0)
    return (arm.Pose.translation(*at) @ arm.Pose.rotation_z(0.4)).matrix()


def box(time: float) -> arm.Obstacles:
    """The box, as an obstacle that comes and goes."""
    return arm.Obstacles.boxes([box_pose(time)], BOX, PUSHED)


began = reach(gripped.joints({"track/cart": 4.9}), moving_target(0.0))
pushed = control.simulate(
    began.q,
    [moving_target, None],
    2250,
    target_rates=[target_rate, None],
    obstacles=box,
)
wanted = np.array([moving_target(time) for time in pushed.time])
late = 1e3 * np.linalg.norm((cell.fk("tcp")(pushed.q) - wanted)[:, :3, 3], axis=1)
changes = np.flatnonzero(np.diff(pushed.reason, prepend=-1))
for k, what in zip(changes, pushed.active[changes], strict=True):
    name = arm.RateReason(pushed.reason[k]).name
    print(f"{pushed.time[k]:6.3f} s  {name:10}{'; '.join(what)}")
avoiding = np.flatnonzero(pushed.reason == arm.RateReason.AVOIDING)
first, last = avoiding[0], avoiding[-1]
back = last + np.argmax(late[last:] < 1.0)
for name, part_of in {
    "before": slice(first),
    "while it avoids the box": slice(first, back),
    "back on the path": slice(back, None),
}.items():
    off = late[part_of]
    print(f"{name:20}{off.min():6.1f} to {off.max():5.1f} mm from the target")
stranger = arm.Link(name="box", collisions=[arm.shapes.Box(size=BOX)])
others = [*cell.manipulators, arm.Manipulator(name="stranger", links=[stranger])]
judge = cell.replace(manipulators=others)
seen = judge.home.replace(q=gripped.q).grip("part", by="gripper/tcp")
apart = [
    judge.collision(seen.place("stranger", box_pose(t))).clearance(q)
    for t, q in zip(pushed.time[::10], pushed.q[::10], strict=True)
]
print(f"least distance: {1e3 * pushed.distance.min():.2f} mm by the controller, of all")
print(f"      {1e3 * min(apart):.2f} mm by collision checks with the box in the cell")

title("Planning the way back, past the box where it was after 6 s")
behind = seen.replace(q=pushed.q[-1]).place("stranger", box_pose(6.0))
goal = began.q
planner = judge.planner(judge.collision(behind, margin=MARGIN))
back_home = planner(behind, goal)
assert back_home.success, back_home
planned = back_home.timed(acceleration=3.0)
took = seconds(lambda: planner(behind, goal))
how = "proven to be free" if back_home.proven else "free at samples"
print(f"{len(back_home.q)} way points, {how}, found in {1e3 * took:.1f} ms")
print(f"{planned.duration:.2f} s at 3 m/s^2 and rad/s^2; straight on, it would touch")

title("Torques that hold the arm along that path, at most [N m]")
limits = cell.effort_limits[:7]
holding = {"without the part": gripped.release("part"), "with the part": gripped}
most = {}
print(f"{'':24}{'limit':>8}" + "".join(f"{name:>20}" for name in holding))
for name, state in holding.items():
    torque = cell.gravity_torque(joints=ik.joints, state=state)
    most[name] = np.abs(torque(answer.q)).max(axis=0)
for k in range(1, 7):
    row = f"{ik.joints[k]:24}{limits[k]:>8.0f}"
    print(row + "".join(f"{each[k]:>20.2f}" for each in most.values()))

title(f"Compiling the pose of {FRAME}")
cold, cached, whole = first_kernels(cell, FRAME)
fk = cell.fk(FRAME)
print(f"{fk.program.operation_count} operations, {fk.lanes} poses per instruction")
print(f"first time    {1e3 * cold:8.1f} ms   traced, compiled by LLVM, kept on disk")
print(f"ever after    {1e3 * cached:8.1f} ms   traced, loaded from there")
print(f"a new process {1e3 * whole:7.1f} ms   of processor time until then")

title(f"{COUNT:,} random joint vectors")
Q = random_vectors(cell, COUNT)
Q[:, 0] *= 5  # [m], laps of the track
X = np.empty((COUNT, 4, 4))
for name, threads in {"one thread": 1, "all threads": None}.items():
    took = seconds(lambda: fk(Q, out=X, threads=threads))  # noqa: B023
    rate = COUNT / took / 1e6
    print(f"{name:14}{1e3 * took:8.1f} ms   {rate:.1f} million poses per second")
print(f"{'one call':14}{1e6 * seconds(lambda: fk(Q[0])):8.2f} us   a new 4x4 array")

title("What a joint of your own costs: one thread, per pose")
some = Q[:10_000]  # short calls fit between the work of others
out = np.empty((len(some), 4, 4))
joints = {
    "the oval track that is built in": arm.joints.OvalTrack(straight=3.0, radius=1.0),
    "the oval track written in this file": MyTrack(straight=3.0, radius=1.0),
}
kernels = {name: with_joint(cell, joint).fk(FRAME) for name, joint in joints.items()}
times = dict.fromkeys(joints, math.inf)
for name, kernel in [*kernels.items()] * 3:  # by turns: other work disturbs all alike
    took = seconds(lambda: kernel(some, out=out, threads=1))  # noqa: B023
    times[name] = min(times[name], took / len(some))
base = times["the oval track that is built in"]
for name, took in times.items():
    print(f"{name:36}{1e9 * took:6.1f} ns   {took / base:5.2f} times")


# The check. The part stays where it is while it is gripped and released, and with the
# gripper in between; it was put down 0.12 m aside.
assert np.allclose(part(gripped), part(home), rtol=0, atol=1e-12)
assert np.allclose(part(carried, "tcp"), part(gripped, "tcp"), rtol=0, atol=1e-12)
assert np.linalg.norm(part(carried)[:3, 3] - part(gripped)[:3, 3]) > 1
assert np.allclose(part(gone), part(free), rtol=0, atol=1e-12)
assert np.allclose(part(gone)[:3, 3] - part(home)[:3, 3], [0.12, 0, 0], atol=2e-6)

# The low motion touches the stand, and nothing before; the high one nothing at all.
low, high = motions.values()
assert high.free
assert low.reason == MotionReason.CONTACT
assert "stand/table" in check.contacts(low.q, within=1e-5)[0].links

# Every pose of the path is reached, in small steps.
reached = cell.fk("tcp", joints=ik.joints)(answer.q)
assert np.abs(reached - path).max() < 2e-6
assert not len(jumps)
assert np.abs(np.diff(answer.q, axis=0)).max() < 0.01
assert leaving.success[0]
assert leaving.reason[-1] == arm.Reason.OUT_OF_REACH

# The box is kept away from, by what is seen in the way only; then the arm is back.
assert pushed.distance.min() > MARGIN - 5e-4
assert min(apart) > MARGIN
assert 0 < first < last <= back < len(late) - 100
assert all("obstacle 0" in what[0] for what in pushed.active[avoiding])
assert not np.isin(pushed.reason, [arm.RateReason.PUSHED, arm.RateReason.INSIDE]).any()
assert late[first:back].max() > 50.0
assert max(late[:first].max(), late[back:].max()) < 2.0  # it starts at rest
assert np.abs(np.diff(pushed.qd, axis=0)).max() <= 15.0 / RATE * (1 + 1e-9)

# The way back is as far from the box and all else as is asked; a straight one is not.
way_back = planned.sampled(rate=250).q
passing = judge.collision(behind, margin=MARGIN)
assert passing.clearance(way_back).min() > MARGIN - 1e-9
assert np.abs(way_back[-1] - goal).max() < 1e-9
assert not passing.motion(behind.q, goal).free

# The part hangs on the tool: at the shoulder it can weigh no more than at full reach.
more = most["with the part"] - most["without the part"]
part_mass = cell.carried("tcp", gripped).mass
assert part_mass == 0.4
assert 0 < more[2] < part_mass * 9.81 * 1.2

# UR's sums for the stretched arm, 1 m out on the rim of the track, on a plate 0.5 m
# high; then a million rigid poses; then the joint of our own.
stretched = fk(np.zeros(8))[:3, 3]
assert np.allclose(stretched, [-0.8172, -0.2329 - 1.0, 0.0628 + 0.5], atol=1e-12)
fk(Q, out=X)
R = X[:, :3, :3]
assert np.abs(R @ R.swapaxes(1, 2) - np.eye(3)).max() < 1e-13
assert np.array_equal(X[123_456], fk(Q[123_456]))
built_in, own = kernels.values()
assert np.abs(built_in(some) - own(some)).max() < 1e-12
print(
    "\nchecked: the part followed and stayed, the stand was not hit, the whole path is"
)
print(
    "         reached, the arm's data sheet, a million rigid poses, both tracks agree"
)


def shown() -> tuple[list[arm.State], list[float]]:
    """What the viewer plays: the box that is pushed, then the way back."""
    some = slice(None, None, 8)
    states = [
        seen.replace(q=q).place("stranger", box_pose(time))
        for time, q in zip(pushed.time[some], pushed.q[some], strict=True)
    ]
    later = np.arange(0.0, planned.duration, 1 / 30)
    states += [planned.state(time) for time in later.tolist()]
    times = [*pushed.time[some], *(pushed.time[-1] + later)]
    return states, times


def show() -> None:
    """Show arm and box in the browser, until Ctrl-C."""
    try:
        webbrowser.get()
    except webbrowser.Error:
        print("\nno browser to show this in; with one, the demo ends by opening it")
        return
    try:
        viewer = judge.view(seen)
    except ViewError as error:
        print(f"\n{error}")
        return
    with viewer:
        states, times = shown()
        viewer.play(states, times=times)
        print(f"\nthe arm avoids the box at {viewer.address}  (Ctrl-C ends this)")
        viewer.open()
        viewer.wait()


pages = [each for each in sys.argv[1:] if each.endswith(".html")]
for page in pages:
    states, times = shown()
    judge.export(page, state=seen, motion=states, times=times)
    print(f"\n{page} shows how the arm avoids the box")
is_shown = sys.stdin.isatty() and sys.stdout.isatty() and not pages
if is_shown and "--no-view" not in sys.argv[1:]:
    show()
