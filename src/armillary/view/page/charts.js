// Charts below the scene: a click goes to the instant of what is clicked.
//
// Python draws them, and escapes all names in them.

class Charts {
  /**
   * charts: {title, svg} each. goTo: called with the time that is clicked [s].
   */
  constructor(charts, goTo) {
    this.goTo = goTo;
    this.cursors = [];
    if (!charts.length) return;
    this.box = document.createElement("div");
    this.box.id = "charts";
    this.box.style.cssText =
      "position:fixed;left:0;right:0;bottom:0;max-height:45vh;" +
      "overflow-y:auto;background:#fff;border-top:1px solid #d5dade;z-index:5;" +
      "box-sizing:border-box;padding:6px 10px 2px;cursor:pointer";
    for (const each of charts) this.add(each, charts.length > 1);
    const attach = () => {
      document.body.append(this.box);
      // The scene ends where charts begin.
      const fit = () => {
        const height = `calc(100vh - ${this.box.offsetHeight}px)`;
        document.getElementById("root").style.cssText =
          `position:absolute;inset:0 0 auto 0;height:${height};overflow:hidden`;
        window.dispatchEvent(new Event("resize"));
      };
      new ResizeObserver(fit).observe(this.box);
    };
    if (document.body) attach();
    else document.addEventListener("DOMContentLoaded", attach);
  }

  add({ title, svg }, isTitled) {
    if (isTitled) {
      const head = document.createElement("div");
      head.textContent = title;
      head.style.cssText = "font:600 12px system-ui,sans-serif;color:#39434d";
      this.box.append(head);
    }
    const holder = document.createElement("div");
    holder.innerHTML = svg;
    const chart = holder.firstElementChild;
    this.box.append(chart);
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [name, value] of [["y1", 0], ["y2", "100%"], ["stroke", "#111"]]) {
      cursor.setAttribute(name, value);
    }
    cursor.setAttribute("stroke-width", 1.5);
    cursor.setAttribute("pointer-events", "none");
    chart.append(cursor);
    const { left, right, end } = chart.dataset;
    this.cursors.push({ cursor, left: +left, right: +right, end: +end });
    chart.addEventListener("click", (event) => {
      const step = event.target.closest("[data-time]");
      this.goTo(step ? +step.dataset.time : this.timeAt(chart, event.clientX));
    });
  }

  /** Return the time at a place in the window [pixels]. */
  timeAt(chart, x) {
    const { left, right, end } = chart.dataset;
    const at = new DOMPoint(x, 0).matrixTransform(chart.getScreenCTM().inverse()).x;
    return Math.min(Math.max((at - left) / (right - left), 0), 1) * end;
  }

  /** Put the cursors at a time [s]. */
  show(time) {
    for (const { cursor, left, right, end } of this.cursors) {
      const x = left + ((right - left) * time) / end;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
  }
}
