// A motion: the joint positions at a time, and a clock that plays it.

class Playback {
  /**
   * data: `times` [s], `q`, row by row, `poses` of links where they are baked, and the
   * poses of `obstacles`, all of one time after those of another.
   */
  constructor(data, cell) {
    this.data = data;
    this.cell = cell;
    this.time = data.times[0];
    this.speed = 1;
    this.isPlaying = false;
    this.onTime = () => {};
  }

  get start() {
    return this.data.times[0];
  }

  get end() {
    return this.data.times[this.data.times.length - 1];
  }

  /** Put the cell where it is at a time [s]: between samples, by linear interpolation. */
  show(time) {
    this.time = Math.min(Math.max(time, this.start), this.end);
    const { times, q, poses } = this.data;
    const n = this.cell.q.length;
    const i = this.sample(this.time);
    const next = Math.min(i + 1, times.length - 1);
    const part = next > i ? (this.time - times[i]) / (times[next] - times[i]) : 0;
    if (poses) {
      const row = part < 0.5 ? i : next;
      const size = this.cell.linkPoses.length;
      const at = poses.subarray(row * size, (row + 1) * size);
      this.cell.take(q.subarray(row * n, (row + 1) * n), at);
      return true;
    }
    const between = new Float64Array(n);
    for (let k = 0; k < n; k++) {
      between[k] = (1 - part) * q[i * n + k] + part * q[next * n + k];
    }
    return this.cell.move(between);
  }

  /** Return the pose of an obstacle at the time that is shown, of so many. */
  obstacle(k, count) {
    const start = 12 * (this.sample(this.time) * count + k);
    return this.data.obstacles.subarray(start, start + 12);
  }

  /** Return the last sample that is not after a time. */
  sample(time) {
    const { times } = this.data;
    let [low, high] = [0, times.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  play() {
    if (this.isPlaying) return;
    this.isPlaying = true;
    if (this.time >= this.end) this.time = this.start;
    let last = performance.now();
    const step = (now) => {
      if (!this.isPlaying) return;
      const time = this.time + (this.speed * (now - last)) / 1000;
      last = now;
      if (time >= this.end) this.isPlaying = false;
      this.onTime(time);
      if (this.isPlaying) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  pause() {
    this.isPlaying = false;
  }
}
