// Poses as 12 numbers: the rows of a 3 x 4 matrix, at an offset of an array.

/** Return A B of two poses, as an array of 12 numbers. */
function product(A, a, B, b) {
  const C = new Float64Array(12);
  for (let i = 0; i < 12; i += 4) {
    for (let j = 0; j < 4; j++) {
      C[i + j] =
        A[a + i] * B[b + j] +
        A[a + i + 1] * B[b + 4 + j] +
        A[a + i + 2] * B[b + 8 + j] +
        (j === 3 ? A[a + i + 3] : 0);
    }
  }
  return C;
}

/** Return the inverse of a pose. */
function inverse(X) {
  const C = new Float64Array(12);
  for (let i = 0; i < 3; i++) {
    for (let j = 0; j < 3; j++) {
      C[4 * i + j] = X[4 * j + i];
      C[4 * i + 3] -= X[4 * j + i] * X[4 * j + 3];
    }
  }
  return C;
}

/** Return the position [m] of a pose. */
function positionOf(X) {
  return [X[3], X[7], X[11]];
}

/** Return the unit quaternion, w first, of a pose, by its greatest component. */
function quaternionOf(X) {
  const [a, b, c] = [X[0], X[5], X[10]];
  const [p, q, r] = [X[9] - X[6], X[2] - X[8], X[4] - X[1]];
  const [u, v, w] = [X[1] + X[4], X[2] + X[8], X[6] + X[9]];
  const rows = [
    [1 + a + b + c, p, q, r],
    [p, 1 + a - b - c, u, v],
    [q, u, 1 - a + b - c, w],
    [r, v, w, 1 - a - b + c],
  ];
  let best = 0;
  for (let i = 1; i < 4; i++) if (rows[i][i] > rows[best][best]) best = i;
  const size = Math.hypot(...rows[best]) || 1;
  return rows[best].map((x) => x / size);
}

/** Return the pose of a unit quaternion, w first, and a position [m]. */
function poseOf([w, x, y, z], [px, py, pz]) {
  return Float64Array.of(
    1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), px,
    2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), py,
    2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), pz,
  );
}
