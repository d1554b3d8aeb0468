// Hides a backend everywhere, chooses the metric of a family of charts, reads values. The page is complete without it.
for (const part of document.querySelectorAll(".scripted")) part.hidden = false;

const off = new Set();
document.getElementById("show")?.addEventListener("change", ({ target }) => {
  off[target.checked ? "delete" : "add"](target.value);
  for (const part of document.querySelectorAll("[data-series]")) {
    part.toggleAttribute("data-off", part.dataset.series.split(" ").some((index) => off.has(index)));
  }
});

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
  const [left, top, right, bottom] = svg.dataset.area.split(" ").map(Number);
  let all;
  let current = -1;

  const shown = () => {
    all ??= [...svg.querySelectorAll("[data-points]")].flatMap((line) =>
      JSON.parse(line.dataset.points).map(([key, x, y, text]) => ({ line, key, x, y, text })));
    return all.filter(({ line }) => !line.hasAttribute("data-off"));
  };
  const along = reading === "y" ? "y" : "x";
  const keys = (points) => {
    const places = new Map(points.map((point) => [point.key, point[along]]));
    const order = reading === "y" ? -1 : 1; // up is more
    return [...places.keys()].sort((a, b) => order * (places.get(a) - places.get(b)));
  };
  const words = (key) =>
    /^p[\d.]+$/.test(key) ? `${key.slice(1)} % within` : /^[crt][\d.]+$/.test(key) ? `at ${key.slice(1)}` : key;

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
