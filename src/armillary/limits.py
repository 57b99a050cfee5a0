"""What files and scripts may cost: every limit on sizes, depths and counts.

Readers count against a `Budget`, which comes with the report of diagnostics, and which
may hold other numbers than those declared here. docs/security.md lists them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Limit", "limits"]

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30


@dataclass(frozen=True, eq=False, slots=True)
class Limit:
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

FILE_SIZE: Final = Limit(
    64 * MIB, "the file has {} bytes", "it is read as a whole", "file-too-large"
)
REFERENCE_LENGTH: Final = Limit(
    4096, "a reference has {} characters", "no path is longer", "reference-syntax"
)
NUMBER_LENGTH: Final = Limit(
    1000, "a number has {} characters", "quadratic time of reading it", "bad-number"
)
PARAMETER_DEPTH: Final = Limit(
    32, "a parameter is nested {} deep", "recursion", "bad-model"
)
DIAGNOSTICS: Final = Limit(
    100, "a report keeps {} diagnostics of a severity", "messages; others are counted"
)
HINTS: Final = Limit(
    12, "a report guesses {} names that were meant", "time to compare names"
)
NEIGHBOURS: Final = Limit(
    1000, "{} names beside a missing file are compared", "time in huge folders"
)
MANIFEST_SIZE: Final = Limit(
    MIB, "the manifest of a package has {} bytes", "it is searched for a name"
)
PACKAGE_FOLDERS: Final = Limit(
    20_000, "packages are looked for in {} folders", "ROS_PACKAGE_PATH may be a disk"
)
PACKAGE_DEPTH: Final = Limit(
    8, "packages are looked for {} folders below ROS_PACKAGE_PATH", "the same"
)
JSON_LOCATED: Final = Limit(
    16 * MIB, "diagnostics name lines in JSON of {} bytes", "time to find lines"
)
CONFIGURATION_SIZE: Final = Limit(
    64 * KIB, "a file of the user's configuration has {} bytes", "it is read often"
)

# XML. An element takes several hundred bytes of memory, and more where it is read.

XML_SIZE: Final = Limit(
    64 * MIB, "the XML document has {} bytes", "it is read as a whole", "xml-limit"
)
XML_DEPTH: Final = Limit(
    10_000, "elements are nested {} deep", "chains of links are nested", "xml-limit"
)
XML_ELEMENTS: Final = Limit(
    2_000_000, "the XML document has {} elements", "memory", "xml-limit"
)
XML_ATTRIBUTES: Final = Limit(
    256, "an element has {} attributes", "time to look one up", "xml-limit"
)
XML_VALUE: Final = Limit(
    MIB, "an attribute has {} characters", "what messages quote", "xml-limit"
)
XML_MARKUP: Final = Limit(
    8 * MIB, "one tag or comment has {} bytes", "quadratic time of parsing", "xml-limit"
)
XML_INSTRUCTIONS: Final = Limit(
    1000, "{} processing instructions are noted", "messages"
)
URDF_ELEMENTS: Final = Limit(
    150_000, "the robot has {} elements", "memory of its model", "xml-limit"
)
URDF_MISSING: Final = Limit(50, "{} missing meshes are looked up", "time")
SRDF_ELEMENTS: Final = Limit(
    200_000, "the SRDF has {} elements", "memory of its rules", "xml-limit"
)
ACTIN_DEPTH: Final = Limit(
    12, "a joint of an unknown type is nested {} deep", "recursion", "too-deep"
)
ROBWORK_ELEMENTS: Final = Limit(
    50_000, "a workcell with its includes has {} elements", "memory", "xml-limit"
)
ROBWORK_DEPTH: Final = Limit(
    64, "elements of RobWork are nested {} deep", "recursion", "xml-limit"
)
ROBWORK_FILES: Final = Limit(
    1000, "a workcell includes {} files", "one may come often", "include-limit"
)
ROBWORK_INCLUDE_DEPTH: Final = Limit(
    16, "a workcell includes files {} deep", "recursion", "include-limit"
)
ROBWORK_MESHES: Final = Limit(2000, "{} meshes of a workcell are looked up", "time")
ROBWORK_SETUPS: Final = Limit(
    1000, "there are {} setups of collision rules", "each is a file", "too-many-files"
)
ROBWORK_SETUP_ELEMENTS: Final = Limit(
    150_000, "the setups have {} elements", "memory of their rules", "xml-limit"
)
ROBWORK_RULES: Final = Limit(
    100_000,
    "the setups stand for {} rules",
    "patterns stand for many",
    "too-many-rules",
)
ROBWORK_COMPARED: Final = Limit(
    2_000_000, "patterns of setups are compared with {} names", "time"
)

# Collision rules, whose patterns stand for many pairs of links.

RULES: Final = Limit(1_000_000, "a cell has {} rules", "memory")
RULE_PATTERNS: Final = Limit(10_000, "the rules of a cell have {} patterns", "time")
PATTERN_LENGTH: Final = Limit(1000, "a pattern of names has {} characters", "time")
EXPRESSION_LENGTH: Final = Limit(1000, "a regular expression has {} characters", "time")
EXPRESSION_STEPS: Final = Limit(
    10_000_000, "comparing a regular expression takes {} steps", "time"
)
COLLISION_PAIRS: Final = Limit(
    20_000_000, "a cell has {} pairs of links to test", "memory"
)
PAIR_STEPS: Final = Limit(
    500_000_000, "applying the rules to pairs takes {} steps", "time"
)

# Meshes and images.

MESH_VERTICES: Final = Limit(
    12_000_000, "the mesh has {} vertices", "memory", "mesh-too-large"
)
MESH_FACES: Final = Limit(
    4_000_000, "the mesh has {} triangles", "memory", "mesh-too-large"
)
MESH_PARTS: Final = Limit(
    10_000, "the mesh has {} parts", "nodes may share one mesh", "mesh-too-large"
)
MESH_NODES: Final = Limit(
    20_000, "the scene has {} nodes", "nodes may show each other", "mesh-too-large"
)
MESH_DEPTH: Final = Limit(
    256, "objects are nested {} deep", "recursion", "mesh-too-large"
)
POLYGON_WORK: Final = Limit(
    10**9, "cutting polygons takes {} steps", "quadratic time", "mesh-too-large"
)
COLLADA_ELEMENTS: Final = Limit(
    200_000, "the COLLADA document has {} elements", "memory", "xml-limit"
)
GLTF_DOCUMENT: Final = Limit(
    16 * MIB, "the glTF document has {} bytes", "memory", "mesh-too-large"
)
OBJ_MATERIALS: Final = Limit(
    10_000, "the mesh has {} materials", "time to sort by them", "mesh-too-large"
)
OBJ_LIBRARIES: Final = Limit(
    100, "the mesh names {} files of colours", "time to read them", "mesh-too-large"
)
PLY_HEADER: Final = Limit(
    64 * KIB, "the header of PLY has {} bytes", "it is read line by line", "bad-header"
)
PLY_PROPERTIES: Final = Limit(
    256, "an element of PLY has {} properties", "time for each row", "bad-header"
)
LARGE_STL: Final = Limit(
    200 * MIB, "STL that is kept has {} bytes", "memory; larger files are made coarse"
)
COARSE_STL: Final = Limit(
    GIB, "STL that is made coarse has {} bytes", "time to read it", "file-too-large"
)
IMAGE_SIZE: Final = Limit(
    32 * MIB, "an image has {} bytes", "what a browser loads", "image-too-large"
)
IMAGE_SIDE: Final = Limit(
    8192, "a side of an image has {} pixels", "what it decodes", "image-too-large"
)

# Code out of files: xacro, and kinematics scripts.

PROCESS_MEMORY: Final = Limit(GIB, "a confined process has {} bytes", "memory")
XACRO_SECONDS: Final = Limit(
    30, "expanding a xacro file takes {} s", "macros that call themselves"
)
XACRO_QUESTIONS: Final = Limit(
    10_000, "a xacro file asks for {} packages and files", "time to look"
)
XACRO_LISTED: Final = Limit(
    20_000, "patterns of included files list {} names", "time in huge folders"
)
SCRIPT_SIZE: Final = Limit(MIB, "the script has {} bytes", "time to compile it")
SCRIPT_PRINTS: Final = Limit(
    10_000, "the script has {} print statements of Python 2", "each is repaired"
)
SCRIPT_JOINTS: Final = Limit(64, "the script has {} joints", "what it may return")
SCRIPT_CONFIGURATIONS: Final = Limit(
    256, "the script has {} configurations", "what it may return"
)
SCRIPT_SECONDS: Final = Limit(
    5, "an isolated script takes {} s for a question", "scripts that never return"
)
SCRIPT_START: Final = Limit(
    10, "an isolated script takes {} s to start", "scripts that never return"
)
SCRIPT_ANSWER: Final = Limit(
    4 * MIB, "an isolated script answers with {} bytes", "memory"
)
COMPONENT_SIZE: Final = Limit(MIB, "the component of a script has {} bytes", "memory")


def limits() -> dict[str, Limit]:
    """Return all limits by name, in the order in which they are declared."""
    return {
        name: value for name, value in globals().items() if isinstance(value, Limit)
    }
