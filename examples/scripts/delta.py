# A delta robot: three arms carry a platform that stays level, a shaft turns the flange.
# Lengths are in millimetres, angles in degrees.
from math import acos, atan2, cos, degrees, hypot, radians, sin, sqrt

import vcMatrix
import vcVector
from vcPythonKinematics import *

SIDES = [0.0, 120.0, 240.0]


def OnFinalize():
    global upper, lower, radius, shaft
    robot = getComponent()
    upper = robot.UpperArm
    lower = robot.LowerArm
    radius = robot.ShoulderRadius - robot.PlatformRadius
    shaft = robot.ShaftLength


def OnGetJointCount():
    return 4


def OnGetJointName(index):
    return "J%d" % (index + 1)


def elbow(k, angle):
    """Where the lower arm begins, the platform shrunk to a point."""
    reach = radius + upper * cos(radians(angle))
    side = radians(SIDES[k])
    height = -upper * sin(radians(angle))
    return vcVector.new(reach * cos(side), reach * sin(side), height)


def OnForward(kin):
    q = kin.JointValues
    a, b, c = [elbow(k, q[k]) for k in range(3)]
    # The point at the same distance from three elbows, below their plane.
    across = b - a
    distance = across.length()
    across.normalize()
    along = (c - a) - across * (across * (c - a))
    depth = along.length()
    along.normalize()
    offset = across * (c - a)
    x = distance / 2
    y = (offset * offset + depth * depth - 2 * offset * x) / (2 * depth)
    square = lower * lower - x * x - y * y
    if square < 0:
        return False
    place = a + across * x + along * y - (across ^ along) * sqrt(square)
    flange = vcMatrix.new()
    flange.P = place
    flange.translateRel(0, 0, -shaft)
    flange.rotateRelZ(q[3])
    kin.Target = flange
    return True


def OnInverse(kin):
    goal = kin.Target
    z = goal.P.Z + shaft
    warning = VC_SOLUTION_REACHABLE
    joints = []
    for side in SIDES:
        s, c = sin(radians(side)), cos(radians(side))
        x = c * goal.P.X + s * goal.P.Y - radius
        y = c * goal.P.Y - s * goal.P.X
        wanted = (x * x + y * y + z * z + upper * upper - lower * lower) / (2 * upper)
        ratio = wanted / hypot(x, z)
        if abs(ratio) > 1:
            warning = VC_SOLUTION_UNREACHABLE
        ratio = max(-1.0, min(1.0, ratio))
        joints.append(degrees(atan2(-z, x) - acos(ratio)))
    joints.append(degrees(atan2(-goal.O.X, goal.O.Y)))
    kin.Solutions = [(warning, joints)]
    return True
