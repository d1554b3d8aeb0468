// Hides a backend everywhere and fits the charts to the others, chooses the metric of a family of charts, reads values. The page is complete without it.
for (const part of document.querySelectorAll(".scripted")) part.hidden = false;

// A part that is wider than its box says so until its right end is seen.
for (const box of document.querySelectorAll(".scroll, .picture")) {
  const mark = () => box.toggleAttribute("data-more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.addEventListener("scroll", mark);
  new ResizeObserver(mark).observe(box);
}

// An address within a folded part opens it.
const reveal = () => {
  for (let part = document.getElementById(location.hash.slice(1)); part; part = part.parentElement) {
    if (part.matches("details")) part.open = true;
  }
};
addEventListener("hashchange", reveal);
reveal();

const off = new Set();
const refits = [];
document.getElementById("show")?.addEventListener("change", ({ target }) => {
  off[target.checked ? "delete" : "add"](target.value);
  for (const part of document.querySelectorAll("[data-series]")) {
    part.toggleAttribute("data-off", part.dataset.series.split(" ").some((index) => off.has(index)));
  }
  for (const refit of refits) refit();
});

// Axes as harness/report/charts/axes.py draws them, with its numbers: `axisRules`, which stands before this script.
// An axis is its ends and whether it is logarithmic.
const fitted = (values) => {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low > 0 && high / low >= axisRules.logFrom
    ? [low / axisRules.logRoom, high * axisRules.logRoom, true]
    : [0, high * (1 + axisRules.room) || 1, false];
};
const steps = (high) => {
  const least = high / axisRules.ticks;
  const size = 10 ** Math.floor(Math.log10(least));
  const step = axisRules.steps.map((factor) => factor * size).find((wide) => wide >= least * 0.999);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, count) => count * step);
};
const decades = (low, high) => {
  const powers = Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1;
  return Array.from({ length: powers }, (_, count) => 10 ** (Math.floor(Math.log10(low)) + count))
    .flatMap((ten) => (high / low > axisRules.wide ? [ten] : axisRules.decade.map((factor) => factor * ten)))
    .filter((value) => value >= low && value <= high);
};
// Value to pixel and back, from the pixel of its low end to that of its high one.
const scale = ([low, high, log], from, to) => {
  const [turn, back] = log ? [Math.log, Math.exp] : [Number, Number];
  const share = (value) => (turn(Math.max(value, low)) - turn(low)) / (turn(high) - turn(low));
  return {
    pixel: (value) => from + (to - from) * Math.min(1, share(value)),
    value: (pixel) => back(turn(low) + ((pixel - from) / (to - from)) * (turn(high) - turn(low))),
  };
};
const moved = (path, x, y) => path.replace(/([MLHV])([^A-Za-z]+)/g, (_, command, numbers) => {
  const [one, two] = numbers.split(",").map(Number);
  return command + (command === "H" ? x(one) : command === "V" ? y(one) : `${x(one)},${y(two)}`);
});
const same = (pixel) => pixel;

// Fits the axes of a chart to the backends that are shown; returns where a point of the page as made lies now.
const fitting = (svg, [left, top, right, bottom]) => {
  const axes = JSON.parse(svg.dataset.axes);
  const span = { x: [left, right], y: [bottom, top] };
  const made = [...svg.querySelectorAll(".line, .bars, .repeat, .ideal, .front, .mark, .at, .grid, .ticks")].map((part) =>
    [part, { d: part.getAttribute("d"), at: part.getAttribute("transform"), inner: [...part.children] }]);
  const asMade = new Map(made);
  const now = { x: same, y: same };
  const values = (axis, lines) => lines.flatMap((line) => {
    const seen = JSON.parse(line.dataset.points).filter(([key]) => !["", "max", "p0.1"].includes(key));
    const bars = asMade.get(line.querySelector(".bars"))?.d ?? "";
    const ends = [...bars.matchAll(/M([-\d.]+),([-\d.]+)([HV])([-\d.]+)/g)].flatMap(([, x, y, way, end]) =>
      (way === "H") === (axis === "x") ? [Number(axis === "x" ? x : y), Number(end)] : []);
    return [...seen.map(([, x, y]) => (axis === "x" ? x : y)), ...ends];
  }).map(scale(axes[axis], ...span[axis]).value);
  const label = (axis, fresh) => {
    const { pixel } = scale(fresh, ...span[axis]);
    const ticks = fresh[2] ? decades(fresh[0], fresh[1]) : steps(fresh[1]);
    const grid = svg.querySelector(`.grid.${axis}`);
    const group = svg.querySelector(`.ticks.${axis}`);
    const pattern = group.firstElementChild;
    let end = -Infinity;
    grid.setAttribute("d", ticks.map((value) =>
      (axis === "x" ? `M${pixel(value)},${top}V${bottom}` : `M${left},${pixel(value)}H${right}`)).join(""));
    group.replaceChildren(...ticks.flatMap((value) => {
      const text = pattern.cloneNode();
      text.textContent = String(Number(value.toPrecision(10)));
      const half = axis === "x" ? text.textContent.length * 3.6 + 5 : 0;
      if (axis === "x" && value !== ticks[0] && pixel(value) - half <= end) return [];
      end = pixel(value) + half;
      text.setAttribute(axis, axis === "x" ? Math.min(pixel(value), svg.viewBox.baseVal.width - half) : pixel(value) + 4);
      return [text];
    }));
  };
  const front = (lines) => {
    const sign = svg.dataset.better === "right" ? -1 : 1;
    const kept = [];
    for (const [, x, y] of lines.flatMap((line) => JSON.parse(line.dataset.points))
      .sort((a, b) => sign * (a[1] - b[1]) || a[2] - b[2])) {
      if (!kept.length || y < kept.at(-1)[1]) kept.push([x, y]);
    }
    return `M${kept.map((point) => point.join(",")).join("L")}`;
  };
  refits.push(() => {
    const lines = [...svg.querySelectorAll("[data-points]")].filter((line) => !line.hasAttribute("data-off"));
    const whole = !off.size || !lines.length;
    for (const [part, { inner }] of made) if (part.matches(".ticks")) part.replaceChildren(...inner);
    for (const [part, { d }] of made) if (part.matches(".grid")) part.setAttribute("d", d);
    for (const axis of ["x", "y"]) {
      now[axis] = same;
      const fits = !whole && axes[axis][3];
      const fresh = fits ? fitted(values(axis, lines)) : axes[axis];
      const title = svg.querySelector(`.title.${axis}`);
      if (title) title.textContent = title.textContent.replace(axisRules.logWords, "") + (fresh[2] ? axisRules.logWords : "");
      if (!fits) continue;
      const [before, after] = [scale(axes[axis], ...span[axis]), scale(fresh, ...span[axis])];
      now[axis] = (pixel) => Number(after.pixel(before.value(pixel)).toFixed(2));
      label(axis, fresh);
    }
    for (const [part, { d, at }] of made) {
      if (part.matches(".grid, .ticks")) continue;
      if (at) part.setAttribute("transform", at.replace(/([-\d.]+),([-\d.]+)/, (_, x, y) => `${now.x(+x)},${now.y(+y)}`));
      else part.setAttribute("d", moved(part.matches(".front") && !whole ? front(lines) : d, now.x, now.y));
    }
  });
  return now;
};

for (const family of document.querySelectorAll("[data-family]")) {
  const choice = family.querySelector("select");
  const choose = () => {
    for (const figure of family.querySelectorAll("[data-option]")) {
      figure.toggleAttribute("data-other", figure.dataset.option !== choice.value);
    }
  };
  if (choice) {
    choice.addEventListener("change", choose);
    choose();
  }
}

for (const plot of document.querySelectorAll(".plot")) {
  const svg = plot.querySelector("svg");
  const cross = svg.querySelector(".cross");
  const out = plot.parentElement.querySelector(".read");
  const reading = svg.dataset.reading;
  const area = svg.dataset.area.split(" ").map(Number);
  const [left, top, right, bottom] = area;
  const now = fitting(svg, area);
  let all;
  let current = -1;

  const shown = () => {
    all ??= [...svg.querySelectorAll("[data-points]")].flatMap((line) =>
      JSON.parse(line.dataset.points).map(([key, x, y, text]) => ({ line, key, x, y, text })));
    return all.filter(({ line }) => !line.hasAttribute("data-off"))
      .map((point) => ({ ...point, x: now.x(point.x), y: now.y(point.y) }));
  };
  const along = reading === "y" ? "y" : "x";
  const keys = (points) => {
    const places = new Map(points.map((point) => [point.key, point[along]]));
    const order = reading === "y" ? -1 : 1; // up is more
    return [...places.keys()].sort((a, b) => order * (places.get(a) - places.get(b)));
  };
  const words = (key) =>
    /^p[\d.]+$/.test(key) ? `${key.slice(1)}% within` : /^[crtw][\d.]+$/.test(key) ? `at ${key.slice(1)}` : key;

  const read = (key) => {
    const told = shown().filter((point) => point.key === key);
    if (!told.length) return clear();
    const { x, y } = told[0];
    cross.setAttribute("d", reading === "near" ? `M${x - 9},${y}a9,9 0 1,0 18,0a9,9 0 1,0 -18,0`
      : reading === "y" ? `M${left},${y}H${right}` : `M${x},${top}V${bottom}`);
    const head = document.createElement("b");
    head.textContent = reading === "near" ? "" : words(key);
    out.replaceChildren(head, ...told.map(({ line, text }) => {
      const entry = document.createElement("span");
      entry.className = line.getAttribute("class");
      entry.textContent = `${line.dataset.name} ${text}`;
      return entry;
    }));
    current = keys(shown()).indexOf(key);
  };
  const clear = () => {
    cross.setAttribute("d", "");
    out.replaceChildren();
    current = -1;
  };

  refits.push(clear);

  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    const far = (p) => (reading === "x" ? 0 : (p.y - y) ** 2) + (reading === "y" ? 0 : (p.x - x) ** 2);
    const points = shown();
    if (points.length) read(points.reduce((best, p) => (far(p) < far(best) ? p : best)).key);
  };
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointerleave", clear);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") clear();
    if (!step) return;
    event.preventDefault();
    const found = keys(shown());
    read(found[Math.min(found.length - 1, Math.max(0, current < 0 ? (step > 0 ? 0 : found.length - 1) : current + step))]);
  });
}
