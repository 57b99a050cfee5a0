"""Calibration: numbers of a cell from measurements of it.

`measurements.py` has what can be measured, as residuals and their derivatives;
`calibrate.py` finds the numbers; `identifiability.py` says which of them measurements
decide; `calibration.py` is the result, `next_poses.py` chooses what to measure next.
"""
