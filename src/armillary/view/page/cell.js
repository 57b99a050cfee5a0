// The cell in the page: its joint positions, and the poses that follow from them.

class PageCell {
  /**
   * data: `cell` of what Python packed. kinematics: printed formulas; without `poses`
   * the cell stands as it was exported, or as a motion has it.
   */
  constructor(data, kinematics) {
    this.data = data;
    this.kinematics = kinematics;
    this.q = Float64Array.from(data.q);
    this.linkPoses = this.withBases(data.poses);
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
    this.linkPoses = this.withBases(poses);
    return true;
  }

  /** Return poses of moving links, and behind them those of bases that a motion moves. */
  withBases(poses) {
    const { bases } = this.data;
    const all = new Float64Array(poses.length + 12 * bases.length);
    all.set(poses);
    bases.forEach(({ row, pose }, k) => {
      all.set(product(poses, 12 * row, pose, 0), poses.length + 12 * k);
    });
    return all;
  }

  /** Take poses that Python computed, of bases too, with their joint positions. */
  take(q, poses) {
    this.q = Float64Array.from(q);
    this.linkPoses = Float64Array.from(poses);
  }

  /** Return the pose of a frame in the world: {row, pose}, its link and its place there. */
  frame({ row, pose }) {
    return product(this.linkPoses, 12 * row, pose, 0);
  }

  /** Return why `solve` has no answer, as a sentence. */
  whyUnsolved(name) {
    const solver = this.kinematics.ik[this.data.targets[name] ?? name];
    if (!solver) return "this frame cannot be placed.";
    return solver.family
      ? "no joint positions within limits reach this pose."
      : "no joint positions that reach this pose were found near the present ones.";
  }

  /** Return what is known of a frame by its name: {name, row, pose}. */
  frameCalled(name) {
    return this.data.frames.find((each) => each.name === name);
  }

  /**
   * Return joint positions that put a frame at a pose, nearest to q, or null.
   *
   * Frames that are fixed to one link share a solver, that of `targets[name]`.
   */
  solve(name, target) {
    const placed = this.data.targets[name] ?? name;
    const solver = this.kinematics.ik[placed];
    if (!solver) return null;
    let pose = target.slice(0, 12);
    if (placed !== name) {
      const [now, there] = [name, placed].map((each) => this.frame(this.frameCalled(each)));
      pose = product(product(pose, 0, inverse(now), 0), 0, there, 0);
    }
    const out = Float64Array.from(this.q);
    const X = Float64Array.of(...pose, 0, 0, 0, 1);
    return solver.solve(X, this.q, out) ? out : null;
  }
}
