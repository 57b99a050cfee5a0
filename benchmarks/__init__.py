"""Figures beside peers, as ratios; `python -m benchmarks` prints the table."""
