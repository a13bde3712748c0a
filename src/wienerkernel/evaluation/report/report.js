"use strict";
(() => {
  const report = JSON.parse(document.getElementById("data").textContent);
  const { laws: LAWS, causes: CAUSES } = report;
  const level = `${Math.round(100 * report.coverage)}\u00a0%`;
  const tip = document.getElementById("tip");
  document.documentElement.classList.add("js");

  const show = (value) => {
    if (value === null || !Number.isFinite(value)) return "–";
    return String(Number(value.toPrecision(4))).replace("-", "−");
  };
  const interval = (low, high) => `${show(low)} … ${show(high)}`;
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

  /* Ticks at 1, 2 or 5 times a power of ten. */
  const ticks = ([low, high], count) => {
    const raw = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
    const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999) || 10);
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9), found = [];
    for (let k = first; k <= last; k++) found.push(k * step);
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

  /* Axes in the host element, and functions that draw in their coordinates. */
  const chart = (host, { x, y, xLabel, yLabel, height, describe }) => {
    const width = Math.max(host.clientWidth, 240), { left, right, top, bottom } = PADDING;
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe });
    const X = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (width - left - right);
    const Y = (value) => height - bottom - ((value - y[0]) / (y[1] - y[0])) * (height - top - bottom);
    for (const tick of ticks(y, height / 55)) {
      svg("line", { class: "grid", x1: left, x2: width - right, y1: Y(tick), y2: Y(tick) }, root);
      text(show(tick), { x: left - 8, y: Y(tick) + 4, "text-anchor": "end" }, root);
    }
    for (const tick of ticks(x, width / 90)) {
      svg("line", { class: "axis", x1: X(tick), x2: X(tick), y1: height - bottom, y2: height - bottom + 5 }, root);
      text(show(tick), { x: X(tick), y: height - bottom + 18, "text-anchor": "middle" }, root);
    }
    svg("path", { class: "axis", d: `M${left},${height - bottom}H${width - right}` }, root);
    text(xLabel, { x: width - right, y: height - 4, "text-anchor": "end" }, root);
    text(yLabel, { x: 0, y: 12 }, root);
    const id = `clip${chart.count = (chart.count || 0) + 1}`;
    const clip = svg("clipPath", { id }, root);
    svg("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom }, clip);
    const layer = svg("g", { "clip-path": `url(#${id})` }, root);
    const at = (value) => value.toFixed(2);
    const points = (xs, ys) => xs.map((value, k) => `${at(X(value))},${at(Y(ys[k]))}`);
    const line = (xs, ys, className) =>
      svg("path", { class: `line ${className}`, d: `M${points(xs, ys).join("L")}` }, layer);
    const area = (xs, lows, highs, className) =>
      svg("path", {
        class: className,
        d: `M${points(xs, highs).join("L")}L${points(xs, lows).reverse().join("L")}Z`,
      }, layer);
    const point = (px, py, opacity = 1) =>
      svg("circle", { class: "point", cx: at(X(px)), cy: at(Y(py)), r: 3, opacity }, layer);
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
    host.replaceChildren(root);
    return { layer, X, Y, line, area, point, vertical, move, hover };
  };

  const legend = (list, entries) => {
    list.replaceChildren();
    for (const [className, caption] of entries) {
      const item = html("li", "", "", list);
      html("i", `swatch ${className}`, "", item);
      item.append(caption);
    }
  };

  let output = 0;
  const target = () => report.targets[output];

  class Slice {
    constructor(part, number) {
      this.part = part;
      this.node = document.getElementById("slice").content.cloneNode(true).firstElementChild;
      document.getElementById("slices").append(this.node);
      this.find = (selector) => this.node.querySelector(selector);
      this.slider = this.find("input");
      this.slider.id = `choose${number}`;
      this.find("label").htmlFor = this.slider.id;
      this.slider.max = part.at.length - 1;
      this.slider.value = Math.floor(part.at.length / 2);
      this.slider.addEventListener("input", () => this.choose());
      const several = report.slices.length > 1;
      this.find("h2").textContent = several ? `Along ${part.input}` : "The fitted curve";
      this.find(".hint").textContent = this.explain();
      this.find(".tubes figcaption").textContent = `Mean and exact ${level} intervals`;
      this.find(".causes figcaption").textContent = "Variance of a new observation, by cause";
      const tubes = Object.entries(LAWS).map(([law, name]) => [law, name]).reverse();
      legend(this.find(".tubes .legend"), [["stroke mean", "mean"], ...tubes, ["point", "data"]]);
      legend(this.find(".density .legend"), [
        ...Object.entries(LAWS).map(([law, name]) => [`stroke ${law}`, name]),
        ["stroke dashed soft", "normal law with the same variance"],
      ]);
      legend(this.find(".causes .legend"), Object.entries(CAUSES));
    }

    explain() {
      const base = this.part.base.map(({ name, value }) => `${name} = ${show(value)}`).join(", ");
      const { samples } = report.summary, { shown } = report.data;
      return [
        base && `The other inputs are those of the sample nearest the median: ${base}. ` +
          "Points fade with distance from this slice.",
        shown < samples && `A random selection of ${shown} of the ${samples} samples is drawn.`,
        "Hover over a figure for its values; choose an input with the slider or a click.",
      ].filter(Boolean).join(" ");
    }

    draw() {
      const { part } = this, mean = part.mean[output], data = report.data.y[output], scale = report.scales[output];
      const shifted = (law, end) => part.tubes[law][end].map((value, k) => mean[k] + scale * value);
      const curves = Object.fromEntries(Object.keys(LAWS).map((law) => [law, [shifted(law, "low"), shifted(law, "high")]]));
      const opacity = part.data.nearness.map((value) => value ** 2);
      const near = data.filter((_, k) => opacity[k] >= 0.05);
      const x = extent(part.x);
      const y = padded(extent([...curves.observation.flat(), ...curves.function.flat(), ...near]));
      const names = { xLabel: part.input, yLabel: target() };

      const tubes = chart(this.find(".tubes .plot"), {
        ...names, x, y, height: 380,
        describe: `Mean and intervals of ${target()} along ${part.input}`,
      });
      for (const law of ["observation", "function", "estimate"]) tubes.area(part.x, ...curves[law], `area ${law}`);
      tubes.line(part.x, mean, "mean");
      data.forEach((value, k) => {
        if (opacity[k] >= 0.05) tubes.point(part.data.x[k], value, opacity[k]);
      });
      tubes.hover((px) => {
        const k = nearest(part.x, px);
        return [part.x[k], [
          `${part.input} = ${show(part.x[k])}`,
          `mean ${show(mean[k])}`,
          ...Object.entries(LAWS).map(([law, name]) => `${name}, ${level}: ${interval(curves[law][0][k], curves[law][1][k])}`),
        ]];
      }, (px) => this.choose(px));

      const sums = [part.x.map(() => 0)];
      for (const cause of Object.keys(CAUSES)) {
        sums.push(part.variance[cause].map((value, k) => sums.at(-1)[k] + scale ** 2 * value));
      }
      const all = sums.at(-1);
      const causes = chart(this.find(".causes .plot"), {
        xLabel: part.input, yLabel: `variance of ${target()}`, x, y: [0, 1.05 * extent(all)[1]], height: 240,
        describe: `Variance by cause along ${part.input}`,
      });
      Object.keys(CAUSES).forEach((cause, k) => causes.area(part.x, sums[k], sums[k + 1], `area ${cause}`));
      causes.hover((px) => {
        const k = nearest(part.x, px);
        return [part.x[k], [
          `${part.input} = ${show(part.x[k])}`,
          ...Object.entries(CAUSES).map(([cause, name]) => {
            const value = scale ** 2 * part.variance[cause][k];
            return `${name}: ${show(value)} (${Math.round((100 * value) / all[k])} %)`;
          }),
        ]];
      }, (px) => this.choose(px));
      this.marks = [[tubes, tubes.vertical("chosen")], [causes, causes.vertical("chosen")]];
      this.choose();
    }

    /* Show the predictions at the input of the slider, or at the one nearest x. */
    choose(x) {
      const { part } = this;
      if (typeof x === "number") this.slider.value = nearest(part.at.map((k) => part.x[k]), x);
      const position = Number(this.slider.value), k = part.at[position];
      const mean = part.mean[output][k], scale = report.scales[output];
      const caption = `${part.input} = ${show(part.x[k])}`;
      this.find("label").textContent = caption;
      const intervals = Object.entries(LAWS).map(
        ([law, name]) => `${name} ${interval(mean + scale * part.tubes[law].low[k], mean + scale * part.tubes[law].high[k])}`);
      const stds = Object.entries(CAUSES).map(
        ([cause, name]) => `${name} ${show(scale * Math.sqrt(part.variance[cause][k]))}`);
      this.slider.setAttribute("aria-valuetext", `${caption}, mean ${show(mean)}`);
      this.find(".readout").textContent =
        `Mean ${show(mean)}. ${level} intervals: ${intervals.join("; ")}. Standard deviations: ${stds.join("; ")}.`;
      for (const [drawn, mark] of this.marks) drawn.move(mark, part.x[k]);
      this.drawDensity(position, mean, caption);
    }

    drawDensity(position, mean, caption) {
      const laws = [], scale = report.scales[output];
      for (const law of ["observation", "function", "estimate"]) {
        const all = this.part.densities[law];
        if (!all || !(all.std[position] > 0)) continue;
        const std = scale * all.std[position], center = mean + scale * all.mean[position];
        const ys = all.y[position].map((value) => mean + scale * value);
        const pdf = all.pdf[position].map((value) => value / scale);
        const spread = Array.from({ length: 81 }, (_, k) => center + std * (k / 10 - 4));
        const gaussian = spread.map((v) => Math.exp(-0.5 * ((v - center) / std) ** 2) / (std * Math.sqrt(2 * Math.PI)));
        laws.push({ law, ys, pdf, spread, gaussian, std, peak: extent(pdf)[1] });
      }
      const host = this.find(".density .plot");
      this.find(".density figcaption").textContent = `Exact densities at ${caption}` +
        (this.part.densities.estimate ? "" : "; the estimate is discrete and has no density");
      if (!laws.length) return host.replaceChildren();
      const wide = laws[0];
      /* a narrow law may be a spike: it is clipped so that the others stay visible */
      const top = Math.max(...laws.map((one) => Math.min(one.peak, 12 * wide.peak)));
      const inside = wide.ys.filter((value) => value > wide.spread[0] && value < wide.spread[80]);
      const drawn = chart(host, {
        x: padded(extent([...inside, wide.spread[10], wide.spread[70]]), 0.02), y: [0, 1.06 * top],
        xLabel: target(), yLabel: "density", height: 380, describe: `Densities of ${target()} at ${caption}`,
      });
      for (const one of laws) drawn.line(one.spread, one.gaussian, `${one.law} dashed`);
      for (const one of laws) drawn.line(one.ys, one.pdf, `${one.law} exact`);
      const value = ({ ys, pdf }, y) => {
        const k = ys.findIndex((end) => end >= y);
        if (k <= 0) return 0;
        const part = (y - ys[k - 1]) / (ys[k] - ys[k - 1] || 1);
        return pdf[k - 1] + part * (pdf[k] - pdf[k - 1]);
      };
      drawn.hover((y) => [y, [
        `${target()} = ${show(y)}`,
        ...laws.map((one) => `${LAWS[one.law]}: density ${show(value(one, y))}, std ${show(one.std)}`),
      ]]);
    }
  }

  const drawDiagnostics = () => {
    const { scores } = report;
    if (scores.missing) {
      document.getElementById("diagnostics").remove();
      return;
    }
    const host = (id) => document.querySelector(`#${id} .plot`);
    const { pit, calibration, pairs } = scores;
    const top = 1.1 * Math.max(pit.high, ...pit.counts);
    const histogram = chart(host("pit"), {
      x: [0, 1], y: [0, top], xLabel: "PIT", yLabel: "samples", height: 270, describe: "Histogram of the PIT",
    });
    pit.counts.forEach((count, k) => svg("rect", {
      class: "bars", x: histogram.X(pit.edges[k]) + 1, y: histogram.Y(count),
      width: histogram.X(pit.edges[k + 1]) - histogram.X(pit.edges[k]) - 2, height: histogram.Y(0) - histogram.Y(count),
    }, histogram.layer));
    histogram.area([0, 1], [pit.low, pit.low], [pit.high, pit.high], "band outlined");
    histogram.line([0, 1], [pit.expected, pit.expected], "soft dashed");
    histogram.hover((px) => {
      const k = Math.min(Math.max(Math.floor(px * pit.counts.length), 0), pit.counts.length - 1);
      return [(pit.edges[k] + pit.edges[k + 1]) / 2, [
        `PIT ${interval(pit.edges[k], pit.edges[k + 1])}`,
        `${pit.counts[k]} samples, expected ${pit.low} … ${pit.high}`,
      ]];
    });

    const curve = chart(host("calibration"), {
      x: [0, 1], y: [0, 1], xLabel: "predicted probability", yLabel: "fraction of samples", height: 270,
      describe: "Calibration curve",
    });
    curve.area(calibration.level, calibration.low, calibration.high, "band");
    curve.line([0, 1], [0, 1], "soft dashed");
    curve.line(calibration.level, calibration.fraction, "function");
    curve.hover((px) => {
      const k = nearest(calibration.level, px);
      return [calibration.level[k], [
        `below the ${show(100 * calibration.level[k])} % quantile: ${show(100 * calibration.fraction[k])} % of samples`,
        `expected ${show(100 * calibration.low[k])} … ${show(100 * calibration.high[k])} %`,
      ]];
    });

    const range = padded(extent([...pairs.noise, ...pairs.residual]));
    const quantiles = chart(host("pairs"), {
      x: padded(extent(pairs.noise)), y: padded(extent(pairs.residual)), height: 270,
      xLabel: "noise, standardized", yLabel: "residual, standardized", describe: "Quantiles of residuals and noise",
    });
    quantiles.line(range, range, "soft dashed");
    pairs.noise.forEach((value, k) => quantiles.point(value, pairs.residual[k], 0.8));
    quantiles.hover((px) => {
      const k = nearest(pairs.noise, px);
      return [pairs.noise[k], [`noise ${show(pairs.noise[k])}`, `residual ${show(pairs.residual[k])}`]];
    });
  };

  const slices = report.slices.map((part, number) => new Slice(part, number));
  const draw = () => {
    slices.forEach((slice) => slice.draw());
    drawDiagnostics();
  };

  if (report.targets.length > 1) {
    const select = document.getElementById("output");
    report.targets.forEach((name, k) => select.add(new Option(name, k)));
    select.addEventListener("change", () => {
      output = Number(select.value);
      slices.forEach((slice) => slice.draw());
    });
    document.getElementById("output-choice").hidden = false;
  }

  const theme = document.getElementById("theme"), root = document.documentElement;
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { theme.textContent = isDark() ? "light" : "dark"; };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  label();

  draw();
  let width = root.clientWidth;
  addEventListener("resize", () => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    draw();
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((node) => { node.open = true; }));
})();
