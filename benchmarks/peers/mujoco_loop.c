// Distances of two geoms by MuJoCo, in a loop without Python around each call.

#include <string.h>

#include <mujoco/mujoco.h>

// Poses are 4x4, of geom 1 in geom 0, row by row. The farthest distance is 10 m.
void distances(const mjModel *model, mjData *data, const double *poses, long count,
               double *found) {
  const mjtNum here[3] = {0, 0, 0}, straight[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  memcpy(data->geom_xpos, here, sizeof here);
  memcpy(data->geom_xmat, straight, sizeof straight);
  for (long k = 0; k < count; ++k, poses += 16) {
    for (int i = 0; i < 3; ++i) {
      data->geom_xpos[3 + i] = poses[4 * i + 3];
      for (int j = 0; j < 3; ++j)
        data->geom_xmat[9 + 3 * i + j] = poses[4 * i + j];
    }
    *found++ = mj_geomDistance(model, data, 0, 1, 10.0, NULL);
  }
}
