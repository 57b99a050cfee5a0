"""Poses, velocities and states: where everything is, and how it moves."""
