"""Calibration: numbers of a cell from measurements of it.

`measurement.py` and `measurements.py` have what can be measured, as residuals and their
derivatives, `unknown_shapes.py` what is measured without a device; `calibrate.py` finds
the numbers, and begins where `pose_starts.py` says; `identifiability.py` says which of
them measurements decide; `calibration.py` is the result, `doubts.py` what is likely to
be wrong with it, `next_poses.py` chooses what to measure next.
"""
