"""Arms of example-robot-data: random targets, and those that are hard on purpose."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import armillary as arm
from armillary.cell.device import Device
from benchmarks.measure import fewer
from benchmarks.robots import SHARE, panda, ur5, urdf_files

# Each arm once: the file, and the frame at the end of 5 to 8 joints.
ARMS = {
    "Alex, left arm": ("alex_sake_hands", "LeftWristYawIMULink"),
    "Alex, head": ("alex_sake_hands", "Head"),
    "Baxter, left arm": ("baxter", "left_hand_camera_link"),
    "Baxter, left finger": ("baxter", "l_gripper_l_finger_tip"),
    "Centauro, left arm": ("centauro", "ball1_tip"),
    "flying arm": ("hextilt_flying_arm_5", "flying_arm_5__gripper"),
    "G1, left leg": ("g1_29dof_rev_1_0", "left_ankle_roll_link"),
    "iCub, left arm": ("icub", "l_forearm_dh_frame"),
    "iCub, left upper arm": ("icub", "l_upper_arm_dh_frame"),
    "iCub, head": ("icub", "imu_frame"),
    "Kinova Jaco 2": ("kinova", "j2s6s200_end_effector"),
    "Panda": ("panda", "panda_hand_tcp"),
    "Panda, finger": ("panda", "panda_leftfinger"),
    "PR2, left arm": ("pr2", "l_gripper_led_frame"),
    "PR2, left forearm": ("pr2", "l_forearm_cam_optical_frame"),
    "Romeo, left arm": ("romeo", "l_gripper"),
    "SO-100": ("so100", "jaw"),
    "SO-101": ("so101", "gripper_frame_link"),
    "Talos, left arm": ("talos_left_arm", "gripper_left_motor_double_link"),
    "Talos, left leg": ("talos_full_v2", "left_sole_link"),
    "TIAGo": ("tiago", "hand_tool_link"),
    "TIAGo dual, left arm": ("tiago_dual", "hand_left_tool_link"),
    "UR3": ("ur3_robot", "ee_link"),
    "UR5": ("ur5_robot", "ee_link"),
    "UR10": ("ur10_robot", "ee_link"),
    "xArm 7": ("xarm7", "link_eef"),
    "Z1": ("z1", "gripperMover"),
}
MANY = fewer(100_000)
HARD = 2_000
BOUNDS = np.pi  # where a joint has no nearer limit [rad]
HEADER = f"{'':48}{'solved':>10}{'mean time':>12}   reasons"


def report() -> Iterator[str]:
    """Yield the table of all arms, then that of hard targets."""
    yield f"10000 random targets each, one thread, numeric\n{HEADER}"
    for _, _, line in random_arms(10_000):
        yield line
    yield f"\n{HARD} hard targets each, one thread\n{HEADER}"
    for name, robot in {"Panda": panda(), "UR5": ur5()}.items():
        device = robot.cell.device(joints=robot.joints, base="world", ends=robot.tip)
        for what, targets in hard_targets(device).items():
            methods = ["numeric"] + ["closed"] * (device.ik().closed is not None)
            for method in methods:
                yield solved(device, targets, f"{name}, {what}, {method}", method)[1]


def random_arms(count: int) -> Iterator[tuple[str, float, str]]:
    """Yield for each arm its name, the share of random targets solved, and a line."""
    files = {path.stem: path for path in urdf_files()}
    for name, (stem, tip) in ARMS.items():
        cell = arm.load(files[stem], packages={"example-robot-data": SHARE})
        device = cell.device(base="world", ends=tip)
        what = f"{name} ({len(device.joint_names)} joints)"
        targets = device.fk()(random_q(device, count))
        yield name, *solved(device, targets, what, "numeric")


def solved(
    device: Device, targets: np.ndarray, what: str, method: str
) -> tuple[float, str]:
    """Return the share of targets solved, and a line with the time and the reasons."""
    ik = device.ik()
    ik(targets[:1], method=method)  # compiles
    took = np.inf
    for _ in range(2):
        start = time.perf_counter()
        answer = ik(targets, method=method, threads=1)
        took = min(took, time.perf_counter() - start)
    share = float(answer.success.mean())
    reasons = ", ".join(f"{name} {count}" for name, count in answer.summary().items())
    mean = f"{1e6 * took / len(targets):.2f} us"
    return share, f"{what:<48}{share:>10.2%}{mean:>12}   {reasons}"


def random_q(device: Device, count: int, seed: int = 0) -> np.ndarray:
    """Return joint vectors within limits, shape (count, n)."""
    lower, upper = (np.clip(limit, -BOUNDS, BOUNDS) for limit in device.limits)
    return np.random.default_rng(seed).uniform(lower, upper, (count, len(lower)))


def hard_targets(device: Device) -> dict[str, np.ndarray]:
    """Return poses that are hard to reach, or cannot be, by what makes them so."""
    fk, random = device.fk(), np.random.default_rng(2)
    lower, upper = (np.clip(limit, -BOUNDS, BOUNDS) for limit in device.limits)
    q = random_q(device, MANY, 3)
    poses = fk(q)
    distance = np.linalg.norm(poses[:, :3, 3], axis=1)
    J = device.jacobian()(q)
    least = np.linalg.svd(J @ J.swapaxes(1, 2), compute_uv=False)[:, -1]
    ends = np.where(random.random((HARD, len(lower))) < 0.5, lower, upper)
    held = random.random(ends.shape) < 0.5
    quarters = np.round(q[:HARD] / (np.pi / 2)) * (np.pi / 2)
    far = poses[:HARD].copy()
    reach = distance.max() * random.uniform(1.02, 2.0, HARD)
    far[:, :3, 3] *= (reach / distance[:HARD])[:, None]
    return {
        "the farthest 2 %": poses[np.argsort(distance)[-HARD:]],
        "the most singular 2 %": poses[np.argsort(least)[:HARD]],
        "at quarter turns": fk(np.clip(quarters, lower, upper)),
        "half of the joints at limits": fk(np.where(held, ends, q[:HARD])),
        "all joints at limits": fk(ends),
        "2 to 100 % beyond the farthest": far,
        "in the foot of the arm": in_the_foot(poses[:HARD], random),
    }


def in_the_foot(poses: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return poses within 5 cm of the base, which most arms cannot reach."""
    inside = poses.copy()
    inside[:, :3, 3] = random.uniform(-0.03, 0.03, (len(poses), 3))
    return inside
