"use strict";
// A common crosshair with a reading of the values under it, and zooming of all plots over time. Without it the page is whole.
(() => {
  const UNITS = 100; // of the plots' horizontal axis, a second
  const end = Number(document.body.dataset.end);
  const whole = { time: [0, end], around: [-10, 10] };
  const shown = { time: [0, end], around: [-10, 10] };
  const canvases = [...document.querySelectorAll(".canvas")];
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;

  const numbers = (d) => d.match(/-?[\d.]+/g).map(Number);
  const pieces = (d) => d.split("M").filter(Boolean).map((piece) => {
    const n = numbers(piece);
    const points = [];
    for (let i = 0; i + 1 < n.length; i += 2) points.push([n[i], n[i + 1]]);
    return points;
  });
  const memory = new WeakMap();
  const parsed = (path) => {
    if (!memory.has(path)) memory.set(path, pieces(path.getAttribute("d")));
    return memory.get(path);
  };
  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    if (high < 0 || x < points[0][0] - 60 || x > points[high][0] + 60) return -1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle; else high = middle;
    }
    return Math.abs(points[low][0] - x) < Math.abs(points[high][0] - x) ? low : high;
  };
  const scaled = (canvas, y) => {
    const { low, high, log } = canvas.dataset;
    const height = canvas.firstElementChild.viewBox.baseVal.height;
    const part = 1 - y / height;
    return log === "1" ? Math.exp(Math.log(low) + part * Math.log(high / low)) : Number(low) + part * (high - low);
  };
  const readings = (canvas, x) => {
    const out = new Map();
    for (const path of canvas.querySelectorAll("path[data-name]")) {
      for (const points of parsed(path)) {
        const stacked = path.classList.contains("area");
        const top = stacked ? points.slice(0, points.length / 2) : points;
        const i = nearest(top, x);
        if (i < 0) continue;
        const base = stacked ? scaled(canvas, points[points.length - 1 - i][1]) : 0;
        const value = scaled(canvas, top[i][1]) - (stacked ? base : 0);
        out.set(path.dataset.name, value);
      }
    }
    return out;
  };

  const seconds = (canvas, event) => {
    const box = canvas.getBoundingClientRect();
    const [a, b] = shown[canvas.dataset.group];
    return a + (Math.min(Math.max(event.clientX - box.left, 0), box.width) / box.width) * (b - a);
  };
  const at = (group, t) => ((t - shown[group][0]) / (shown[group][1] - shown[group][0])) * 100;
  const written = (t, group) => group === "time"
    ? `${Math.floor(t / 60)}:${(t % 60).toFixed(1).padStart(4, "0")}` : `${t < 0 ? "−" : "+"}${Math.abs(t).toFixed(1)} s`;

  const clear = () => {
    tip.hidden = true;
    document.querySelectorAll(".cross").forEach((c) => c.remove());
  };
  const point = (canvas, event) => {
    clear();
    const group = canvas.dataset.group, t = seconds(canvas, event);
    for (const other of group === "time" ? canvases.filter((c) => c.dataset.group === group) : [canvas]) {
      const cross = other.appendChild(document.createElement("div"));
      cross.className = "cross";
      cross.style.left = `${at(group, t)}%`;
    }
    tip.replaceChildren(written(t, group));
    for (const [name, value] of readings(canvas, t * UNITS)) {
      tip.append(document.createElement("br"), `${name}: ${value.toFixed(Number(canvas.dataset.digits))} ${canvas.dataset.unit}`);
    }
    tip.hidden = false;
    const right = event.pageX + 16 + tip.offsetWidth > window.scrollX + document.documentElement.clientWidth;
    tip.style.left = `${Math.max(4, right ? event.pageX - tip.offsetWidth - 12 : event.pageX + 14)}px`;
    tip.style.top = `${event.pageY + 14}px`;
  };

  const ticks = (a, b) => {
    const narrow = window.innerWidth < 600, raw = (b - a) / (narrow ? 5 : 10), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const out = [];
    for (let n = Math.ceil(a / step - 1e-9); n * step <= b + 1e-9; n++) out.push(Number((n * step).toPrecision(12)));
    return out;
  };
  const zoom = (a, b) => {
    a = Math.max(a, 0); b = Math.min(b, end);
    if (b - a < 0.5) return;
    shown.time = [a, b];
    for (const canvas of canvases.filter((c) => c.dataset.group === "time")) {
      const box = canvas.firstElementChild.viewBox.baseVal;
      canvas.firstElementChild.setAttribute("viewBox", `${a * UNITS} 0 ${(b - a) * UNITS} ${box.height}`);
    }
    for (const row of document.querySelectorAll(".xlabels[data-group=time]")) {
      row.replaceChildren(...ticks(a, b).map((t) => {
        const span = document.createElement("span");
        span.style.left = `${at("time", t)}%`;
        span.textContent = t;
        return span;
      }));
    }
    for (const band of document.querySelectorAll(".bands[data-group=time] .band")) {
      const left = Math.max(at("time", band.dataset.a), 0), right = Math.min(at("time", band.dataset.b), 100);
      band.hidden = right <= left;
      band.style.left = `${left}%`;
      band.style.width = `${right - left}%`;
    }
    for (const button of document.querySelectorAll(".zoom button")) {
      const near = (u, v) => Math.abs(u - v) < 0.02;
      button.classList.toggle("on", near(Math.max(button.dataset.a, 0), a) && near(Math.min(button.dataset.b, end), b));
    }
  };

  for (const canvas of canvases) {
    let from = null, pick = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (canvas.dataset.group !== "time" || event.button !== 0 || event.pointerType === "touch") return;
      from = seconds(canvas, event);
      canvas.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    canvas.addEventListener("pointermove", (event) => {
      point(canvas, event);
      if (from === null) return;
      pick ??= canvas.appendChild(Object.assign(document.createElement("div"), { className: "pick" }));
      const [a, b] = [from, seconds(canvas, event)].sort((u, v) => u - v);
      pick.style.left = `${at("time", a)}%`;
      pick.style.width = `${at("time", b) - at("time", a)}%`;
    });
    const done = (event) => {
      if (pick !== null && event.type === "pointerup") {
        const [a, b] = [from, seconds(canvas, event)].sort((u, v) => u - v);
        zoom(a, b);
      }
      pick?.remove();
      from = pick = null;
    };
    canvas.addEventListener("pointerup", done);
    canvas.addEventListener("pointercancel", done);
    canvas.addEventListener("pointerdown", (event) => point(canvas, event));
    canvas.addEventListener("pointerleave", clear);
    canvas.addEventListener("dblclick", () => canvas.dataset.group === "time" && zoom(...whole.time));
  }
  for (const button of document.querySelectorAll(".zoom button")) {
    button.addEventListener("click", () => zoom(Number(button.dataset.a), Number(button.dataset.b)));
  }
})();
