"""How much of the stack compiled functions take, and threads that have little."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.kernel.stack_use import FRAME, stack_use
from armillary.shapes import ConvexPolyhedron

GCC = shutil.which("gcc")

PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hulls.h"
#define SIZE (1 << 20)
#define ROWS 16

static void *nothing(void *given) { return given; }

static void *clearance(void *given) {
  double q[ROWS], found[ROWS];
  for (int k = 0; k < ROWS; k++) q[k] = 0.05;
  hulls_near_rows(q, found, ROWS);
  return found[0] < 0.0 ? given : NULL;
}

static long used(void *(*run)(void *)) {
  char *stack = aligned_alloc(4096, SIZE);
  memset(stack, 0x5a, SIZE);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, SIZE);
  pthread_t thread;
  void *found;
  pthread_create(&thread, &attributes, run, stack);
  pthread_join(thread, &found);
  long free_bytes = 0;
  while (stack[free_bytes] == 0x5a) free_bytes++;
  return found ? SIZE - free_bytes : -1;
}

int main(void) {
  long without = used(nothing);
  printf("%ld", used(clearance) - without);
  return 0;
}
"""

THREAD = """
import sys, threading
import armillary as arm
check = arm.load(sys.argv[1]).collision()
q = [0.05]
assert check.distances(q)[0] < 0.0
asked = check.contacts, check.clearance, check.gradients
for ask in asked:
    ask(q)
done = []
threading.stack_size(128 * 1024)
thread = threading.Thread(target=lambda: done.extend(ask(q) for ask in asked))
thread.start()
thread.join()
assert len(done) == len(asked)
"""


@pytest.fixture(scope="module")
def hulls() -> arm.Cell:
    """Return two hulls that overlap at q = 0.05, one of them on a slide."""
    corners = np.random.default_rng(0).normal(size=(2, 12, 3))
    corners *= 0.3 / np.linalg.norm(corners, axis=2, keepdims=True)
    one, other = (ConvexPolyhedron(vertices=each) for each in corners)
    still = arm.Manipulator(
        name="still", links=[arm.Link(name="base", collisions=[one])]
    )
    slide = arm.Link(
        name="slide",
        parent="base",
        joint=arm.joints.Prismatic(),
        collisions=[other],
    )
    moved = arm.Manipulator(name="moved", links=[arm.Link(name="base"), slide])
    names = "still", "moved"
    return arm.Cell(
        manipulators=[still, moved],
        mounts=[arm.Mount(manipulator=name) for name in names],
    )


@pytest.mark.thorough
@pytest.mark.skipif(GCC is None, reason="there is no gcc here")
@pytest.mark.skipif(sys.platform != "linux", reason="stacks are given by pthreads")
def test_headers_say_how_much_of_the_stack_functions_take(
    hulls: arm.Cell, tmp_path: Path
):
    check = hulls.collision()
    hulls.compile_to(tmp_path, ask={"near": check.clearance}, name="hulls")
    found = re.search(
        r"about (\d+) KiB of the stack", (tmp_path / "hulls.h").read_text()
    )
    assert found is not None
    stated = 1024 * int(found[1])
    (tmp_path / "stack.c").write_text(PROGRAM)
    program = tmp_path / "stack"
    given = [tmp_path / "stack.c", tmp_path / "libhulls.a", "-lm", "-lpthread"]
    subprocess.run(["gcc", "-O1", "-I", tmp_path, *given, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    # Rows of its own, and the call of the function, count as used, too.
    assert 0.5 * stated < int(done.stdout) < 1.1 * stated + 1024


def test_what_is_called_counts_once_for_the_deepest_way():
    text = """
define internal i32 @leaf(ptr %x) #0 {
  %a = alloca [100 x i8], align 8
  %b = alloca <4 x double>, align 8
  ret i32 0
}
define internal i32 @small() #0 {
  ret i32 0
}
define i32 @entry() #0 {
  %a = alloca [1000 x i8], align 8
  %k = call i32 @small()
  %m = call i32 @leaf(ptr %a)
  %n = call i32 @leaf(ptr %a)
  %s = call double @llvm.sqrt.f64(double 0.0)
  ret i32 0
}
"""
    used = stack_use(text)
    assert used["leaf"] == FRAME + 100 + 32
    assert used["entry"] == 2 * FRAME + 1000 + 132


@pytest.mark.thorough
def test_threads_with_little_memory_for_their_stack_find_depths(
    hulls: arm.Cell, tmp_path: Path
):
    path = tmp_path / "hulls.cell.json"
    arm.save(hulls, path)
    subprocess.run([sys.executable, "-c", THREAD, str(path)], check=True)
