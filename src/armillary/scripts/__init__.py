"""Visual Components kinematics scripts as manipulators."""

from __future__ import annotations
