# A palletiser: one parallelogram keeps the forearm's inclination while the upper arm
# swings, another keeps the flange level, pointing down.
# Lengths are in millimetres, angles in degrees.
from math import atan2, cos, degrees, hypot, radians, sin

import vcMatrix
from vcPythonKinematics import *

ELBOWS = ["UP", "DOWN"]


class Lengths:
    base = upper = fore = wrist = drop = offset = 0.0


size = Lengths()


def OnFinalize():
    robot = getComponent()
    size.base = robot.getProperty("Links::Base").Value
    size.upper = robot.getProperty("Links::Upper").Value
    size.fore = robot.getProperty("Links::Fore").Value
    size.wrist = robot.getProperty("Links::Wrist").Value
    size.drop = robot.getProperty("Links::Drop").Value
    size.offset = robot.getProperty("Links::Offset").Value


def OnInitKinObject(kin):
    elbow = kin.createProperty(VC_STRING, "Elbow", VC_PROPERTY_STEP)
    elbow.StepValues = ELBOWS
    elbow.Value = ELBOWS[0]


def OnGetJointCount():
    return 4


def OnGetJointName(index):
    return "J%d" % (index + 1)


def OnGetConfigurationCount():
    return len(ELBOWS)


def OnGetCurrentConfiguration(kin):
    return ELBOWS.index(kin.Elbow)


def OnSetCurrentConfiguration(kin, index):
    kin.Elbow = ELBOWS[index]


def OnForward(kin):
    turn, upper, fore, spin = kin.JointValues
    reach = size.offset + size.upper * sin(radians(upper)) + size.wrist
    reach += size.fore * cos(radians(fore))
    height = size.base + size.upper * cos(radians(upper)) + size.drop
    height -= size.fore * sin(radians(fore))
    flange = vcMatrix.new()
    flange.rotateRelZ(turn)
    flange.translateRel(reach, 0, height)
    flange.rotateRelZ(-spin)
    flange.rotateRelY(180)
    kin.Target = flange
    return True


def OnInverse(kin):
    goal = kin.Target
    turn = degrees(atan2(goal.P.Y, goal.P.X))
    x = hypot(goal.P.X, goal.P.Y) - size.offset - size.wrist
    z = goal.P.Z - size.base - size.drop
    distance = hypot(x, z)
    if distance > size.upper + size.fore or distance < abs(size.upper - size.fore):
        return False
    side = 1 if kin.Elbow == "UP" else -1
    rise = atan2(z, x) + side * sssa(size.fore, size.upper, distance)
    fore = -atan2(z - size.upper * sin(rise), x - size.upper * cos(rise))
    spin = turn - degrees(atan2(goal.O.Y, goal.O.X)) + 90
    for joint, value in enumerate([turn, 90 - degrees(rise), degrees(fore), spin]):
        kin.moveJointTo(joint, value)
    return True
