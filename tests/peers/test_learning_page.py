"""The page on gradients, with JAX and torch: its blocks run in one piece."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs/learning.md"
pytestmark = pytest.mark.peers

jax: Any = pytest.importorskip("jax", reason="JAX is not installed (the extra 'jax')")
torch: Any = pytest.importorskip(
    "torch", reason="torch is not installed (the extra 'torch')"
)


def test_the_page() -> None:
    blocks = re.findall(r"```python[^\n]*\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    was, names = jax.config.jax_enable_x64, {}
    try:
        for block in blocks:
            exec(block, names)
    finally:
        jax.config.update("jax_enable_x64", was)
    # Closed loops: the height of the platform, by differences.
    q = names["q"].detach().numpy()
    ends = [names["fk"](q + s * np.eye(3))[:, 2, 3] for s in (1e-6, -1e-6)]
    wanted = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(names["q"].grad[0], wanted, atol=1e-8)
    np.testing.assert_allclose(np.asarray(names["by_q"])[0], wanted, atol=1e-8)
    # Inverse kinematics in JAX is what the formula in NumPy gives.
    step = names["moved"] - names["X"]
    found = np.sum(np.asarray(names["by_target"]) * step)
    assert found == pytest.approx(names["change"], rel=1e-4)
