# needs: examples
"""Map where the tool of an arm on a track reaches, and from how many sides.

One sweep counts in which voxels the tool is at random joint positions, where nothing
touches. A second one points the tool at the centre of each of them from six sides, by
inverse kinematics that avoids collisions: how many sides are possible is the dexterity.
The picture shows a slice from above and one from the front, through a stand. A page
shows the far half of the map in the cell; it needs the extra `view`.

    python reach_map.py [FILE.png [FILE.html]]
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import armillary as arm

SIZE = 0.25  # of a voxel [m]
LOWER, UPPER = (-3.75, -2.75, 0.0), (3.75, 2.75, 2.0)  # of the map [m]
COUNT = 500_000  # random joint positions
LEVEL, DEPTH = 0.8, -1.6  # z and y of the slices [m]
INK, PAPER, NEVER = "#22303c", "#ffffff", "#e9ecef"
SIDES = [  # where z of the tool points: along x, -x, y, -y, z, -z
    arm.Pose.rotation_y(np.pi / 2),
    arm.Pose.rotation_y(-np.pi / 2),
    arm.Pose.rotation_x(-np.pi / 2),
    arm.Pose.rotation_x(np.pi / 2),
    arm.Pose.rotation_x(0.0),
    arm.Pose.rotation_x(np.pi),
]
SHADES = colormaps["viridis"](np.linspace(0.0, 1.0, len(SIDES)))
COLOURS = ListedColormap([NEVER, *SHADES])  # by the number of sides

cell = arm.example("oval_track_cell")
track = cell.manipulators[0].links[1].joint
check = cell.collision()
fk = cell.fk("tcp")
moving = [name for name in cell.joint_names if name != "gripper/opening"]
ik = cell.ik("tcp", joints=moving, rotation="xy", avoid=check)  # free to spin
voxels = partial(arm.sweeps.Voxels, lower=LOWER, upper=UPPER, size=SIZE)


def paint(axes, picture, axis):
    """Paint a slice whose axes are x and another one, and the track."""
    extent = LOWER[0], UPPER[0], LOWER[axis], UPPER[axis]
    norm = BoundaryNorm(np.arange(len(SIDES) + 2) - 0.5, len(SIDES) + 1)
    axes.imshow(picture.T, origin="lower", extent=extent, cmap=COLOURS, norm=norm)
    q = np.tile(cell.home.q, (200, 1))
    q[:, cell.joint("cart")] = np.linspace(0.0, track.period, len(q))
    way = cell.fk("track/plate")(q)[:, :3, 3]
    axes.plot(way[:, 0], way[:, axis], color=PAPER, linewidth=2)
    axes.set_ylabel(f"{'xyz'[axis]} [m]", color=INK)
    axes.tick_params(colors=INK, length=0)
    axes.spines[:].set_visible(False)


def draw(path, dexterity):
    """Draw a slice from above and one from the front."""
    figure = Figure(figsize=(8, 8), dpi=90, facecolor=PAPER, layout="constrained")
    above, front = figure.subplots(2, 1, sharex=True, height_ratios=(5.5, 2))
    paint(above, dexterity[:, :, int((LEVEL - LOWER[2]) / SIZE)], 1)
    paint(front, dexterity[:, int((DEPTH - LOWER[1]) / SIZE)], 2)
    above.set_title(f"from above, at z = {LEVEL} m", color=INK, loc="left")
    front.set_title(f"through the stand, at y = {DEPTH} m", color=INK, loc="left")
    front.set_xlabel("x [m]", color=INK)
    patches = [Patch(color=COLOURS(n), label=n) for n in range(len(SIDES) + 1)]
    below = {"loc": "outside lower center", "ncols": len(patches), "frameon": False}
    title = "sides from which the tool reaches a place"
    figure.legend(handles=patches, labelcolor=INK, title=title, **below)
    figure.savefig(path)


def with_map(dexterity):
    """Return the cell with the far half of the map as boxes, one for equal voxels."""
    half = dexterity.shape[1] // 2
    boxes = []
    for y, z in np.ndindex(half, dexterity.shape[2]):
        row = dexterity[:, half + y, z]
        ends = np.flatnonzero(np.diff(row, prepend=-1, append=-1))
        for start, end in pairwise(ends):
            if row[start]:
                middle = np.array([(start + end - 1) / 2, half + y, z])
                one = arm.shapes.Box(
                    size=(SIZE * (end - start), SIZE, SIZE),
                    pose=arm.Pose.translation(*centre(middle)),
                    colour=tuple(SHADES[row[start] - 1].tolist()),
                )
                boxes.append(one)
    # What only has collision shapes is drawn as such, beside what has visuals.
    solid = [
        each.replace(links=[k.replace(visuals=k.collision_shapes) for k in each.links])
        for each in cell.manipulators
    ]
    link = arm.Link(name="voxels", visuals=boxes)
    fixture = arm.Manipulator(name="map", links=[link])
    return cell.replace(manipulators=solid).add(fixture)


def centre(place):
    """Return the centre of the voxel with these indices [m]."""
    return np.add(LOWER, SIZE * (place + 0.5))


# How often the tool is in each voxel, and how often something touches meanwhile.
samples = cell.samples(COUNT, within={"cart": (0.0, track.period)})
found = arm.sweep(
    {"pose": fk, "touching": check},
    samples,
    reduce={"all": voxels(), "touching": voxels(where="touching")},
)
free = found["all_count"] - found["touching_count"]

# From how many sides the tool gets to the centres of those voxels.
places = np.argwhere(free)
targets = np.tile([side.matrix() for side in SIDES], (len(places), 1, 1, 1))
targets[..., :3, 3] = np.array([centre(place) for place in places])[:, None]
targets = targets.reshape(-1, 4, 4)
sides = arm.sweep(
    partial(ik, explain=False),
    targets,
    reduce=arm.sweeps.Count(of="success", by=len(SIDES)),
)
dexterity = np.zeros_like(free)
dexterity[tuple(places.T)] = sides["count"]

print(f"{COUNT:,} positions, {found['touching_count'].sum() / COUNT:.0%} of them touch")
for least, what in ((1, "any side"), (len(SIDES), "all sides")):
    volume = SIZE**3 * (dexterity >= least).sum()
    print(f"{volume:6.1f} m^3 can be reached from {what}")
path = sys.argv[1] if len(sys.argv) > 1 else "reach_map.png"
draw(path, dexterity)
print(f"drawn: {path}")
for page in sys.argv[2:]:
    with_map(dexterity).export(page)

# The check. The counts are those of the rows; answers lead to their targets and do not
# touch; and no place of the tool is inside the stand.
rows = samples.rows(0, COUNT)
edges = [
    np.arange(n + 1) * SIZE + low for n, low in zip(free.shape, LOWER, strict=True)
]
counted, _ = np.histogramdd(fk(rows[~check(rows)])[:, :3, 3], edges)
assert np.array_equal(free, counted)
some = targets[::40]
answer = ik(some, explain=False)
q = cell.device(joints=moving).whole(answer.q[answer.success])
off = fk(q)[:, :3, 2:] - some[answer.success][:, :3, 2:]
assert np.abs(off).max() < 1e-5
assert not check(q).any()
assert 0.3 < answer.success.mean() < 1.0
stand = np.floor(np.subtract((0.0, -1.6, 0.3), LOWER) / SIZE).astype(int)
assert dexterity[tuple(stand)] == 0 < dexterity.max() == len(SIDES)
