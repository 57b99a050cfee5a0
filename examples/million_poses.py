"""A million poses: batches of any shape, memory of your own, threads, float32."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import armillary as arm
from armillary.cli.bench import random_vectors, seconds

cell = arm.example("ur5e_on_oval")
fk = cell.fk("tool0")
Q = random_vectors(cell, 1_000_000)

# The result in memory that is used again: nothing is allocated.
X = np.empty((len(Q), 4, 4))
for threads in (1, 2):
    took = seconds(lambda: fk(Q, out=X, threads=threads))  # noqa: B023
    print(f"{threads} thread(s): {len(Q) / took / 1e6:.1f} million poses per second")

# Half the memory and twice the lanes, where single precision is enough.
fk32 = cell.fk("tool0", dtype=np.float32)
Q32 = Q.astype(np.float32)
X32 = np.empty((len(Q), 4, 4), dtype=np.float32)
took = seconds(lambda: fk32(Q32, out=X32, threads=1))
print(f"float32:     {len(Q) / took / 1e6:.1f} million poses per second")

# Kernels may be called from threads of yours; they run without the global lock.
parts = np.array_split(Q, 4)
with ThreadPoolExecutor(4) as pool:
    results = list(pool.map(lambda part: fk(part, threads=1), parts))

# Several frames at once share what they have in common.
wrist_and_tool = cell.fk(["wrist_1", "tool0"])(Q[:1000].reshape(10, 100, 7))

assert np.array_equal(np.concatenate(results), X)
assert np.array_equal(X[::99_999], np.stack([fk(q) for q in Q[::99_999]]))
assert np.abs(X32 - X).max() < 1e-4
assert wrist_and_tool.shape == (10, 100, 2, 4, 4)
assert np.allclose(wrist_and_tool[..., 1, :, :].reshape(-1, 4, 4), X[:1000])
