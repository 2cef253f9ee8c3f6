"use strict";
// A common crosshair with a reading of the values under it, and looking closer at a part of the time. Without it the page is whole.
(() => {
  const windows = [...document.querySelectorAll("svg.window")].map((svg) => {
    const [left, top, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const { t0, t1, low, high } = Object.fromEntries(Object.entries(svg.dataset).map(([key, value]) => [key, Number(value)]));
    const words = svg.nextElementSibling?.classList.contains("words") ? [...svg.nextElementSibling.children] : [];
    return { svg, left, top, width, height, t0, t1, low, high, log: svg.dataset.log === "1", unit: svg.dataset.unit, words };
  });
  if (!windows.length) return;
  const whole = [windows[0].t0, windows[0].t1];
  let shown = whole;
  const nav = document.querySelector(".zoom");
  if (nav) nav.hidden = false;
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;

  const place = (w, t) => w.left + ((t - w.t0) / (w.t1 - w.t0)) * w.width;
  const seconds = (w, event) => {
    const box = w.svg.getBoundingClientRect();
    return shown[0] + (Math.min(Math.max(event.clientX - box.left, 0), box.width) / box.width) * (shown[1] - shown[0]);
  };
  const drawn = (w, tag, attributes) => {
    const made = w.svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", tag));
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  // --- values under the crosshair
  const memory = new WeakMap();
  const pieces = (path) => {
    if (!memory.has(path)) memory.set(path, path.getAttribute("d").split("M").filter(Boolean).map((piece) => {
      const n = piece.match(/-?[\d.]+/g).map(Number);
      return Array.from({ length: n.length >> 1 }, (_, i) => [n[2 * i], n[2 * i + 1]]);
    }));
    return memory.get(path);
  };
  const nearest = (points, x, far) => {
    let low = 0, high = points.length - 1;
    if (high < 0 || x < points[0][0] - far || x > points[high][0] + far) return -1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle; else high = middle;
    }
    return Math.abs(points[low][0] - x) < Math.abs(points[high][0] - x) ? low : high;
  };
  const scaled = (w, y) => {
    const part = 1 - (y - w.top) / w.height;
    return w.log ? Math.exp(Math.log(w.low) + part * Math.log(w.high / w.low)) : w.low + part * (w.high - w.low);
  };
  const readings = (w, t) => {
    const out = new Map();
    const far = Math.max(0.5, (0.6 / (w.t1 - w.t0)) * w.width);
    for (const mark of w.svg.querySelectorAll("[data-mark=trace], [data-mark=area]")) {
      for (const points of [...mark.querySelectorAll("path")].flatMap(pieces)) {
        const area = mark.dataset.mark === "area", half = area ? points.length >> 1 : points.length;
        const i = nearest(points.slice(0, half), place(w, t), far);
        if (i < 0) continue;
        const base = area ? scaled(w, points[2 * half - 1 - i][1]) : 0;
        out.set(mark.dataset.series, scaled(w, points[i][1]) - base);
      }
    }
    return out;
  };
  const clear = () => {
    tip.hidden = true;
    document.querySelectorAll(".cross").forEach((c) => c.remove());
  };
  const point = (w, event) => {
    clear();
    const t = seconds(w, event);
    for (const o of windows) drawn(o, "path", { class: "cross", d: `M${place(o, t)} ${o.top}v${o.height}` });
    tip.replaceChildren(`${Math.floor(t / 60)}:${(t % 60).toFixed(1).padStart(4, "0")}`);
    for (const [name, value] of readings(w, t)) {
      const digits = w.unit === "%" || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
      tip.append(document.createElement("br"), `${name}: ${value.toFixed(digits)} ${w.unit}`);
    }
    tip.hidden = false;
    const right = event.pageX + 16 + tip.offsetWidth > window.scrollX + document.documentElement.clientWidth;
    tip.style.left = `${Math.max(4, right ? event.pageX - tip.offsetWidth - 12 : event.pageX + 14)}px`;
    tip.style.top = `${event.pageY + 14}px`;
  };

  // --- a part of the time
  const ticks = (a, b) => {
    const raw = (b - a) / 8, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const out = [];
    for (let n = Math.ceil(a / step - 1e-9); n * step <= b + 1e-9; n++) out.push(Number((n * step).toPrecision(12)));
    return out;
  };
  const zoom = (from, to) => {
    const [a, b] = [Math.max(from, whole[0]), Math.min(to, whole[1])];
    if (b - a < 0.5) return;
    shown = [a, b];
    for (const w of windows) {
      const left = place(w, a), width = place(w, b) - left;
      w.svg.setAttribute("viewBox", `${left} ${w.top} ${width} ${w.height}`);
      for (const word of w.words) {
        word.dataset.x ??= word.getAttribute("x");
        const x = w.left + ((Number(word.dataset.x) - left) / width) * w.width;
        word.setAttribute("x", x);
        word.style.display = x < w.left || x > w.left + w.width ? "none" : "";
      }
      const [...marks] = w.svg.parentNode.querySelectorAll(".time-axis text");
      const name = marks.pop();
      if (!marks.length) continue; // only the lowest panel has any
      const model = marks[0].cloneNode();
      marks.forEach((text) => text.remove());
      if (w.svg.parentNode.nextElementSibling?.querySelector(".window")) continue;
      for (const t of ticks(a, b)) {
        const text = name.parentNode.insertBefore(model.cloneNode(), name);
        text.setAttribute("x", w.left + ((t - a) / (b - a)) * w.width);
        text.textContent = t;
      }
    }
    for (const button of document.querySelectorAll(".zoom button")) {
      const near = (u, v) => Math.abs(Number(u) - v) < 0.02;
      const { a: first = whole[0], b: last = whole[1] } = button.dataset;
      button.classList.toggle("on", near(Math.max(first, whole[0]), a) && near(Math.min(last, whole[1]), b));
    }
  };
  for (const w of windows) {
    let from = null, pick = null;
    w.svg.addEventListener("pointerdown", (event) => {
      point(w, event);
      if (event.button !== 0 || event.pointerType === "touch") return;
      from = seconds(w, event);
      w.svg.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    w.svg.addEventListener("pointermove", (event) => {
      point(w, event);
      if (from === null) return;
      const [a, b] = [from, seconds(w, event)].sort((u, v) => u - v);
      pick ??= drawn(w, "rect", { class: "pick", y: w.top, height: w.height });
      pick.setAttribute("x", place(w, a));
      pick.setAttribute("width", place(w, b) - place(w, a));
    });
    const done = (event) => {
      if (pick !== null && event.type === "pointerup") zoom(...[from, seconds(w, event)].sort((u, v) => u - v));
      pick?.remove();
      from = pick = null;
    };
    w.svg.addEventListener("pointerup", done);
    w.svg.addEventListener("pointercancel", done);
    w.svg.addEventListener("pointerleave", clear);
    w.svg.addEventListener("dblclick", () => zoom(...whole));
  }
  for (const button of document.querySelectorAll(".zoom button")) {
    const { a = whole[0], b = whole[1] } = button.dataset;
    button.addEventListener("click", () => zoom(Number(a), Number(b)));
  }
})();
