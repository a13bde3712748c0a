const data = JSON.parse(document.getElementById("data").textContent);
const { laws: LAWS, causes: NAMES, level } = data;
document.documentElement.classList.add("js");

/* Colors of values from 0 to 1, dark to bright in hue and lightness, readable on both backgrounds. */
const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const color = (value) => {
  const at = Math.min(Math.max(value, 0), 1) * (SCALE.length - 1), k = Math.min(Math.floor(at), SCALE.length - 2);
  return `rgb(${SCALE[k].map((low, c) => Math.round(low + (at - k) * (SCALE[k + 1][c] - low))).join(",")})`;
};

/* The figures of one model, in its part of the page. */
class Model {
  constructor(report, node) {
    this.report = report;
    this.node = node;
    this.output = 0;
    this.causes = Object.fromEntries(Object.keys(report.shares).map((cause) => [cause, NAMES[cause]]));
    this.slices = report.slices.map((part, number) => new Slice(this, part, `${node.id}-${number}`));
    if (report.targets.length > 1) {
      const select = this.find("select.output");
      report.targets.forEach((name, k) => select.add(new Option(name, k)));
      select.addEventListener("change", () => {
        this.output = Number(select.value);
        this.draw();
      });
      this.find(".output-choice").hidden = false;
    }
    if (report.surface) {
      this.find(".surface").hidden = false;
      const select = this.find(".surface select");
      for (const [key, name] of [
        ["mean", "mean"], ["function", "standard deviation of the function"],
        ["observation", "standard deviation of a new observation"],
      ]) select.add(new Option(name, key));
      select.addEventListener("change", () => this.drawSurface());
    }
  }

  find(selector) {
    return this.node.querySelector(selector);
  }

  target() {
    return this.report.targets[this.output];
  }

  draw() {
    this.slices.forEach((slice) => slice.draw());
    if (this.report.surface) this.drawSurface();
    const { pit, residuals } = this.report.scores;
    if (pit) this.drawDiagnostics();
    else this.find(".diagnostics")?.remove();
    if (residuals) this.drawResiduals();
    else this.find(".residuals")?.remove();
  }

  drawSurface() {
    const { report, output } = this, { x, y } = report.surface;
    const select = this.find(".surface select"), kind = select.value, scale = report.scales[output];
    const grid = kind === "mean" ? report.surface.mean[output]
      : report.surface[kind].map((row) => row.map((value) => scale * value));
    const caption = select.selectedOptions[0].text;
    const [low, high] = extent(grid.flat()), span = high - low || 1;
    const [right, top] = [(x.at(-1) - x[0]) / (x.length - 1) / 2, (y.at(-1) - y[0]) / (y.length - 1) / 2];
    const drawn = chart(this.find(".surface .plot"), {
      x: [x[0] - right, x.at(-1) + right], y: [y[0] - top, y.at(-1) + top], height: 460, right: 96,
      xLabel: report.inputs[0], yLabel: report.inputs[1], describe: `${caption} of ${this.target()} over both inputs`,
    });
    grid.forEach((row, i) => row.forEach((value, k) => svg("rect", {
      x: drawn.X(x[k] - right).toFixed(1), y: drawn.Y(y[i] + top).toFixed(1), fill: color((value - low) / span),
      width: (drawn.X(x[k] + right) - drawn.X(x[k] - right) + 0.5).toFixed(1),
      height: (drawn.Y(y[i] - top) - drawn.Y(y[i] + top) + 0.5).toFixed(1),
    }, drawn.layer)));
    report.data.x[0].forEach((value, k) => svg("circle", {
      class: "sample", cx: drawn.X(value), cy: drawn.Y(report.data.x[1][k]), r: 2.5,
    }, drawn.layer));
    drawn.scale(low, high, color);
    this.find(".surface figcaption").textContent = `${caption[0].toUpperCase()}${caption.slice(1)} of ${this.target()}, and the samples`;
    drawn.hover((px, py) => {
      const k = nearest(x, px), i = nearest(y, py);
      return [x[k], [
        `${report.inputs[0]} = ${show(x[k])}`, `${report.inputs[1]} = ${show(y[i])}`, `${caption} ${show(grid[i][k])}`,
      ]];
    });
  }

  drawDiagnostics() {
    const { pit, calibration, pairs } = this.report.scores;
    const host = (name) => this.find(`.${name} .plot`);
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
  }

  drawResiduals() {
    const { report } = this, { observed, standardized, against } = report.scores.residuals[this.output];
    const known = standardized.map((value, k) => k).filter((k) => standardized[k] !== null);
    const host = this.find(".residuals .triple");
    host.replaceChildren();
    const figure = (caption) => {
      const node = html("figure", "", "", host);
      html("figcaption", "", caption, node);
      return html("div", "plot", "", node);
    };
    if (!known.length) return;
    const predicted = against[0].x, name = this.target();
    const range = padded(extent(known.flatMap((k) => [observed[k], predicted[k]])));
    const pairs = chart(figure("Observed against predicted; near the diagonal where the prediction is accurate"), {
      x: range, y: range, xLabel: `${name}, predicted`, yLabel: `${name}, observed`, height: 290,
      describe: "Observed against predicted",
    });
    pairs.line(range, range, "soft dashed");
    known.forEach((k) => pairs.point(predicted[k], observed[k], 0.7));
    pairs.hover((px, py) => {
      const k = known.reduce((best, one) => pairs.distance(predicted[one], observed[one], px, py)
        < pairs.distance(predicted[best], observed[best], px, py) ? one : best);
      return [predicted[k], [`predicted ${show(predicted[k])}`, `observed ${show(observed[k])}`]];
    });
    const reach = padded(extent([-2.5, 2.5, ...known.map((k) => standardized[k])]));
    against.forEach(({ x, bins }, number) => {
      const part = number ? report.slices[number - 1] : { values: [], input: `${name}, predicted` };
      const { values, input: label } = part;
      const verdict = bins.depends === null ? "too few to tell a dependence from chance"
        : bins.depends ? "they depend on it by more than chance" : "no dependence beyond chance";
      const drawn = chart(figure(`Residuals against ${number ? label : "the prediction"}: ${verdict}`), {
        values, x: values.length ? [-0.5, values.length - 0.5] : padded(extent(known.map((k) => x[k]))), y: reach, xLabel: label, yLabel: "residual, standardized", height: 290,
        describe: `Residuals against ${label}`,
      });
      for (const height of [-1, 0, 1]) drawn.line(padded(extent(x)), [height, height], "soft reference");
      known.forEach((k) => drawn.point(x[k] + drawn.beside(k), standardized[k], 0.35));
      if (bins.x.length > 1) {
        drawn.line(bins.x, bins.mean, "mean");
        for (const sign of [-1, 1]) drawn.line(bins.x, bins.mean.map((value, k) => value + sign * bins.std[k]), "mean dotted");
        bins.x.forEach((value, k) => drawn.line(
          [value, value], [bins.mean[k] - 2 * bins.error[k], bins.mean[k] + 2 * bins.error[k]], "mean"));
      }
      drawn.hover((px) => {
        const k = nearest(bins.x, px);
        return [bins.x[k], [
          `${values.length ? "" : "around "}${label} = ${place(part, bins.x[k])}`, `mean ${show(bins.mean[k])} ± ${show(2 * bins.error[k])}`,
          `standard deviation ${show(bins.std[k])}`,
        ]];
      });
    });
  }
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

const nodes = document.querySelectorAll(".report");
const models = data.models.map((report, k) => new Model(report, nodes[k]));
const draw = () => models.forEach((model) => model.draw());
draw();
document.querySelectorAll(".plot.wide").forEach((node) => { node.scrollLeft = node.scrollWidth; });
let width = root.clientWidth;
addEventListener("resize", () => {
  if (root.clientWidth === width) return;
  width = root.clientWidth;
  draw();
});
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((node) => { node.open = true; }));
