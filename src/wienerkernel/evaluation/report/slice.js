/* "variance of speed [m/s]" needs its unit squared; units are in brackets at the end of a name. */
const variance = (name) => {
  const [whole, before, inner] = name.match(/^(.*?)(?:\s*\[|\s\()([^()[\]]{1,20})[)\]]\s*$/) || [];
  return whole ? `variance of ${before} [${/^[^\W\d]+$/u.test(inner) ? inner : `(${inner})`}²]` : `variance of ${name}`;
};

/* The prediction along one input of a model. */
class Slice {
  constructor(model, part, name) {
    this.model = model;
    this.part = part;
    this.laws = Object.fromEntries(Object.entries(LAWS).filter(([law]) => law in part.tubes));
    const { nonlinear, approximation, transform } = model.report.summary;
    this.exact = nonlinear || approximation ? "" : "exact ";
    const mean = transform ? "mean of a new observation" : "mean";
    this.node = document.getElementById("slice").content.cloneNode(true).firstElementChild;
    model.find(".slices").append(this.node);
    this.find = (selector) => this.node.querySelector(selector);
    this.slider = this.find("input");
    this.slider.id = `choose-${name}`;
    this.find("label").htmlFor = this.slider.id;
    this.slider.max = part.at.length - 1;
    this.slider.value = Math.floor(part.at.length / 2);
    this.slider.addEventListener("input", () => this.choose());
    const several = model.report.slices.length > 1;
    this.find("h2").textContent = several ? `Along ${part.input}` : "The fitted curve";
    this.find(".hint").textContent = this.explain();
    this.find(".tubes figcaption").textContent = `M${mean.slice(1)} and ${this.exact}${level} intervals`;
    this.find(".causes figcaption").textContent = "Variance of a new observation, by cause";
    const tubes = Object.entries(this.laws).reverse();
    legend(this.find(".tubes .legend"), [["stroke mean", mean], ...tubes, ["point", "data"]]);
    legend(this.find(".density .legend"), [
      ...Object.entries(this.laws).map(([law, name]) => [`stroke ${law}`, name]),
      ["stroke dashed soft", "normal law with the same variance"],
    ]);
    legend(this.find(".causes .legend"), Object.entries(model.causes));
    if (!part.level) return this.find(".level").remove();
    this.find(".level figcaption").textContent = "Noise level: standard deviation of the noise of an observation";
    legend(this.find(".level .legend"), [["stroke observation", "estimate"], ["observation", `${level} interval`]]);
  }

  explain() {
    const { part, model: { report } } = this, comma = report.inputs.some((name) => name.includes(",")) ? "; " : ", ";
    const base = part.base.map(({ name, value }) => `${name} = ${typeof value === "string" ? value : show(value)}`).join(comma);
    const follow = part.follow.length > 1 ? `${part.follow.slice(0, -1).join(comma)} and ${part.follow.at(-1)}` : part.follow[0];
    const { samples } = report.summary, { shown } = report.data;
    return [
      follow && `As in the data, ${follow} change${part.follow.length > 1 ? "" : "s"} with ${part.input}.`,
      base && `The ${follow ? "remaining" : "other"} inputs are those of the sample nearest the median: ${base}.`,
      (base || follow) && "Samples are moved to this slice along the mean, and fade with distance from it.",
      shown < samples && `A random selection of ${shown.toLocaleString("en")} of the ${samples.toLocaleString("en")} samples is drawn.`,
      "Hover over a figure for its values; choose an input with the slider or a click.",
    ].filter(Boolean).join(" ");
  }

  draw() {
    const { part, model: { report, output, causes: CAUSES } } = this, target = report.targets[output];
    const label = report.labels[output], { values } = part;
    const mean = part.mean[output], data = part.data.y[output], scale = report.scales[output];
    const shifted = (law, end) => part.tubes[law][end].map((value, k) => mean[k] + scale * value);
    const curves = Object.fromEntries(Object.keys(this.laws).map((law) => [law, [shifted(law, "low"), shifted(law, "high")]]));
    const opacity = part.data.nearness.map((value) => value ** 2);
    const near = data.filter((_, k) => opacity[k] >= 0.05);
    const faint = Math.max(0.3, Math.min(1, Math.sqrt(200 / near.length)));
    const x = values.length ? [-0.5, values.length - 0.5] : extent(part.x);
    const y = padded(extent([...curves.observation.flat(), ...curves.function.flat(), ...near]));
    this.marks = [];

    const tubes = chart(this.find(".tubes .plot"), {
      values, xLabel: part.input, yLabel: target, x, y, height: 380,
      describe: `Mean and intervals of ${target} along ${part.input}`,
    });
    for (const law of Object.keys(curves).reverse()) tubes.area(part.x, ...curves[law], `area ${law}`);
    tubes.line(part.x, mean, "mean");
    data.forEach((value, k) => {
      if (opacity[k] >= 0.05) tubes.point(part.data.x[k] + tubes.beside(k), value, faint * opacity[k]);
    });
    this.follow(tubes, (k) => [
      `mean ${show(mean[k], y[1] - y[0])}`,
      ...Object.entries(this.laws).map(([law, name]) => `${name}, ${level}: ${interval(curves[law][0][k], curves[law][1][k])}`),
    ]);

    const sums = [part.x.map(() => 0)];
    for (const cause of Object.keys(CAUSES)) {
      sums.push(part.variance[cause].map((value, k) => sums.at(-1)[k] + scale ** 2 * value));
    }
    const all = sums.at(-1);
    const causes = chart(this.find(".causes .plot"), {
      values, xLabel: part.input, yLabel: variance(label), x, y: [0, 1.05 * extent(all)[1]], height: 240,
      describe: `Variance by cause along ${part.input}`,
    });
    Object.keys(CAUSES).forEach((cause, k) => causes.area(part.x, sums[k], sums[k + 1], `area ${cause}`));
    this.follow(causes, (k) => Object.entries(CAUSES).map(([cause, name]) => {
      const value = scale ** 2 * part.variance[cause][k];
      return `${name}: ${show(value)} (${Math.round((100 * value) / all[k])} %)`;
    }));
    if (part.level) this.drawLevel(x, label, scale);
    this.choose();
  }

  /* Mark the chosen input in a chart, choose another one by a click, and show lines of text of the one nearest the pointer. */
  follow(drawn, lines) {
    const { part } = this;
    drawn.hover((px) => {
      const k = nearest(part.x, px);
      return [part.x[k], [`${part.input} = ${place(part, part.x[k])}`, ...lines(k)]];
    }, (px) => this.choose(px));
    this.marks.push([drawn, drawn.vertical("chosen")]);
  }

  drawLevel(x, target, scale) {
    const { part } = this, [std, low, high] = ["std", "low", "high"].map((name) => part.level[name].map((value) => scale * value));
    const drawn = chart(this.find(".level .plot"), {
      values: part.values, xLabel: part.input, yLabel: `noise of ${target}`, x, y: [0, 1.05 * Math.max(extent(std)[1], Math.min(extent(high)[1], 3 * extent(std)[1]))],
      height: 240, describe: `Noise level along ${part.input}`,
    });
    drawn.area(part.x, low, high, "area observation");
    drawn.line(part.x, std, "observation");
    this.follow(drawn, (k) => [`noise ${show(std[k])} (${interval(low[k], high[k])})`]);
  }

  /* Show the predictions at the input of the slider, or at the one nearest x. */
  choose(x) {
    const { part, model: { report, output, causes: CAUSES } } = this;
    if (typeof x === "number") this.slider.value = nearest(part.at.map((k) => part.x[k]), x);
    const position = Number(this.slider.value), k = part.at[position];
    const mean = part.mean[output][k], scale = report.scales[output];
    const wide = part.tubes.observation, center = show(mean, scale * (wide.high[k] - wide.low[k]));
    const caption = `${part.input} = ${place(part, part.x[k])}`;
    this.find("label").textContent = caption;
    const intervals = Object.entries(this.laws).map(
      ([law, name]) => `${name} ${interval(mean + scale * part.tubes[law].low[k], mean + scale * part.tubes[law].high[k])}`);
    const stds = Object.entries(CAUSES).map(
      ([cause, name]) => `${name} ${show(scale * Math.sqrt(part.variance[cause][k]))}`);
    this.slider.setAttribute("aria-valuetext", `${caption}, mean ${center}`);
    this.find(".readout").textContent =
      `Mean ${center}. ${level} intervals: ${intervals.join("; ")}. Standard deviations${report.summary.transform && " on the transformed scale"}: ${stds.join("; ")}.`;
    for (const [drawn, mark] of this.marks) drawn.move(mark, part.x[k]);
    this.drawDensity(position, mean, caption);
  }

  drawDensity(position, mean, caption) {
    const { report, output } = this.model, laws = [], scale = report.scales[output], target = report.targets[output];
    for (const law of Object.keys(this.laws).reverse()) {
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
    this.find(".density figcaption").textContent = `${this.exact ? "Exact densities" : "Densities"} at ${caption}` +
      (this.part.densities.estimate !== null ? "" : "; the estimate is discrete and has no density");
    if (!laws.length) return host.replaceChildren();
    const wide = laws[0];
    /* a narrow law may be a spike: it is clipped so that the others stay visible */
    const top = Math.min(Math.max(...laws.map((one) => one.peak)), 5 / wide.std);
    const inside = wide.ys.filter((value) => value > wide.spread[0] && value < wide.spread[80]);
    const drawn = chart(host, {
      x: padded(extent([...inside, wide.spread[10], wide.spread[70]]), 0.02), y: [0, 1.06 * top],
      xLabel: target, yLabel: "density", height: 380, describe: `Densities of ${target} at ${caption}`,
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
      `${target} = ${show(y)}`,
      ...laws.map((one) => `${LAWS[one.law]}: density ${show(value(one, y))}, std ${show(one.std)}`),
    ]]);
  }
}
