"""From one compartment of a shelf into another, around its boards.

An arm on a rail reaches into compartments, all of whose answers of inverse kinematics
are goals. Each motion is planned, proven to touch nothing, and timed. With a name,
`python shelf_to_shelf.py shelf.html`, it writes a page that plays them.
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm

WIDTH, DEPTH, THICK = 2.4, 0.4, 0.02  # of the shelf [m]
SHELVES = (0.3, 0.75, 1.2, 1.65)  # how high its boards are [m]
SIDES = (0.8, 1.6, 2.4, 3.2)  # where its walls are, along the rail [m]
FRONT = 0.65  # how far it stands from the rail [m]
INSIDE = 0.12  # how far the tool reaches in [m]
MARGIN = 0.01  # how far links are to stay apart [m]


def board(size, x, y, z):
    return arm.shapes.Box(size=size, pose=arm.Pose.translation(x, y, z))


def shelf():
    """Return a shelf that faces the rail, which goes along x."""
    low, high = SHELVES[0], SHELVES[-1]
    y, middle, tall = FRONT + DEPTH / 2, (low + high) / 2, high - low + THICK
    boards = [board((WIDTH, DEPTH, THICK), 2, y, z) for z in SHELVES]
    walls = [board((THICK, DEPTH, tall), x, y, middle) for x in SIDES]
    back = board((WIDTH, THICK, tall), 2, FRONT + DEPTH, middle)
    return arm.Manipulator(
        name="shelf",
        links=[arm.Link(name="body", collisions=[*boards, *walls, back])],
    )


def inside(column, row):
    """Return a pose of the tool in a compartment, z into it."""
    x = (SIDES[column] + SIDES[column + 1]) / 2
    z = (SHELVES[row] + SHELVES[row + 1]) / 2
    into = arm.Pose.translation(x, FRONT + INSIDE, z)
    return (into @ arm.Pose.rotation_x(-np.pi / 2)).matrix()


cell = arm.example("ur10_on_rail").add(shelf())
assert not cell.violations(cell.home)
check = cell.collision(margin=MARGIN)
planner = cell.planner(check)
places = [inside(0, 2), inside(1, 0), inside(2, 2), inside(1, 1), inside(0, 0)]
plans, q = [], cell.home.q
for place in places:
    plan = planner(q, place, frame="tool0")
    print(plan)
    assert plan.success
    plans.append(plan)
    q = plan.q[-1]
motions = [plan.timed(acceleration=4.0) for plan in plans]
whole = motions[0].then(*motions[1:], pause=0.3)
print(f"{whole.duration:.1f} s in all, with pauses of 0.3 s")

# The check: the tool is where it was sent, ways have way points where the straight
# motion of joints would touch, and nothing is nearer than the margin anywhere.
for place, plan, motion in zip(places, plans, motions, strict=True):
    assert plan.proven
    assert np.abs(cell.fk("tool0")(plan.q[-1]) - place).max() < 1e-5
    samples = motion.sampled(rate=250).q
    assert check.clearance(samples).min() > MARGIN - 1e-9
    assert np.abs(samples[[0, -1]] - plan.q[[0, -1]]).max() < 1e-9
direct = check.motion([each.q[0] for each in plans], [each.q[-1] for each in plans])
assert not direct.free.all()
assert (direct.free == [len(each.q) == 2 for each in plans]).all()

if len(sys.argv) > 1:
    cell.export(sys.argv[1], motion=whole)
