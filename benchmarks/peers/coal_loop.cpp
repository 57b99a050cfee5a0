// Distances of two shapes by coal, in a loop without Python around each call.

#include <memory>
#include <vector>

#include <coal/collision.h>
#include <coal/distance.h>
#include <coal/shape/convex.h>
#include <coal/shape/geometric_shapes.h>

using Shape = std::unique_ptr<coal::CollisionGeometry>;

static Shape made(int kind, const double *numbers, int count) {
  switch (kind) {
  case 0:
    return Shape(new coal::Sphere(numbers[0]));
  case 1:
    return Shape(new coal::Capsule(numbers[0], numbers[1]));
  case 2:
    return Shape(new coal::Box(numbers[0], numbers[1], numbers[2]));
  case 3:
    return Shape(new coal::Cylinder(numbers[0], numbers[1]));
  case 4:
    return Shape(new coal::Cone(numbers[0], numbers[1]));
  case 5:
    return Shape(new coal::Ellipsoid(numbers[0], numbers[1], numbers[2]));
  default:
    auto points = std::make_shared<std::vector<coal::Vec3s>>();
    for (int k = 0; k < count; k += 3)
      points->emplace_back(numbers[k], numbers[k + 1], numbers[k + 2]);
    return Shape(coal::ConvexBase::convexHull(points, points->size(), true, "Qt"));
  }
}

static std::vector<coal::Transform3s> transforms(const double *rows, long count) {
  std::vector<coal::Transform3s> made;
  for (long k = 0; k < count; ++k, rows += 16) {
    coal::Matrix3s rotation;
    coal::Vec3s position(rows[3], rows[7], rows[11]);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        rotation(i, j) = rows[4 * i + j];
    made.emplace_back(rotation, position);
  }
  return made;
}

struct Pair {
  Shape a, b;
  std::vector<coal::Transform3s> poses;
};

extern "C" {
// Poses are 4x4, of b in a, row by row.
Pair *pair(int kind_a, const double *a, int count_a, int kind_b, const double *b,
           int count_b, const double *poses, long count) {
  return new Pair{made(kind_a, a, count_a), made(kind_b, b, count_b),
                  transforms(poses, count)};
}

void distances(const Pair *pair, bool is_signed, double *found) {
  const coal::ComputeDistance compute(pair->a.get(), pair->b.get());
  coal::DistanceRequest request;
  request.enable_signed_distance = is_signed;
  const coal::Transform3s here;
  for (const auto &there : pair->poses) {
    coal::DistanceResult result;
    *found++ = compute(here, there, request, result);
  }
}

void collisions(const Pair *pair, double *found) {
  const coal::ComputeCollision compute(pair->a.get(), pair->b.get());
  const coal::CollisionRequest request;
  const coal::Transform3s here;
  for (const auto &there : pair->poses) {
    coal::CollisionResult result;
    *found++ = compute(here, there, request, result) ? -1.0 : 1.0;
  }
}

void release(Pair *pair) { delete pair; }
}
