"""Times along paths within limits, and motion to joint positions with limited jerk."""
