// Put the server in the page in place of the worker that would open a connection.
//
// This runs before the client, which makes one Worker and talks to its server by it.

const started = unpacked("armillary-data").then((data) => {
  const cell = new PageCell(data.cell, kinematics);
  const server = new PageServer(data, cell);
  globalThis.armillary = publicNames(data, cell, server);
  return server;
});

/** What people and tests may call from the browser's console. */
function publicNames(data, cell, server) {
  return Object.freeze({
    /** The formulas: joints, limits and `poses(q, out)`, which allocates nothing. */
    kinematics,
    /** Names of joints, in the order of q. */
    joints: data.cell.joints,
    /** Names of moving links, in the order of `poses`; the first is the world. */
    links: data.cell.movingLinks,
    /** Return the poses of all moving links, 12 numbers each, at q [m or rad]. */
    poses: (q) => Array.from(cell.poses(q)),
    /** Return the pose of a frame in the world now, 12 numbers. */
    pose: (name) => {
      return Array.from(cell.frame(cell.frameCalled(name)));
    },
    /** Return the poses of what the motion avoids now, 12 numbers each. */
    obstacles: () => data.cell.obstacles.map((_, k) => Array.from(server.obstacle(k))),
    /** Return the time of the motion that is shown [s]. */
    time: () => server.playback?.time,
    /** Return the nodes of what is absent now. */
    hidden: () => server.hidden?.nodes ?? [],
    /** Return the joint positions now [m or rad]. */
    q: () => Array.from(cell.q),
    /** Move the cell to q [m or rad]. */
    move: (q) => server.moveTo(Float64Array.from(q)),
    /** Return joint positions [m or rad] of a frame's pose, its first 12 numbers, or null. */
    ik: (name, pose) => {
      const q = cell.solve(name, pose);
      return q && Array.from(q);
    },
    /** Return the identifier of a control by its purpose, such as "joint 0". */
    control: (purpose) => server.uuids[purpose],
    /** Handle a message as if a control had sent it. */
    receive: (message) => server.receive(message),
  });
}

globalThis.Worker = class PageWorker {
  constructor() {
    this.onmessage = null;
    this.isOpen = true;
  }

  postMessage({ type, message }) {
    started.then((server) => {
      if (type === "set_server") server.connect(this);
      else if (type === "send") server.receive(message);
      else if (type === "close") this.close(server);
    });
  }

  deliver(data) {
    if (this.isOpen) setTimeout(() => this.onmessage?.({ data }));
  }

  close(server) {
    this.isOpen = false;
    server.clients.delete(this);
  }

  terminate() {
    this.isOpen = false;
  }

  addEventListener() {}
};
