"""Carlson's integral against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import elliprg

from armillary.model.geometry.elliptic import carlson_g


def test_it_is_that_of_scipy():
    random = np.random.default_rng(0)
    for row in 10.0 ** random.uniform(-9.0, 9.0, (500, 3)):
        row[random.random(3) < 0.1] = 0.0
        assert carlson_g(*row) == pytest.approx(elliprg(*row), rel=1e-14)


def test_equal_arguments_give_the_root():
    for x in (0.0, 1e-300, 2.0, 1e300):
        assert carlson_g(x, x, x) == pytest.approx(np.sqrt(x), rel=1e-15)
    assert carlson_g(0.0, 4.0, 0.0) == 1.0
