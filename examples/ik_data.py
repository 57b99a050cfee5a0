# needs: sweep
"""A data set for learning: poses of a tool, and the joint positions that reach them.

Two sweeps fill two Zarr groups: poses at random joint positions, and the answers of
inverse kinematics to those poses, nearest to home. Run it again and it continues, or
finds that all rows are there. Ten million rows take a minute and 1.2 GB. The groups are
read back with zarr, and with xarray and torch where these are installed.

    python ik_data.py [COUNT [FOLDER]]
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import zarr

import armillary as arm

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
FOLDER = Path(sys.argv[2] if len(sys.argv) > 2 else ".")
POSES, ANSWERS = FOLDER / "poses.zarr", FOLDER / "answers.zarr"
BATCH = 4096

cell = arm.example("irb2400")
fk = cell.fk("tool0", form="quaternion")  # w x y z, then the origin [m]
began = time.perf_counter()
arm.sweep({"pose": fk}, cell.samples(COUNT), POSES)
found = arm.sweep(cell.ik("tool0"), POSES / "pose", ANSWERS)
took = time.perf_counter() - began
print(f"{COUNT:,} rows, {found.computed:,} of them now: {took:.1f} s")


def batches(torch):
    """Yield tensors of poses and joint positions, shuffled within chunks."""
    pose, q = zarr.open_array(POSES / "pose"), zarr.open_array(ANSWERS / "q")
    for start in range(0, COUNT, q.chunks[0]):
        rows = slice(start, start + q.chunks[0])
        X, y = torch.from_numpy(pose[rows]), torch.from_numpy(q[rows])
        for part in torch.randperm(len(X)).split(BATCH):
            yield X[part].float(), y[part].float()


# The check: every answer leads to its pose, within limits.
poses, answers = zarr.open_group(POSES, mode="r"), zarr.open_group(ANSWERS, mode="r")
lower, upper = cell.limits
for start in range(0, COUNT, chunk := answers["q"].chunks[0]):
    rows = slice(start, start + chunk)
    assert answers["success"][rows].all()
    X, Y = poses["pose"][rows], fk(answers["q"][rows])
    Y[:, :4] *= np.sign((X[:, :4] * Y[:, :4]).sum(axis=1))[:, None]  # of both signs
    assert np.abs(X - Y).max() < 2e-6
    assert (lower <= answers["q"][rows]).all() and (answers["q"][rows] <= upper).all()
about = answers.attrs["armillary_sweep"]
print("asked:", *about["question"].values())

if find_spec("xarray"):
    data = import_module("xarray").open_zarr(ANSWERS, consolidated=False)
    assert data.sizes["row"] == COUNT
    assert np.array_equal(data.q[-1000:], answers["q"][-1000:])
    print(f"xarray: {dict(data.sizes)}, q in {data.q.attrs['units']}")
else:
    print("xarray is not installed: pip install xarray")

if find_spec("torch"):
    torch = import_module("torch")
    total = sum(q.double().sum(dim=0) for _, q in batches(torch))
    mean = answers["q"][:].mean(axis=0)
    assert np.abs(total.numpy() / COUNT - mean).max() < 1e-5
    print(f"torch: batches of {BATCH} rows, q on average {np.round(mean, 3)}")
else:
    print("torch is not installed: pip install torch")
