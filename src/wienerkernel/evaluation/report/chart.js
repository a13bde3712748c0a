/* Charts as inline SVG. */
const tip = document.getElementById("tip");

/* Four digits, or as many as tell values apart that differ by a small part of their spread. */
const show = (value, spread = 0) => {
  if (value === null || !Number.isFinite(value)) return "–";
  const more = spread > 0 && value ? 3 + Math.ceil(Math.log10(Math.abs(value) / spread)) : 0;
  const rounded = Number(value.toPrecision(Math.min(Math.max(4, more), 15))), size = Math.abs(rounded);
  const written = size >= 1e7 || (size > 0 && size < 1e-4) ? rounded.toExponential().replace("+", "") : String(rounded);
  return written.replaceAll("-", "−");
};
const interval = (low, high) => `${show(low, high - low)} … ${show(high, high - low)}`;
/* A number, or the name of the value of a category. */
const place = ({ values, x = [0] }, at) => (
  values.length ? values[Math.min(Math.max(Math.round(at), 0), values.length - 1)] : show(at, x.at(-1) - x[0]));
const extent = (values) => {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
};
const padded = ([low, high], part = 0.04) => {
  const margin = high > low ? part * (high - low) : Math.max(Math.abs(low), 1) * 0.5;
  return [low - margin, high + margin];
};
const nearest = (values, x) => {
  let best = 0;
  for (let k = 1; k < values.length; k++) if (Math.abs(values[k] - x) < Math.abs(values[best] - x)) best = k;
  return best;
};

/* Ticks at 1, 2 or 5 times a power of ten, and their labels. */
const ticks = ([low, high], count) => {
  const raw = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999) || 10);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9), found = [];
  for (let k = first; k <= last; k++) found.push([k * step, show(k * step, step)]);
  return found;
};

const svg = (name, attributes, parent) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (parent) parent.append(node);
  return node;
};
const text = (caption, attributes, parent) => {
  const node = svg("text", attributes, parent);
  node.textContent = caption;
  return node;
};
const html = (name, className, caption, parent) => {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = caption;
  parent.append(node);
  return node;
};

const PADDING = { left: 56, right: 14, top: 22, bottom: 38 };

/* Ticks at the values of a category, as many and as long as there is space for. */
const categories = (values, width) => {
  const stride = Math.ceil(values.length / Math.max(Math.floor(width / 40), 1)), space = (stride * width) / values.length;
  const most = Math.max(Math.floor(space / 7.5), 3);
  return values.map((name, k) => [k, name.length > most ? `${name.slice(0, most - 1)}…` : name, name])
    .filter(([k]) => k % stride === 0);
};

/* Axes in the host element, and functions that draw in their coordinates; of a category, x is the index of its value. */
const chart = (host, { x, y, values = [], xLabel, yLabel, height, describe, right = PADDING.right }) => {
  const width = Math.max(host.clientWidth, 240), { top, bottom } = PADDING, levels = ticks(y, height / 55);
  const left = Math.max(PADDING.left, 16 + 7 * Math.max(...levels.map(([, name]) => name.length)));
  const cut = (name) => (7 * name.length > width ? `${name.slice(0, Math.floor(width / 7) - 1)}…` : name);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe });
  const X = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (width - left - right);
  const Y = (value) => height - bottom - ((value - y[0]) / (y[1] - y[0])) * (height - top - bottom);
  for (const [tick, name] of levels) {
    svg("line", { class: "grid", x1: left, x2: width - right, y1: Y(tick), y2: Y(tick) }, root);
    text(name, { x: left - 8, y: Y(tick) + 4, "text-anchor": "end" }, root);
  }
  const named = values.length ? categories(values, width - left - right) : ticks(x, width / 90);
  for (const [tick, name, whole] of named) {
    svg("line", { class: "axis", x1: X(tick), x2: X(tick), y1: height - bottom, y2: height - bottom + 5 }, root);
    const node = text(name, { x: X(tick), y: height - bottom + 18, "text-anchor": "middle" }, root);
    if (whole) svg("title", {}, node).textContent = whole;
  }
  svg("path", { class: "axis", d: `M${left},${height - bottom}H${width - right}` }, root);
  text(cut(xLabel), { x: width - right, y: height - 4, "text-anchor": "end" }, root);
  text(cut(yLabel), { x: 0, y: 12 }, root);
  const id = `clip${chart.count = (chart.count || 0) + 1}`;
  const clip = svg("clipPath", { id }, root);
  svg("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom }, clip);
  const layer = svg("g", { "clip-path": `url(#${id})` }, root);
  const at = (value) => value.toFixed(2);
  const points = (xs, ys) => xs.map((value, k) => `${at(X(value))},${at(Y(ys[k]))}`);
  /* Of a category, curves over all values are pieces at each of them. */
  const pieces = (xs, ...ys) => values.length && xs.every((value, k) => value === k)
    ? xs.map((value, k) => [[value - 0.35, value + 0.35], ...ys.map((y) => [y[k], y[k]])]) : [[xs, ...ys]];
  const path = (className, d) => svg("path", { class: className, d }, layer);
  const line = (xs, ys, className) =>
    path(`line ${className}`, pieces(xs, ys).map((piece) => `M${points(...piece).join("L")}`).join(""));
  const area = (xs, lows, highs, className) => path(className, pieces(xs, lows, highs).map(
    ([at, low, high]) => `M${points(at, high).join("L")}L${points(at, low).reverse().join("L")}Z`).join(""));
  const point = (px, py, opacity = 1) =>
    svg("circle", { class: "point", cx: at(X(px)), cy: at(Y(py)), r: 3, opacity }, layer);
  /* Samples of one value of a category stand beside each other. */
  const beside = (k) => (values.length ? ((k * 0.618) % 1 - 0.5) * 0.5 : 0);
  const vertical = (className) => svg("path", { class: className }, root);
  const move = (node, value) => node.setAttribute("d", `M${at(X(value))},${top}V${height - bottom}`);
  /* describe(x, y) returns [x to mark, lines of the tooltip]. */
  const hover = (describe, choose) => {
    const cross = vertical("cross");
    const position = (event) => {
      const box = root.getBoundingClientRect(), px = ((event.clientX - box.left) / box.width) * width;
      const py = ((event.clientY - box.top) / box.height) * height;
      return [
        x[0] + ((px - left) / (width - left - right)) * (x[1] - x[0]),
        y[0] + ((height - bottom - py) / (height - top - bottom)) * (y[1] - y[0]),
      ];
    };
    root.addEventListener("pointermove", (event) => {
      const [mark, lines] = describe(...position(event));
      move(cross, mark);
      tip.textContent = lines.join("\n");
      tip.hidden = false;
      const wide = document.documentElement.clientWidth, half = tip.offsetWidth + 16;
      const beside = event.clientX + half > wide ? Math.max(event.clientX - half, 4) : event.clientX + 16;
      tip.style.left = `${beside + window.scrollX}px`;
      tip.style.top = `${event.clientY + window.scrollY + 14}px`;
    });
    root.addEventListener("pointerleave", () => {
      tip.hidden = true;
      cross.removeAttribute("d");
    });
    if (choose) root.addEventListener("click", (event) => choose(position(event)[0]));
  };
  const distance = (x1, y1, x2, y2) => Math.hypot(X(x1) - X(x2), Y(y1) - Y(y2));
  /* A bar of colors right of the axes. */
  const scale = (low, high, colorOf, steps = 40) => {
    const at = (part) => height - bottom - part * (height - top - bottom), start = width - right + 16;
    for (let k = 0; k < steps; k++) {
      svg("rect", { x: start, y: at((k + 1) / steps), width: 14, height: at(0) - at(1 / steps) + 0.5, fill: colorOf((k + 0.5) / steps) }, root);
    }
    if (!(high > low)) return text(show(low), { x: start + 20, y: at(0.5) + 4 }, root);
    for (const [tick, name] of ticks([low, high], 5)) text(name, { x: start + 20, y: at((tick - low) / (high - low)) + 4 }, root);
  };
  host.replaceChildren(root);
  return { layer, X, Y, line, area, point, beside, vertical, move, hover, distance, scale };
};

const legend = (list, entries) => {
  list.replaceChildren();
  for (const [className, caption] of entries) {
    const item = html("li", "", "", list);
    html("i", `swatch ${className}`, "", item);
    item.append(caption);
  }
};
