"""Warnings name a line of the user's code, in a module or not."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from armillary.model.user_warning import warn_user


def test_the_line_is_the_users():
    with pytest.warns(UserWarning, match="of the robot") as caught:
        warn_user("This is of the robot.")
    assert caught[0].filename == __file__


@pytest.mark.parametrize("names", [{}, {"__name__": "program"}])
def test_code_that_is_in_no_module(names: dict[str, Any]):
    code = compile("warn('This is of the robot.')", "<program>", "exec")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(code, {**names, "warn": warn_user})
    assert [each.filename for each in caught] == ["<program>"]
