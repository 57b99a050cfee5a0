"""What files and scripts may cost: every limit on sizes, depths and counts.

Readers count against a `Budget`, which comes with the report of diagnostics, and which
may hold other numbers than those declared here. docs/security.md lists them all.
"""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["Limit", "limits"]

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

# Ids of diagnostics.
FILE, XML, INCLUDE = "file-too-large", "xml-limit", "include-limit"
ARCHIVE = "bad-archive"
MESH, IMAGE, HEADER = "mesh-too-large", "image-too-large", "bad-header"


class Limit(msgspec.Struct, frozen=True, eq=False):
    """One limit.

    Attributes:
        most: The greatest number that is allowed.
        says: What is counted and in which unit, with {} for the number.
        why: What it bounds.
        code: The id of the diagnostic that refuses more; empty where more is not an
            error: the rest is left out, or is an error of Python, such as ScriptError.
    """

    most: int
    says: str
    why: str
    code: str = ""

    def excess(self, count: int | None = None, most: int | None = None) -> str:
        """Return the message that there is too much: what was asked, what is allowed.

        Args:
            count: How much there is, if that is known.
            most: What is allowed, where that is not the number declared here.
        """
        allowed = self.most if most is None else most
        if count is None:
            return self.says.format(f"more than {allowed}")
        return f"{self.says.format(count)}, more than {allowed}"

    def __str__(self) -> str:
        """Return what is allowed, as documentation says it."""
        shown, says = f"{self.most:,}".replace(",", " "), self.says
        if "{} bytes" in says:
            size = next(size for size in (GIB, MIB, KIB) if self.most % size == 0)
            unit = {GIB: "GiB", MIB: "MiB", KIB: "KiB"}[size]
            shown, says = f"{self.most // size} {unit}", says.replace(" bytes", "")
        return says.format(f"at most {shown}")


# Files of all kinds, and the folders around them.

FILE_SIZE = Limit(64 * MIB, "the file has {} bytes", "memory", FILE)
REFERENCE_LENGTH = Limit(
    4096, "a reference has {} characters", "time", "reference-syntax"
)
NUMBER_LENGTH = Limit(1000, "a number has {} characters", "time", "bad-number")
PARAMETER_DEPTH = Limit(32, "a parameter is nested {} deep", "recursion", "bad-model")
DIAGNOSTICS = Limit(100, "a report keeps {} messages of a severity", "output")
HINTS = Limit(12, "a report guesses {} names that were meant", "time")
NEIGHBOURS = Limit(1000, "{} names beside a missing file are compared", "time")
MANIFEST_SIZE = Limit(MIB, "the manifest of a package has {} bytes", "memory")
PACKAGE_FOLDERS = Limit(20_000, "packages are looked for in {} folders", "time")
PACKAGE_DEPTH = Limit(8, "packages are looked for {} folders deep", "time")
JSON_LOCATED = Limit(16 * MIB, "lines of JSON are found in texts of {} bytes", "time")
CONFIGURATION_SIZE = Limit(64 * KIB, "the configuration has {} bytes", "memory")

# Archives: bundles of a cell with its meshes, and motions in NPZ.

BUNDLE_SIZE = Limit(GIB, "the bundle has {} bytes", "memory", FILE)
MOTION_SIZE = Limit(GIB, "the file of a motion has {} bytes", "memory")
ARCHIVE_FILES = Limit(10_000, "the archive holds {} files", "memory", ARCHIVE)
ARCHIVE_CONTENT = Limit(
    4 * GIB, "the files in the archive have {} bytes together", "memory", ARCHIVE
)
ARCHIVE_RATIO = Limit(
    200, "a file of a MiB or more becomes {} times as large", "memory", ARCHIVE
)

# XML. An element takes several hundred bytes of memory, and more where it is read.

XML_SIZE = Limit(64 * MIB, "the XML document has {} bytes", "memory", XML)
XML_DEPTH = Limit(10_000, "elements are nested {} deep", "memory", XML)
XML_ELEMENTS = Limit(2_000_000, "the XML document has {} elements", "memory", XML)
XML_ATTRIBUTES = Limit(256, "an element has {} attributes", "time", XML)
XML_VALUE = Limit(MIB, "an attribute has {} characters", "memory", XML)
XML_MARKUP = Limit(8 * MIB, "one tag or comment has {} bytes", "quadratic time", XML)
XML_INSTRUCTIONS = Limit(1000, "{} processing instructions are noted", "output")
URDF_ELEMENTS = Limit(150_000, "the robot has {} elements", "memory", XML)
URDF_MISSING = Limit(50, "{} missing meshes are looked up", "time")
SDF_ELEMENTS = Limit(150_000, "a cell with its includes has {} elements", "memory", XML)
SDF_FILES = Limit(2000, "a cell includes {} files", "one may come often", INCLUDE)
SDF_NESTING = Limit(32, "models and includes are nested {} deep", "recursion", INCLUDE)
SDF_NAME_PARTS = Limit(64, "a name of SDF has {} parts", "time", "unknown-frame")
SRDF_ELEMENTS = Limit(200_000, "the SRDF has {} elements", "memory", XML)
ACTIN_DEPTH = Limit(12, "a joint is nested {} deep", "recursion", "too-deep")
MJCF_ELEMENTS = Limit(
    150_000, "a model with its includes has {} elements", "memory", XML
)
MJCF_DEPTH = Limit(200, "elements of MJCF are nested {} deep", "recursion", XML)
MJCF_FILES = Limit(1000, "a model includes {} files", "time", INCLUDE)
MJCF_INCLUDE_DEPTH = Limit(16, "a model includes files {} deep", "recursion", INCLUDE)
MJCF_COPIES = Limit(50_000, "replicated bodies have {} elements", "memory", XML)
MJCF_PAIRS = Limit(200_000, "the rules of a model are about {} pairs of links", "time")
ROBWORK_ELEMENTS = Limit(
    50_000, "a workcell with its includes has {} elements", "memory", XML
)
ROBWORK_DEPTH = Limit(64, "elements of RobWork are nested {} deep", "recursion", XML)
ROBWORK_FILES = Limit(
    1000, "a workcell includes {} files", "one may come often", INCLUDE
)
ROBWORK_INCLUDE_DEPTH = Limit(
    16, "a workcell includes files {} deep", "recursion", INCLUDE
)
ROBWORK_MESHES = Limit(2000, "{} meshes of a workcell are looked up", "time")
ROBWORK_SETUPS = Limit(1000, "there are {} setups of rules", "time", "too-many-files")
ROBWORK_SETUP_ELEMENTS = Limit(150_000, "the setups have {} elements", "memory", XML)
ROBWORK_RULES = Limit(
    100_000, "the setups stand for {} rules", "memory", "too-many-rules"
)
ROBWORK_COMPARED = Limit(
    2_000_000, "patterns of setups are compared with {} names", "time"
)

# USD, which a library reads in a process of its own.

USD_LAYERS = Limit(1000, "a stage has {} layers", "memory", INCLUDE)
USD_PRIMS = Limit(200_000, "a stage has {} prims", "memory", "too-many-prims")
USD_PACKED = Limit(10_000, "a package has {} files", "time", INCLUDE)
USD_MEMORY = Limit(GIB, "the process that reads USD has {} bytes", "memory")
USD_SECONDS = Limit(10, "reading USD takes {} s of a processor", "time")
USD_ANSWER = Limit(256 * MIB, "that process answers with {} bytes", "memory")
USD_SAMPLES = Limit(20_000_000, "an animation has {} poses of links", "memory")

# Collision rules, whose patterns stand for many pairs of links.

RULES = Limit(1_000_000, "a cell has {} rules", "memory")
RULE_PATTERNS = Limit(10_000, "the rules of a cell have {} patterns", "time")
PATTERN_LENGTH = Limit(1000, "a pattern of names has {} characters", "time")
EXPRESSION_LENGTH = Limit(1000, "a regular expression has {} characters", "time")
EXPRESSION_STEPS = Limit(
    10_000_000, "comparing a regular expression takes {} steps", "time"
)
COLLISION_PAIRS = Limit(20_000_000, "a cell has {} pairs of links to test", "memory")
PAIR_STEPS = Limit(500_000_000, "applying the rules to pairs takes {} steps", "time")

# Meshes and images.

MESH_VERTICES = Limit(12_000_000, "the mesh has {} vertices", "memory", MESH)
MESH_FACES = Limit(4_000_000, "the mesh has {} triangles", "memory", MESH)
MESH_PARTS = Limit(10_000, "the mesh has {} parts", "memory", MESH)
MESH_NODES = Limit(20_000, "the scene has {} nodes", "time", MESH)
MESH_DEPTH = Limit(256, "objects are nested {} deep", "recursion", MESH)
POLYGON_WORK = Limit(10**9, "cutting polygons takes {} steps", "quadratic time", MESH)
COLLADA_ELEMENTS = Limit(200_000, "the COLLADA document has {} elements", "memory", XML)
GLTF_DOCUMENT = Limit(16 * MIB, "the glTF document has {} bytes", "memory", MESH)
OBJ_MATERIALS = Limit(10_000, "the mesh has {} materials", "time", MESH)
OBJ_LIBRARIES = Limit(100, "the mesh names {} files of colours", "time", MESH)
PLY_HEADER = Limit(64 * KIB, "the header of PLY has {} bytes", "time", HEADER)
PLY_PROPERTIES = Limit(256, "an element of PLY has {} properties", "time", HEADER)
LARGE_STL = Limit(200 * MIB, "STL that is not made coarse has {} bytes", "memory")
COARSE_STL = Limit(GIB, "STL that is made coarse has {} bytes", "time", FILE)
IMAGE_SIZE = Limit(32 * MIB, "an image has {} bytes", "memory of browsers", IMAGE)
IMAGE_SIDE = Limit(
    8192, "a side of an image has {} pixels", "memory of browsers", IMAGE
)

# Clouds of points and of voxels.

CLOUD_ELEMENTS = Limit(10_000_000, "a cloud has {} bodies", "memory")
GRID_CELLS = Limit(2 * GIB, "a grid has {} cells", "memory")

# What is drawn of a cell, and files of samples.

DRAWN_FRAMES = Limit(2000, "{} frames and their names are drawn", "work of browsers")
DRAWN_JOINTS = Limit(2000, "{} symbols of joints are drawn", "work of browsers")
DRAWN_VOLUMES = Limit(2000, "{} bounding volumes are drawn", "work of browsers")
DRAWN_TRIANGLES = Limit(200_000, "of a mesh {} triangles are drawn", "work of browsers")
DRAWN_ELEMENTS = Limit(20_000, "of a cloud {} bodies are drawn", "work of browsers")
PAGE_LINKS = Limit(2000, "a page holds {} links", "work of browsers")
CSV_LINE = Limit(MIB, "a line of CSV has {} characters", "memory")

# Code out of files: xacro, and kinematics scripts.

PROCESS_MEMORY = Limit(GIB, "a confined process has {} bytes", "memory")
XACRO_SECONDS = Limit(30, "expanding a xacro file takes {} s", "time")
XACRO_QUESTIONS = Limit(10_000, "a xacro file asks for {} packages and files", "time")
XACRO_LISTED = Limit(20_000, "patterns of included files list {} names", "time")
SCRIPT_SIZE = Limit(MIB, "the script has {} bytes", "time")
SCRIPT_PRINTS = Limit(10_000, "the script has {} print statements of Python 2", "time")
SCRIPT_JOINTS = Limit(64, "the script has {} joints", "memory")
SCRIPT_CONFIGURATIONS = Limit(256, "the script has {} configurations", "memory")
SCRIPT_SECONDS = Limit(5, "an isolated script takes {} s for a question", "time")
SCRIPT_START = Limit(10, "an isolated script takes {} s to start", "time")
SCRIPT_ANSWER = Limit(4 * MIB, "an isolated script answers with {} bytes", "memory")
RESOURCE_SIZE = Limit(32 * MIB, "the component.rsc has {} bytes", "memory")
RESOURCE_DEPTH = Limit(256, "blocks of a component.rsc are nested {} deep", "memory")
COMPONENT_SIZE = Limit(MIB, "the component of a script has {} bytes", "memory")


def limits() -> dict[str, Limit]:
    """Return all limits by name, in the order in which they are declared."""
    return {
        name: value for name, value in globals().items() if isinstance(value, Limit)
    }
