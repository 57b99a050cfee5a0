"""Run a controller in a loop in C, without Python: each step takes a fixed time.

The step is compiled to an object, and the loop is linked to it. The motion is that of
`Controller.simulate`, to the last digits.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import armillary as arm
from armillary import tasks

STEPS = 2000  # two seconds at 1 kHz
LOOP = """\
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "lab.h"

int main(void) {
  double q[LAB_JOINTS], qd[LAB_JOINTS] = {0}, target[16], still[6] = {0}, longest = 0;
  double answer[ANSWER];
  for (int k = 0; k < LAB_JOINTS; k++) if (scanf("%lf", &q[k]) != 1) return 1;
  for (int k = 0; k < 16; k++) if (scanf("%lf", &target[k]) != 1) return 1;
  for (int step = 0; step < STEPS; step++) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (lab_step(q, qd, target, still, answer)) return 1;
    memcpy(q, answer, sizeof q);  /* here a robot would be given its next positions */
    memcpy(qd, answer + LAB_JOINTS, sizeof qd);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double took = end.tv_sec - begin.tv_sec + 1e-9 * (end.tv_nsec - begin.tv_nsec);
    if (took > longest) longest = took;
  }
  for (int k = 0; k < LAB_JOINTS; k++) printf("%.17g ", q[k]);
  printf("%.3g\\n", longest);
  return 0;
}
"""

cell = arm.example("irb2400")
controller = cell.controller(tasks.Frame("tool0"), rate=1000.0)
start = cell.home.q
target = cell.fk("tool0")(start + 0.2)
motion = controller.simulate(start, target, STEPS)

if shutil.which("gcc") is None:
    print("There is a compiler for C missing here.")
    sys.exit()
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    cell.compile_to(folder, ask={"step": controller}, name="lab")
    answer = controller.kernel.computation.outputs[0].size
    (folder / "loop.c").write_text(LOOP)
    sizes = [f"-DSTEPS={STEPS}", f"-DANSWER={answer}", "-D_POSIX_C_SOURCE=199309L"]
    files = [folder / "loop.c", folder / "liblab.a"]
    command = ["gcc", "-O2", "-std=c99", *sizes, *files, "-o", folder / "loop"]
    subprocess.run(command, check=True)
    given = " ".join(f"{x!r}" for x in [*start.tolist(), *target.ravel().tolist()])
    done = subprocess.run(
        [folder / "loop"], input=given, capture_output=True, text=True, check=True
    )
*q, longest = map(float, done.stdout.split())
print(f"The longest of {STEPS} steps took {longest * 1e6:.1f} us.")
reached = cell.fk("tool0")(q)
print(f"The tool is {np.abs(reached - target).max():.1e} from its target.")
assert np.abs(reached - target).max() < 1e-6
assert np.abs(motion.q[-1] - q).max() < 1e-12
