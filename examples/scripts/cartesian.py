# Three slides and a wrist whose joint values are the angles W, P, R of the flange.
# Lengths are in millimetres, angles in degrees.
import vcMatrix
import vcVector
from vcPythonKinematics import *

AXES = ["Joint_%d" % k for k in range(1, 7)]
ORIGIN = vcVector.new(234.542, 203.301, 1134.46)


def OnGetJointCount():
    return len(AXES)


def OnGetJointName(index):
    return AXES[index]


def OnForward(kin):
    q = kin.JointValues
    flange = vcMatrix.new()
    flange.P = vcVector.new(q[0], q[1], q[2]) + ORIGIN
    flange.WPR = vcVector.new(q[3], q[4], q[5])
    kin.Target = flange
    return True


def OnInverse(kin):
    place = kin.Target.P - ORIGIN
    turn = kin.Target.WPR
    kin.JointValues = [place.X, place.Y, place.Z, turn.X, turn.Y, turn.Z]
    return True
