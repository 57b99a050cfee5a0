// Dynamics of a robot by Pinocchio, in a loop without Python around each call.

#define PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

using Matrix = Eigen::Matrix<double, -1, -1, Eigen::RowMajor>;
using Rows = Eigen::Map<const Matrix>;

struct Robot {
  pinocchio::Model model;
  pinocchio::Data data;
};

static pinocchio::JointModel joint(long axis) {
  switch (axis) {
  case 0:
    return pinocchio::JointModelRX();
  case 1:
    return pinocchio::JointModelRY();
  case 2:
    return pinocchio::JointModelRZ();
  case 3:
    return pinocchio::JointModelPX();
  case 4:
    return pinocchio::JointModelPY();
  default:
    return pinocchio::JointModelPZ();
  }
}

extern "C" {

// parents: of each joint, 0 for the world; axes: 0 to 2 turn, 3 to 5 slide;
// placements: rotation by rows, then origin; inertias: mass, centre, and rotational
// inertia about that by rows.
Robot *robot(long count, const long *parents, const long *axes,
             const double *placements, const double *inertias) {
  pinocchio::Model model;
  for (long k = 0; k < count; ++k) {
    const double *X = placements + 12 * k, *I = inertias + 13 * k;
    const Eigen::Matrix3d R = Eigen::Map<const Eigen::Matrix<double, 3, 3, 1>>(X);
    const Eigen::Vector3d p(X[9], X[10], X[11]), c(I[1], I[2], I[3]);
    const Eigen::Matrix3d J =
        Eigen::Map<const Eigen::Matrix<double, 3, 3, 1>>(I + 4);
    const auto id = model.addJoint(parents[k], joint(axes[k]),
                                   pinocchio::SE3(R, p), std::to_string(k));
    model.appendBodyToJoint(id, pinocchio::Inertia(I[0], c, J));
  }
  return new Robot{model, pinocchio::Data(model)};
}

// Compute rows of vectors and store the results: torques, mass matrices (the upper
// half), accelerations, or the derivatives of torques by positions and by rates.
void dynamics(Robot *robot, long question, const double *q, const double *v,
              const double *a, long rows, double *found) {
  const auto &model = robot->model;
  auto &data = robot->data;
  const long n = model.nv;
  const Rows Q(q, rows, n), V(v, rows, n), A(a, rows, n);
  Eigen::VectorXd x(n), y(n), z(n);
  for (long k = 0; k < rows; ++k) {
    x = Q.row(k);
    y = V.row(k);
    z = A.row(k);
    switch (question) {
    case 0:
      Eigen::Map<Eigen::VectorXd>(found + n * k, n) =
          pinocchio::rnea(model, data, x, y, z);
      break;
    case 1:
      Eigen::Map<Eigen::MatrixXd>(found + n * n * k, n, n) =
          pinocchio::crba(model, data, x);
      break;
    case 2:
      Eigen::Map<Eigen::VectorXd>(found + n * k, n) =
          pinocchio::aba(model, data, x, y, z);
      break;
    default:
      pinocchio::computeRNEADerivatives(model, data, x, y, z);
      Eigen::Map<Matrix>(found + 2 * n * n * k, n, n) = data.dtau_dq;
      Eigen::Map<Matrix>(found + (2 * k + 1) * n * n, n, n) = data.dtau_dv;
    }
  }
}

void release(Robot *robot) { delete robot; }
}
