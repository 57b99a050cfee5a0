"""Calibration: numbers of a cell from measurements of it.

`measurement.py` and `measurements.py` have what can be measured, as residuals and their
derivatives, `unknown_shapes.py` what is measured without a device, `board_images.py`
what a camera sees, `torques.py` what masses and friction follow from; `calibrate.py`
finds the numbers, and begins where `pose_starts.py` says; `consistent_inertias.py`
keeps inertias such that bodies can have them; `excitation.py` has motions to measure
torques along; `identifiability.py` says which numbers measurements decide;
`calibration.py` is the result, `doubts.py` what is likely to be wrong with it,
`next_poses.py` chooses what to measure next, and `compensation.py` makes tables for
controllers.
"""
