"""What the loop of a planner reads and writes: structures in memory."""

from __future__ import annotations

from typing import Final

from armillary.kernel.machine_type import F64, I64, PTR
from armillary.kernel.memory import Struct

__all__ = [
    "CALL",
    "FOUND",
    "FULL",
    "GOAL_TOUCHES",
    "GROUP",
    "LATE",
    "MOST_GOALS",
    "PATH_ROOM",
    "PAUSED",
    "SETUP",
    "STACK",
    "START_TOUCHES",
    "TREE",
    "WORK",
]

FOUND, START_TOUCHES, GOAL_TOUCHES, LATE, FULL, PAUSED = range(6)
"""How a problem ends; `FULL` where the trees have no room left. One that is `PAUSED`
goes on where it was when it is asked for again."""

PATH_ROOM: Final = 4096
"""Way points of a way, before it is shortened, and points of a curve."""

MOST_GOALS: Final = 16
"""Constraints at once for which there is room."""

GROUP: Final = 4
"""Blocks of nodes that are compared at once."""

STACK: Final = 2048
"""Pieces of a motion that wait for their proof."""

SETUP: Final = Struct.of(
    n=(I64, 1),  # joints
    check=(PTR, 1),  # columns of q -> what touches; see `edges.py`
    check_tables=(PTR, 2),  # where what is nearly touching counts; where it does not
    prove=(PTR, 1),  # columns of both ends -> how far it is free; 0 for none
    prove_tables=(PTR, 1),
    quick=(PTR, 1),  # columns of pieces -> whether links may touch in them; 0 for none
    quick_tables=(PTR, 1),
    project=(PTR, 1),  # columns of q -> q that satisfies constraints; 0 for none
    project_tables=(PTR, 1),
    near=(PTR, 1),  # columns of q -> errors of constraints, by tolerances
    near_tables=(PTR, 1),
    holds=(PTR, 1),  # columns of both ends -> whether constraints hold; 0 for none
    holds_tables=(PTR, 1),
    goals=(I64, 1),  # errors of a row
    part=(F64, 1),  # of tolerances, which middles of motions may use up
    weights=(PTR, 1),  # of joints in lengths of motions, reals of 64 bits
    inverse=(PTR, 1),  # of these
    lower=(PTR, 1),  # least joint positions
    upper=(PTR, 1),  # greatest
    least=(PTR, 1),  # least sample, weighted, reals of trees
    span=(PTR, 1),  # greatest less least
    steps=(PTR, 1),  # what a sample adds to that before, integers of 64 bits
    rows=(I64, 1),  # limits that couple joints: a'q <= b with a'a = 1
    slopes=(PTR, 1),  # a of each
    ends=(PTR, 1),  # b of each
    depth=(F64, 1),  # how far within them samples are put
    resolution=(F64, 1),  # samples of an edge for each unit of its length
    pieces=(F64, 1),  # pieces that are proven at first for each unit of length
    reach=(F64, 1),  # greatest length of an edge of a tree
    radius=(F64, 1),  # where a node that an edge failed at is extended, at first
    least_radius=(F64, 1),
    growth=(F64, 1),  # part by which that changes
    corner=(F64, 1),  # corners that move less are left alone
    room=(I64, 1),  # nodes of a tree
    most=(I64, 1),  # samples
    wide_samples=(I64, 1),  # after so many, what is nearly touching does not count
    path_room=(I64, 1),  # way points
    clock=(PTR, 1),  # clock_gettime
    clock_id=(I64, 1),
)
"""What is planned with, for any number of problems."""

CALL: Final = Struct.of(
    start=(PTR, 1),
    goals=(PTR, 1),
    goal_count=(I64, 1),
    seed=(I64, 1),
    deadline=(I64, 1),  # when to stop [ns], 0 for never
    path=(PTR, 1),  # room for way points
    verdicts=(PTR, 1),  # of start and goals: 1 where it touches
    improve=(I64, 1),  # until when a way is made shorter [ns], 0 for not at all
    pause=(I64, 1),  # when a search pauses [ns], 0 for never
    is_paused=(I64, 1),  # whether it has; 0 for a new problem
    rounds=(I64, 1),  # of a search
    which=(I64, 1),  # the tree that grew last
    met=(I64, 1),  # nodes of the way in the first tree; 0 of a straight motion
    sure=(I64, 1),  # whether edges of trees are proven
    tight=(I64, 1),  # which tables of the check are used
    exact=(I64, 1),  # whether edges count that only exact proofs find to be free
    most=(I64, 1),  # samples of a search
    bound=(F64, 1),  # samples of longer ways are not wanted; 0 for all of them
    status=(I64, 1),
    count=(I64, 1),  # way points
    goal=(I64, 1),  # which goal is reached
    edges=(I64, 1),  # edges that were tested
    checks=(I64, 1),  # joint positions that were
    proofs=(I64, 1),  # motions that were to be proven
    samples=(I64, 1),
    nodes=(I64, 1),
    length=(F64, 1),
)
"""A problem, and what is found."""

TREE: Final = Struct.of(
    x=(PTR, 1),  # positions: for each block of nodes a vector for each joint
    parent=(PTR, 1),  # the node before; -1 - k for root k
    radius=(PTR, 1),  # up to where samples extend it
    roots=(PTR, 1),  # joint positions of roots
    count=(I64, 1),
)
"""A tree of joint positions."""

WORK: Final = Struct.of(
    tree=(PTR, 2),
    spare=(PTR, 2),  # trees of detours
    columns=(PTR, 1),  # of the check
    found=(PTR, 1),
    ramp=(PTR, 1),  # (k + 1) / lanes
    ends=(PTR, 2),  # columns of the prover
    how_far=(PTR, 1),
    rates=(PTR, 1),  # columns of rates, and how far pieces reach, of quick proofs
    half=(PTR, 1),
    surface=(PTR, 2),  # columns of the projection: given, and found
    missed=(PTR, 1),
    errors=(PTR, 1),  # columns of those of constraints
    points=(PTR, 1),  # of the curve of a motion along constraints
    times=(PTR, 1),  # where they are, of the whole
    gaps=(PTR, 1),  # whether a motion between two is to be halved
    open=(PTR, 1),  # the numbers of those that are
    middles=(PTR, 1),  # of these
    stack=(PTR, 2),  # of pieces: middle, and how far they reach
    a=(PTR, 1),  # an edge: from where, and how far; reals of trees
    v=(PTR, 1),
    sample=(PTR, 1),  # weighted positions
    target=(PTR, 1),
    step=(PTR, 1),
    rows=(PTR, 2),  # joint positions
    raw=(PTR, 1),  # way points before corners were cut
    nodes=(PTR, 1),  # of trees, of which these are
    detour=(PTR, 1),  # way points in place of a motion
    best=(PTR, 1),  # those of the shortest way so far
    counter=(PTR, 1),  # of samples
)
"""Memory of a thread, which problems use one after the other."""
