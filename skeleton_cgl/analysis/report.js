"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const points = data.points;
const byId = (id) => document.getElementById(id);
const plot = byId("scatter");
const edges = { AA: [byId("aa-from"), byId("aa-to")], AF: [byId("af-from"), byId("af-to")] };
const dark = matchMedia("(prefers-color-scheme: dark)");
const print = matchMedia("print");
const chosen = { methods: new Set(data.methods.keys()), point: null };
let drawn = []; // for every curve of the plot, the numbers of its points

const order = (point) => data.orders[points.order[point]];
const code = (point) => order(point).map((task) => task.join(",")).join(" > ");
const hollow = (point) => ["class", "label"].includes(points.kind[point]);
const names = (task) => task.map((label) => data.units[label]).join(" + ");
const fraction = (value) => (value === null ? "–" : value.toFixed(3).replace("-", "−"));
const percent = (value) => `${Math.round(100 * value)}\u00a0%`;
const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function element(tag, content = [], attributes = {}) {
  const made = document.createElement(tag);
  made.append(...[content].flat());
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function table(header, rows) {
  const head = header.map((text) => element("th", text, { scope: "col" }));
  return element("table", [element("thead", element("tr", head)), element("tbody", rows)]);
}

function share(value, text) {
  const cell = element("td", text, { class: "bar" });
  cell.style.setProperty("--share", `${100 * (value ?? 0)}%`);
  return cell;
}

function shown() {
  const { backbone, kind, repeat } = Object.fromEntries(new FormData(byId("controls")));
  return [...points.AA.keys()].filter(
    (point) =>
      chosen.methods.has(points.method[point]) &&
      points.backbone[point] === Number(backbone) &&
      (kind === "all" || points.kind[point] === kind) &&
      (repeat === "all" || points.repeat[point] === Number(repeat)) &&
      points.AF[point] !== null,
  );
}

function region() {
  const limits = ([from, to]) => [Number(from.value || -Infinity), Number(to.value || Infinity)];
  const given = [...edges.AA, ...edges.AF].some((input) => input.value !== "");
  return given ? { AA: limits(edges.AA), AF: limits(edges.AF) } : null;
}

function inside(point, where) {
  return ["AA", "AF"].every((name) => points[name][point] >= where[name][0] && points[name][point] <= where[name][1]);
}

function colourOf(method) {
  const [red, green, blue] = [1, 3, 5].map((start) => parseInt(method.colour.slice(start, start + 2), 16));
  const tooDark = 0.3 * red + 0.6 * green + 0.1 * blue < 50;
  return tooDark && dark.matches && !print.matches ? "#ffffff" : method.colour;
}

function hoverText(point) {
  const name = escaped(data.methods[points.method[point]].name);
  const title = `<b>${name}</b>  ${data.words.average} ${fraction(points.AA[point])}  AF ${fraction(points.AF[point])}`;
  const tasks = order(point).map((task, place) => `${place + 1}  ${escaped(names(task))}`);
  return [title, ...(plot.clientWidth < 500 ? [escaped(code(point))] : tasks)].join("<br>");
}

function curve(members, where) {
  const method = data.methods[points.method[members[0]]];
  return {
    type: "scatter",
    mode: "markers",
    x: members.map((point) => points.AA[point]),
    y: members.map((point) => points.AF[point]),
    customdata: members,
    text: members.map(hoverText),
    hoverinfo: "text",
    marker: {
      color: colourOf(method),
      symbol: members.map((point) => method.symbol + (hollow(point) ? "-open" : "")),
      size: 8,
      opacity: 0.75,
      line: { width: members.map((point) => (hollow(point) ? 1.2 : 0.5)), color: theme("--ground") },
    },
    selectedpoints: where ? members.flatMap((point, place) => (inside(point, where) ? [place] : [])) : null,
    selected: { marker: { opacity: 0.95 } },
    unselected: { marker: { opacity: 0.15 } },
  };
}

function shapes(visible, where, ranges) {
  const lengths = [...new Set(visible.map((point) => order(point).length))].filter((length) => length in data.bounds);
  const lines = lengths.map((length) => ({
    type: "line",
    layer: "below",
    x0: 0,
    x1: 1,
    y0: data.bounds[length][0],
    y1: data.bounds[length][1],
    line: { color: theme("--faint"), width: 1.5, dash: "dot" },
  }));
  if (!where) return lines;
  const clipped = (name) => where[name].map((edge) => Math.min(Math.max(edge, ranges[name][0]), ranges[name][1]));
  const [[x0, x1], [y0, y1]] = [clipped("AA"), clipped("AF")];
  const line = { color: theme("--accent"), width: 1 };
  return [...lines, { type: "rect", layer: "below", x0, x1, y0, y1, fillcolor: theme("--bar"), opacity: 0.4, line }];
}

function axis(title, range) {
  const line = theme("--line");
  return { title: { text: title }, range, gridcolor: line, zerolinecolor: line, linecolor: line };
}

function layout(visible, where) {
  const ranges = { AA: [0, 1.02], AF: [Math.min(0, ...points.AF) - 0.02, 1.02] };
  return {
    ...(print.matches ? { width: 640, height: 460 } : { autosize: true }),
    margin: { l: 55, r: 10, t: 32, b: 48 },
    paper_bgcolor: theme("--ground"),
    plot_bgcolor: theme("--ground"),
    font: { family: "system-ui, sans-serif", color: theme("--text"), size: 13 },
    hoverlabel: { align: "left", bgcolor: theme("--raised"), font: { color: theme("--text") } },
    modebar: { bgcolor: "transparent", color: theme("--faint"), activecolor: theme("--accent") },
    xaxis: axis(data.words.axis, ranges.AA),
    yaxis: axis("average forgetting (AF)", ranges.AF),
    shapes: shapes(visible, where, ranges),
    selections: [],
    showlegend: false,
    hovermode: "closest",
    // On a touch screen dragging scrolls the page.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "select",
    // Zoom and mode outlive a redraw; the box drawn does not, for the region takes its place.
    uirevision: "kept",
    selectionrevision: performance.now(),
  };
}

function draw() {
  const visible = shown();
  const where = region();
  const selected = where ? visible.filter((point) => inside(point, where)) : [];
  drawn = [...data.methods.keys()]
    .map((method) => visible.filter((point) => points.method[point] === method))
    .filter((members) => members.length);
  const settings = {
    responsive: true,
    displayModeBar: true,
    displaylogo: false,
    doubleClick: "reset",
    modeBarButtons: [["select2d", "zoom2d", "pan2d", "resetScale2d", "toImage"]],
  };
  Plotly.react(plot, drawn.map((members) => curve(members, where)), layout(visible, where), settings);
  const all = `${visible.length} points`;
  byId("count").textContent = where ? `${selected.length} of ${all} selected` : all;
  byId("tally").replaceChildren(...(where ? tally(visible, selected) : []));
}

function shares(group, place, units) {
  return units.map((unit) => {
    const hits = group.filter((point) => unit.every((label) => order(point).at(place).includes(label)));
    return hits.length / group.length;
  });
}

function tally(visible, selected) {
  if (!selected.length) return [element("p", "No point lies in this region.")];
  const byClass = visible.some(hollow);
  const tasks = visible.flatMap(order);
  const named = (byClass ? tasks.flat().map((label) => [label]) : tasks).map((unit) => [unit.join(), unit]);
  const units = [...new Map(named).values()].sort((one, other) => one[0] - other[0]);
  const columns = [0, -1].flatMap((place) => [selected, visible].map((group) => shares(group, place, units)));
  const most = (here, all) => {
    const at = here.indexOf(Math.max(...here));
    return `${names(units[at])} (${percent(here[at])}, of all ${percent(all[at])})`;
  };
  const [firstHere, firstAll, lastHere, lastAll] = columns;
  const rows = units.map((unit, at) => {
    const cells = columns.map((column) => share(column[at], percent(column[at])));
    return element("tr", [element("th", names(unit), { scope: "row" }), ...cells]);
  });
  return [
    element("p", `Most often first: ${most(firstHere, firstAll)}; last: ${most(lastHere, lastAll)}.`),
    table([byClass ? data.words.unit : "Task", "First, here", "First, all", "Last, here", "Last, all"], rows),
  ];
}

function clearRegion() {
  byId("region").reset();
  draw();
}

function choose(point) {
  if (point === chosen.point) return;
  chosen.point = point;
  mark();
  const rows = order(point).flatMap((task, place) =>
    task.map((label, within) => {
      const accuracy = points.accuracy[point][label];
      const step = element("td", within ? "" : String(place + 1));
      const name = element("th", data.units[label], { scope: "row" });
      return element("tr", [step, name, share(accuracy, fraction(accuracy))], { class: within ? "" : "begins" });
    }),
  );
  const measure = (name, shown = name) => element("span", [`${shown} `, element("b", fraction(points[name][point]))]);
  const backbone = data.backbones[points.backbone[point]];
  byId("detail").replaceChildren(
    element("h3", data.methods[points.method[point]].name),
    element("p", `${backbone}, ${points.kind[point]} order, repeat ${points.repeat[point]}`, { class: "note" }),
    element("p", [measure("AA", data.words.average), measure("AF")], { class: "measures" }),
    table(["Step", data.words.unit, data.words.score], rows),
    element("p", `Order ${code(point)}`, { class: "note" }),
  );
}

function place(point) {
  const curveNumber = drawn.findIndex((members) => members.includes(point));
  return curveNumber < 0 ? null : { curveNumber, pointNumber: drawn[curveNumber].indexOf(point) };
}

function mark() {
  for (const old of plot.querySelectorAll(".point.current")) old.classList.remove("current");
  const at = place(chosen.point);
  if (!at) return;
  const group = plot.querySelectorAll(".scatterlayer .trace")[at.curveNumber];
  group?.querySelectorAll(".point")[at.pointNumber]?.classList.add("current");
}

function step(measure, by) {
  const sorted = shown().sort((one, other) => points[measure][one] - points[measure][other] || one - other);
  if (!sorted.length) return;
  const at = sorted.indexOf(chosen.point);
  const from = at < 0 && by < 0 ? sorted.length : at;
  const next = sorted[Math.min(Math.max(from + by, 0), sorted.length - 1)];
  choose(next);
  Plotly.Fx.hover(plot, [place(next)]);
}

function swatch() {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  const attributes = { viewBox: "-6 -6 12 12", class: "swatch", "aria-hidden": "true" };
  for (const [name, value] of Object.entries(attributes)) picture.setAttribute(name, value);
  picture.append(document.createElementNS(space, "path"));
  return picture;
}

function paintSwatches() {
  const paths = byId("methods").querySelectorAll(".swatch path");
  const groups = plot.querySelectorAll(".scatterlayer .trace");
  drawn.forEach((members, number) => {
    const outline = groups[number]?.querySelector(".point")?.getAttribute("d");
    if (outline) paths[points.method[members[0]]].setAttribute("d", outline);
  });
  paths.forEach((path, method) => path.setAttribute("fill", colourOf(data.methods[method])));
}

function addMethods() {
  const boxes = data.methods.map(({ name }) => element("input", [], { type: "checkbox", checked: "", value: name }));
  const redraw = () => {
    chosen.methods = new Set([...boxes.keys()].filter((number) => boxes[number].checked));
    draw();
  };
  boxes.forEach((box, number) => {
    box.addEventListener("change", redraw);
    byId("all-methods").before(element("label", [box, swatch(), data.methods[number].name]));
  });
  for (const [id, checked] of [["all-methods", true], ["no-methods", false]]) {
    byId(id).addEventListener("click", () => {
      for (const box of boxes) box.checked = checked;
      redraw();
    });
  }
}

function addChoices(id, options) {
  const select = byId(id);
  select.append(...options.map(([value, text]) => element("option", String(text), { value })));
  select.closest("label").hidden = options.length < 2;
  select.addEventListener("change", draw);
}

function allAndEach(values, text) {
  const found = [...new Set(values)].sort((one, other) => (one < other ? -1 : 1));
  return [["all", "all"], ...(found.length > 1 ? found.map((value) => [value, text(value)]) : [])];
}

function addKeys() {
  const keys = {
    ArrowRight: ["AA", 1],
    ArrowLeft: ["AA", -1],
    ArrowUp: ["AF", 1],
    ArrowDown: ["AF", -1],
    Home: ["AA", -Infinity],
    End: ["AA", Infinity],
  };
  const frame = byId("scatter-frame");
  frame.addEventListener("keydown", (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    step(...keys[event.key]);
  });
  frame.addEventListener("blur", () => Plotly.Fx.unhover(plot));
  byId("previous").addEventListener("click", () => step("AA", -1));
  byId("next").addEventListener("click", () => step("AA", 1));
}

function listenToPlot() {
  for (const name of ["plotly_hover", "plotly_click"]) plot.on(name, (event) => choose(event.points[0].customdata));
  plot.on("plotly_afterplot", () => {
    mark();
    paintSwatches();
  });
  plot.on("plotly_selected", (event) => {
    if (!event?.range) return;
    for (const [name, range] of [["AA", event.range.x], ["AF", event.range.y]]) {
      const sorted = [...range].sort((one, other) => one - other);
      edges[name].forEach((input, edge) => (input.value = sorted[edge].toFixed(3)));
    }
    // The plot first ends its own selecting.
    setTimeout(draw);
  });
  plot.on("plotly_deselect", clearRegion);
}

for (const hidden of byId("explore").querySelectorAll("[hidden]")) hidden.hidden = false;
addMethods();
addChoices("backbone", data.backbones.map((name, number) => [number, name]));
addChoices("kind", allAndEach(points.kind, (kind) => `${kind} orders`));
addChoices("repeat", allAndEach(points.repeat, (repeat) => repeat));
for (const id of ["controls", "region"]) byId(id).addEventListener("submit", (event) => event.preventDefault());
byId("region").addEventListener("input", draw);
byId("clear").addEventListener("click", clearRegion);
addKeys();
draw();
listenToPlot();
paintSwatches();
for (const medium of [dark, print]) medium.addEventListener("change", draw);
