"""Grip a part, carry it, put it down: states are values, and nothing is compiled."""

from __future__ import annotations

import time

import numpy as np

import armillary as arm

cell = arm.example("oval_track_cell")
home = cell.home
print("the part is mounted on", home.parent("part"))

# Bring the gripper to where the part is to be gripped.
ik = cell.ik("tcp", joints=cell.joint_names[:7])
answer = ik(cell.pose("grasp", home), near=home.q[:7])
assert answer.success, answer
there = home.joints(dict(zip(ik.joints, answer.q.tolist(), strict=True)))

# `grip` keeps the part where it is in the world; from then on it follows.
began = time.perf_counter()
gripped = there.joints({"opening": 0.0255}).grip("part", by="gripper/tcp")
print(f"gripped in {1e3 * (time.perf_counter() - began):.2f} ms")
offset = cell.pose("block", gripped, relative_to="tcp")

# A history is a list of states. The cart drives off, the part with it.
history = [gripped.joints({"cart": s}) for s in np.linspace(0, 4, 9)]
for state in history:
    x, y, z = cell.pose("block", state)[:3, 3]
    print(f"cart at {state.q[0]:6.3f} m   part at {x:7.4f} {y:7.4f} {z:7.4f}")
    assert np.allclose(cell.pose("block", state, relative_to="tcp"), offset, atol=1e-12)

# A part that is attached already, or would be attached to itself, is refused.
for attempt in (
    lambda: gripped.grip("part", by="tool0"),
    lambda: gripped.grip("part", by="grasp", replace=True),
):
    try:
        attempt()
    except arm.errors.StateError as refusal:
        print("refused:", refusal)
    else:
        raise AssertionError("this must be refused")

# Attachments decide what is tested for collision: the fingers may touch the part.
print(cell.pairs(there).why("part/block", "gripper/left_finger"))
print(cell.pairs(gripped).why("part/block", "gripper/left_finger"))
assert not cell.pairs(gripped).why("part/block", "gripper/left_finger").tested

# Let go, it stays; a state can be sent anywhere and is the same there.
free = history[-1].release("part")
away = free.replace(q=home.q)
assert np.allclose(cell.pose("block", away), cell.pose("block", history[-1]))
assert cell.bind(arm.State.from_json(away.to_json())) == away
print("released; the part is attached to", away.parent("part"))
