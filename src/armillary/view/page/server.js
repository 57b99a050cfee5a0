// The server in the page: it answers the viewer's client as a Python server would.
//
// The client hears of what changes by messages, and sends a message for each control
// that somebody moved; `controls` says what each control is for.

class PageServer {
  /** data: what Python packed; cell: the `PageCell`. */
  constructor(data, cell) {
    this.data = data;
    this.cell = cell;
    this.clients = new Set();
    this.controls = data.cell.controls;
    this.frame = data.cell.frames[0];
    this.uuids = {}; // of controls by purpose, such as "status" or "joint 3"
    for (const [uuid, { kind, index }] of Object.entries(this.controls)) {
      this.uuids[index === undefined ? kind : `${kind} ${index}`] = uuid;
    }
    this.gizmo = null; // the frame that is dragged, with the node of the gizmo
    this.playback = null;
    if (data.cell.motion) {
      this.playback = new Playback(data.cell.motion, cell);
      this.playback.onTime = (time) => this.showTime(time);
    }
    this.hidden = null; // the entry of `absent` that is shown
    this.charts = new Charts(data.cell.charts, (time) => this.time(time));
  }

  connect(client) {
    this.clients.add(client);
    this.hidden = null;
    client.deliver({ type: "connected" });
    client.deliver({ type: "message_batch", messages: this.data.messages });
    this.update();
  }

  post(messages) {
    for (const client of this.clients) {
      client.deliver({ type: "message_batch", messages });
    }
  }

  receive(message) {
    if (message.type === "GuiUpdateMessage" && "value" in message.updates) {
      const control = this.controls[message.uuid];
      if (control) this[control.kind]?.(message.updates.value, control, message.uuid);
    } else if (message.type === "TransformControlsUpdateMessage") {
      this.drag(message);
    } else if (message.type === "TransformControlsDragEndMessage") {
      this.update();
    }
  }

  // what controls do: a method each, named after the control's kind

  joint(value, { index }, uuid) {
    const q = Float64Array.from(this.cell.q);
    q[index] = value;
    this.moveTo(q, uuid);
  }

  posture(_, { q }) {
    this.moveTo(this.cell.q.map((now, k) => q[k] ?? now));
  }

  vector(text, _, uuid) {
    const q = text.split(/[\s,]+/).filter(Boolean).map(Number);
    if (q.length !== this.cell.q.length || !q.every(Number.isFinite)) {
      return this.say(`q must have ${this.cell.q.length} numbers.`);
    }
    this.moveTo(Float64Array.from(q), uuid);
  }

  layer(visible, { nodes }) {
    const type = "SetSceneNodeVisibilityMessage";
    this.post(nodes.map((name) => ({ type, name, visible, owner: "" })));
  }

  chosen(name) {
    this.frame = this.cell.frameCalled(name);
    this.update();
  }

  target(name) {
    const node = this.data.cell.gizmo;
    const isOn = name in this.data.cell.targets;
    this.gizmo = isOn ? { ...this.cell.frameCalled(name), node } : null;
    this.layer(isOn, { nodes: [node] });
    this.update();
  }

  play() {
    this.playback.play();
  }

  pause() {
    this.playback.pause();
  }

  speed(value) {
    this.playback.speed = value;
  }

  time(value, _, uuid) {
    this.playback.pause();
    this.showTime(value, uuid);
  }

  // what moves the cell

  moveTo(q, source) {
    this.playback?.pause();
    const moved = this.cell.move(q);
    this.say(moved ? "" : "The loops of the cell cannot be closed there.");
    this.update(moved ? source : undefined);
  }

  showTime(time, source) {
    if (!this.playback.show(time)) this.say("The cell cannot be closed at this time.");
    this.update(source);
  }

  drag({ name, wxyz, position }) {
    const gizmo = this.gizmo;
    if (!gizmo || gizmo.node !== name) return;
    this.playback?.pause();
    const q = this.cell.solve(gizmo.name, poseOf(wxyz, position));
    if (q !== null && this.cell.move(q)) {
      this.say("");
    } else {
      this.say(`${gizmo.name}: ${this.cell.whyUnsolved(gizmo.name)}`);
    }
    this.update(undefined, gizmo.node);
  }

  // messages to the client

  say(value) {
    const text = this.cell.kinematics.reason || value || "ready";
    this.postValues([[this.uuids.status, text]]);
  }

  postValues(values) {
    const type = "GuiUpdateMessage";
    this.post(values.map(([uuid, value]) => ({ type, uuid, updates: { value } })));
  }

  /** Return the message that puts the ends of rods where they are. */
  rods() {
    const ends = this.data.cell.rods.flat().map((end) => this.cell.frame(end));
    const points = Float32Array.from(ends.flatMap(positionOf));
    return { type: "SceneNodeUpdateMessage", name: "/rods", updates: { points }, owner: "" };
  }

  /** Return the pose of an obstacle at the time of the motion that is shown. */
  obstacle(k) {
    return this.playback.obstacle(k, this.data.cell.obstacles.length);
  }

  /** Return the messages that hide what is absent at the time that is shown. */
  absent() {
    const sample = this.playback.sample(this.playback.time);
    const now = this.data.cell.absent.findLast((each) => each.sample <= sample);
    const before = this.hidden;
    if (!now || now === before) return [];
    this.hidden = now;
    const type = "SetSceneNodeVisibilityMessage";
    const message = (name, visible) => ({ type, name, visible, owner: "" });
    return [
      ...(before?.nodes ?? []).map((name) => message(name, true)),
      ...now.nodes.map((name) => message(name, false)),
    ];
  }

  /** Show where the cell is; the control `source` and the node `held` stay as they are. */
  update(source, held) {
    const { joints, links, obstacles } = this.data.cell;
    const messages = [];
    for (const each of this.gizmo ? [...links, this.gizmo] : links) {
      if (each.node !== held) messages.push(...moved(each.node, this.cell.frame(each)));
    }
    obstacles.forEach((node, k) => messages.push(...moved(node, this.obstacle(k))));
    if (this.data.cell.rods.length) messages.push(this.rods());
    if (this.playback) messages.push(...this.absent());
    this.post(messages);
    const values = [];
    joints.forEach((_, k) => values.push([this.uuids[`joint ${k}`], this.cell.q[k]]));
    values.push([this.uuids.vector, Array.from(this.cell.q).join(", ")]);
    const X = this.cell.frame(this.frame);
    values.push([this.uuids.position, digits(positionOf(X))]);
    values.push([this.uuids.quaternion, digits(quaternionOf(X))]);
    if (this.playback) {
      values.push([this.uuids.time, this.playback.time]);
      this.charts.show(this.playback.time);
    }
    this.postValues(values.filter(([uuid]) => uuid && uuid !== source));
    this.post(this.labels());
  }

  /** Return the messages that write angles into labels in degrees. */
  labels() {
    const angles = Object.entries(this.controls).filter(([, each]) => each.isAngle);
    return angles.map(([uuid, { index, label }]) => {
      const degrees = ((this.cell.q[index] * 180) / Math.PI).toFixed(1);
      const angle = degrees.replace(/^-0\.0$/, "0.0").replace("-", "\u2212");
      const shown = `${label} ${angle}\u00b0`;
      return { type: "GuiUpdateMessage", uuid, updates: { label: shown } };
    });
  }
}

function moved(name, X) {
  return [
    { type: "SetPositionMessage", name, position: positionOf(X), owner: "" },
    { type: "SetOrientationMessage", name, wxyz: quaternionOf(X), owner: "" },
  ];
}

function digits(numbers) {
  return numbers.map((x) => x.toFixed(6)).join(", ");
}
