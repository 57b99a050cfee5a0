# A SCARA with two links in a plane, a quill and a wrist, as a kinematics script.
# Lengths are in millimetres, angles in degrees.
from math import atan2, degrees, fmod, sqrt

import vcMatrix
from vcPythonKinematics import *

NAMES = ["J1", "J2", "J3", "J4"]
TURNS = [True, True, False, True]
labels = ["LEFTY", "RIGHTY"]
signs = [1, 1, 1, 1]
zeros = [0.0, 0.0, 0.0, 0.0]
upper = fore = height = 0.0


def OnFinalize():
    global upper, fore, height
    arm = getComponent()
    upper = arm.L12.X
    fore = arm.L23.X
    height = arm.L01.Z + arm.L12.Z + arm.L23.Z + arm.L34.Z
    for k in range(4):
        signs[k] = arm.getProperty("JointSign%d" % (k + 1)).Value
        zeros[k] = arm.getProperty("JointZeroOffset%d" % (k + 1)).Value
    labels[0] = arm.ConfigName1
    labels[1] = arm.ConfigName2


def OnRebuild():
    OnFinalize()


def OnInitKinObject(kin):
    choice = kin.createProperty(VC_STRING, "Configuration", VC_PROPERTY_STEP)
    choice.Value = labels[0]
    choice.StepValues = labels


def OnGetJointCount():
    return len(NAMES)


def OnGetJointName(index):
    return NAMES[index]


def wrapped(angle):
    turned = fmod(angle + 180, 360)
    if turned < 0:
        turned += 360
    return turned - 180


def shown(k, value):
    return wrapped(value) if TURNS[k] else value


def OnForward(kin):
    given = kin.JointValues
    q1, q2, q3, q4 = [shown(k, signs[k] * given[k] - zeros[k]) for k in range(4)]
    flange = vcMatrix.new()
    flange.rotateRelZ(q1)
    flange.translateRel(upper, 0, 0)
    flange.rotateRelZ(q2)
    flange.translateRel(fore, 0, q3 + height)
    flange.rotateRelZ(q4)
    kin.Target = flange
    kin.Configuration = labels[0] if given[1] <= 0 else labels[1]
    return True


def OnInverse(kin):
    goal = kin.Target
    x, y, z = goal.P.X, goal.P.Y, goal.P.Z
    direction, distance = degrees(atan2(y, x)), sqrt(x * x + y * y)
    warning = VC_SOLUTION_REACHABLE
    if distance > upper + fore:  # stretched towards the target
        warning, shoulder, elbow = VC_SOLUTION_UNREACHABLE, 0.0, 180.0
    elif distance < abs(upper - fore):  # folded
        warning, shoulder, elbow = VC_SOLUTION_UNREACHABLE, 180.0, 0.0
    else:
        shoulder = degrees(sssa(fore, upper, distance))
        elbow = degrees(sssa(distance, upper, fore))
    yaw = degrees(atan2(-goal.O.X, goal.O.Y))
    found = []
    for side in (1, -1):
        q1, q2 = direction + side * shoulder, side * (elbow - 180)
        nominal = [q1, q2, z - height, yaw - q1 - q2]
        joints = [shown(k, signs[k] * (nominal[k] + zeros[k])) for k in range(4)]
        found.append((warning, joints))
    kin.Solutions = found
    return True
