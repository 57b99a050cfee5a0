// The cell in the page: its joint positions, and the poses that follow from them.

class PageCell {
  /**
   * data: `cell` of what Python packed. kinematics: printed formulas; without `poses`
   * the cell stands as it was exported, or as a trajectory has it.
   */
  constructor(data, kinematics) {
    this.data = data;
    this.kinematics = kinematics;
    this.q = Float64Array.from(data.q);
    this.linkPoses = Float64Array.from(data.poses);
  }

  get canMove() {
    return this.kinematics.poses !== null;
  }

  /** Return the poses of all moving links, 12 numbers each; NaN where there is none. */
  poses(q) {
    if (!this.canMove) throw new Error(this.kinematics.reason);
    if (q.length !== this.q.length) {
      throw new Error(`q must have ${this.q.length} numbers, not ${q.length}.`);
    }
    const out = new Float64Array(this.data.poses.length);
    this.kinematics.poses(Float64Array.from(q), out);
    return out;
  }

  /** Move to joint positions [m or rad]; return whether the cell can be there. */
  move(q) {
    if (!this.canMove || !q.every(Number.isFinite)) return false;
    const poses = this.poses(q);
    if (!poses.every(Number.isFinite)) return false;
    this.q = Float64Array.from(q);
    this.linkPoses = poses;
    return true;
  }

  /** Take poses that Python computed, with the joint positions that they belong to. */
  take(q, poses) {
    this.q = Float64Array.from(q);
    this.linkPoses = Float64Array.from(poses);
  }

  /** Return the pose of a frame in the world: {row, pose}, its link and its place there. */
  frame({ row, pose }) {
    return product(this.linkPoses, 12 * row, pose, 0);
  }

  /** Return joint positions that put an end effector at a pose, nearest to q, or null. */
  solve(name, target) {
    const out = Float64Array.from(this.q);
    const solver = this.kinematics?.ik?.[name];
    return solver && solver(Float64Array.from(target), this.q, out) ? out : null;
  }
}
