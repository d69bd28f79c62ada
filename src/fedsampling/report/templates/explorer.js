"use strict";
// The run explorer. A view is an experiment, a metric, a case and an axis. The address stores the
// view, so a link restores it. Data files are scripts that call explored(), because a page opened
// from disk may not read files.

// Each sampler's colour, as in all figures; samplers without one get a free colour of the palette.
const {samplers: OWN_COLOURS, palette: COLOURS} = JSON.parse(document.getElementById("colours").textContent);
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
const AXES = {
  at: "rounds", bits: "bits sent by clients",
  seconds: "seconds, requests included", training: "seconds of training rounds alone",
};
const FIRST_SHOWN = 6;  // samplers, unless the link names some

const page = document.getElementById("explorer");
const views = new Map(JSON.parse(document.getElementById("views").textContent).map(view => [`${view.paper}/${view.experiment}`, view]));
const form = page.querySelector("form");
const fields = form.elements;
const chart = page.querySelector(".chart");
const reading = page.querySelector(".reading");
const loaded = new Map();
let state = {}, curves = [], plot = null, series = [];

globalThis.explored = (key, data) => loaded.set(key, data);

const load = key => new Promise((resolve, reject) => {
  if (loaded.has(key)) return resolve(loaded.get(key));
  const script = document.createElement("script");
  script.src = `explorer/${key}.js`;
  script.onload = () => resolve(loaded.get(key));
  script.onerror = () => reject(new Error(`${script.src}: missing`));
  document.head.append(script);
});

const label = (view, curve) => {
  const name = view.samplers[curve.sampler] ?? curve.sampler;
  const alone = curves.filter(other => other.sampler === curve.sampler).length === 1;
  return alone || !state.all ? name : `${name}, ${curve.case}`;
};
const show = number => {
  if (number === null || number === undefined) return "–";
  const rounded = +number.toPrecision(4);
  if (Math.abs(rounded) >= 1e6) return rounded.toExponential().replace("e+", "e");
  return Math.abs(rounded) < 1000 ? String(rounded) : rounded.toLocaleString("en-GB");
};
// Rounds are written in full.
const showX = number => (state.x === "at" ? number.toLocaleString("en-GB") : show(number));
// Where too few seeds are left, there is no interval.
const interval = (low, high) => (low === null || low === undefined ? "" : `[${show(low)}, ${show(high)}]`);

// State and address.  Other addresses, such as that of the skip link, choose no view.
const namesView = () => new URLSearchParams(location.hash.slice(1)).has("view");
const readAddress = () => {
  const query = new URLSearchParams(namesView() ? location.hash.slice(1) : page.dataset.start);
  const asked = query.get("view"), key = views.has(asked) ? asked : views.keys().next().value;
  page.querySelector(".unknown").textContent = asked && key !== asked ? `No experiment is called ${asked}. This is ${key}.` : "";
  const flag = (name, usual) => (query.has(name) ? query.get(name) === "1" : usual);
  state = {
    view: key,
    metric: query.get("metric"),
    case: query.get("case"),
    x: query.get("x") ?? "at",
    samplers: query.get("samplers")?.split(",").filter(Boolean) ?? null,
    band: flag("band", true),
    logx: flag("logx", false),
    logy: query.has("logy") ? query.get("logy") === "1" : null,
  };
};
const address = () => {
  const shown = curves.filter(curve => curve.shown).map(curve => curve.sampler);
  const parts = {view: state.view, metric: state.metric, case: state.case, x: state.x, samplers: [...new Set(shown)].join(",")};
  for (const name of ["band", "logx", "logy"]) parts[name] = state[name] ? "1" : "0";
  return `#${new URLSearchParams(parts)}`;
};
const remember = () => {
  try { history.replaceState(null, "", address()); } catch { /* some browsers forbid it for files */ }
};

// Fill the lists. The case "each" shows all cases together.
const options = (field, entries, wanted) => {
  field.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
  field.value = entries.some(([value]) => value === wanted) ? wanted : entries[0][0];
  field.closest("label").hidden = entries.length < 2;
  return field.value;
};
const papers = Map.groupBy ? Map.groupBy(views.values(), view => view.paper) : new Map([["", [...views.values()]]]);
for (const [paper, members] of papers) {
  const group = document.createElement("optgroup");
  group.label = paper === members[0].paper ? `${members[0].by} (${paper})` : paper;
  group.append(...members.map(view => new Option(`${view.title} (${view.experiment})`, `${view.paper}/${view.experiment}`)));
  fields.view.append(group);
}

// The search keeps the experiments with the most words of a question in their paper, title, name,
// figures, cases, samplers and metrics, and shows the first one, with the case that was named.
const described = option => {
  const view = views.get(option.value);
  const more = [view.figures, view.samplers, view.metrics].flatMap(Object.values).concat(view.cases);
  return [option.parentNode.label, option.text, ...more].join(" ").toLowerCase();
};
fields.search.addEventListener("input", () => {
  const words = searched(fields.search.value);
  const options = [...fields.view.options];
  const found = new Map(options.map(option => [option, words.filter(word => described(option).includes(word))]));
  // A word of the title counts more than one of a sampler or a figure.
  const score = option => found.get(option).length + 2 * words.filter(word => option.text.toLowerCase().includes(word)).length;
  const most = Math.max(...options.map(score));
  const matches = options.filter(option => score(option) === most && (most || !words.length));
  for (const option of options) option.hidden = option.disabled = !matches.includes(option);
  const tell = message => { page.querySelector(".unknown").textContent = message; };
  if (!matches.length) return tell(`No experiment matches; this is still ${views.get(state.view).title}.`);
  if (!words.length) return tell("");
  const chosen = matches.find(option => option.selected) ?? matches[0];
  const named = views.get(chosen.value).cases.find(name => words.some(word => word.length > 2 && name.toLowerCase().includes(word)));
  if (state.view !== chosen.value) {
    fields.view.value = chosen.value;
    fields.view.dispatchEvent(new Event("change", {bubbles: true}));  // this clears the message
  }
  const has = found.get(matches[0]);
  tell(has.length < words.length ? `No experiment has all words; found: ${has.join(", ")}.` : "");
  if (named && named !== state.case) {
    state.case = named;
    update();
  }
});

const update = async () => {
  const view = views.get(state.view);
  fields.view.value = state.view;
  state.metric = options(fields.metric, Object.entries(view.metrics), state.metric);
  if (state.logy === null) state.logy = ["msd", "test_loss", "loss"].includes(state.metric);
  const wanted = `${state.view}/${state.metric}`;
  const data = await load(wanted).catch(error => error);
  if (wanted !== `${state.view}/${state.metric}`) return;  // meanwhile the reader chose another view
  if (data instanceof Error) {
    reading.textContent = data.message;
    return;
  }
  const perSampler = new Map();
  for (const curve of data) perSampler.set(curve.sampler, (perSampler.get(curve.sampler) ?? 0) + 1);
  const single = [...perSampler.values()].every(count => count === 1);
  const cases = view.cases.filter(name => data.some(curve => curve.case === name));
  const choices = single ? [["each", cases.length > 1 ? "each sampler's own" : cases[0]]] :
    [...cases.map(name => [name, name === "base" ? "the paper's settings" : name]), ["each", "all cases"]];
  state.case = options(fields.case, choices, state.case);
  state.all = state.case === "each";
  curves = data.filter(curve => state.all || curve.case === state.case);
  const axes = Object.entries(AXES).filter(([name]) => curves.some(curve => curve[name]));
  state.x = options(fields.x, axes, state.x);
  for (const name of ["band", "logx", "logy"]) fields[name].checked = state[name];
  const drawn = new Set(curves.map(curve => curve.sampler));
  const names = Object.keys(view.samplers).filter(name => drawn.has(name));  // the paper's order
  const asked = state.samplers?.filter(name => names.includes(name));
  const first = asked?.length || state.samplers?.length === 0 ? asked : names.slice(0, FIRST_SHOWN);
  // Samplers with a colour of their own come first, so that no other curve takes it.
  for (const curve of curves) curve.own = view.colours[curve.sampler] ?? OWN_COLOURS[curve.sampler];
  for (const curve of curves.toSorted((a, b) => !a.own - !b.own)) {
    curve.colour = "";
    curve.shown = false;
    curve.label = label(view, curve);
    turn(curve, first.includes(curve.sampler));
  }
  curves.sort((a, b) => b.shown - a.shown);  // the list is the legend: shown curves come first
  describe(view);
  draw(view);
  page.dispatchEvent(new Event("viewed"));
};

// Black curves have the colour of text on the screen, whose ground may be dark.
const onScreen = (colour, ink) => (colour === "#000000" ? ink : colour);

// Show or hide a curve; it keeps its colour until it is hidden. Curves of one colour differ in dashes.
const turn = (curve, on) => {
  const others = curves.filter(other => other !== curve && other.shown);
  if (on && !(curve.shown && curve.colour)) {
    const free = COLOURS.find(colour => others.every(other => other.colour !== colour));
    curve.colour = curve.own ?? free ?? COLOURS[others.length % COLOURS.length];
    const taken = new Set(others.filter(other => other.colour === curve.colour).map(other => other.dash));
    curve.dash = DASHES.find(dash => !taken.has(dash)) ?? DASHES[0];
  }
  curve.shown = on;
  if (curve.tag) curve.tag.style.stroke = on ? onScreen(curve.colour, "var(--ink)") : "none";
  curve.tag?.setAttribute("stroke-dasharray", curve.dash ?? []);
};

const describe = view => {
  const list = page.querySelector(".samplers ul");
  list.replaceChildren(...curves.map(curve => {
    const item = document.createElement("li"), tag = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = curve.shown;
    box.addEventListener("change", () => { turn(curve, box.checked); choose(); });
    const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    line.setAttribute("aria-hidden", "true");
    line.innerHTML = '<line x1="0" x2="100%" y1="50%" y2="50%" stroke-width="3"/>';
    curve.tag = line.firstChild;
    turn(curve, curve.shown);
    tag.append(box, line, curve.label);
    item.append(tag);
    return item;
  }));
  page.querySelector(".badges").replaceChildren(...view.badges.map(words => {
    const item = document.createElement("li");
    item.className = "badge";
    item.textContent = words[0].toUpperCase() + words.slice(1);
    return item;
  }));
  page.querySelector(".note").textContent = `${view.title}: ${view.seeds} seed${view.seeds === 1 ? "" : "s"}.`;
  const body = page.querySelector(".settings-of tbody");
  body.replaceChildren(...view.settings.map(([name, text]) => {
    const row = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
    head.scope = "row";
    head.textContent = name;
    cell.textContent = text;
    row.append(head, cell);
    return row;
  }));
  const links = Object.entries(view.figures).flatMap(([name, title]) => {
    const link = document.createElement("a");
    link.href = `${view.paper}.html#${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
    link.textContent = title;
    return [link, " "];
  });
  page.querySelector(".figures").replaceChildren(...(links.length ? ["In the report: ", ...links] : []));
};
const choose = () => {
  state.samplers = [...new Set(curves.filter(curve => curve.shown).map(curve => curve.sampler))];
  draw(views.get(state.view));
};

// The chart. Each curve has its own x values; uPlot needs common x values, so they are joined.
const usable = (x, y) => x !== null && y !== null && (!state.logx || x > 0) && (!state.logy || y > 0);
const table = (curve, column) => {
  const x = [], y = [];
  const values = column(curve), end = curve.mean.findLastIndex(value => value !== null);
  curve[state.x].forEach((at, i) => {
    if (i > end || at === null || (state.logx && at <= 0)) return;
    x.push(at);
    y.push(usable(at, values[i]) ? values[i] : null);
  });
  return [x, y];
};
const parts = curve => [
  {column: values => values.mean, name: curve.label, width: 2},
  ...(state.band && curve.low ? [
    {column: values => values.low, name: `${curve.label}, low`, width: 0},
    {column: values => values.high, name: `${curve.label}, high`, width: 0, isHigh: true},
  ] : []),
];
const shown = () => curves.filter(curve => curve.shown && curve[state.x]);

const draw = view => {
  remember();
  fill();
  plot?.destroy();
  plot = null;
  reading.textContent = "";
  const visible = shown();
  for (const name of ["csv", "svg", "png"]) page.querySelector(`[name=${name}]`).disabled = !visible.length;
  if (!visible.length) {
    reading.textContent = "Choose at least one sampler.";
    return;
  }
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim(), rule = style.getPropertyValue("--rule").trim();
  series = visible.flatMap(curve => parts(curve).map(part => ({...part, curve})));
  const bands = [];
  series.forEach((part, i) => {
    if (part.isHigh) bands.push({series: [i + 1, i], fill: `${onScreen(part.curve.colour, ink)}30`});
  });
  const data = uPlot.join(series.map(part => table(part.curve, part.column)));
  const font = `13px ${style.getPropertyValue("--sans")}`;
  const axis = (text, write, more) => ({label: text, stroke: ink, font, labelFont: font, grid: {stroke: rule, width: 1}, ticks: {stroke: rule}, values: (_, ticks) => ticks.map(tick => (tick === null ? "" : write(tick))), ...more});
  const ticks = log => (log ? {splits: decades, filter: (_, all) => all} : {});
  const common = {axes: [axis(AXES[state.x], showX, ticks(state.logx)), axis(view.metrics[state.metric], show, {size: 70, ...ticks(state.logy)})]};
  plot = new uPlot({
    width: chart.clientWidth,
    height: Math.max(320, Math.min(520, innerHeight * 0.6)),
    ...common,
    bands,
    legend: {show: false},
    cursor: {focus: {prox: 24}, dataIdx: nearest},
    scales: {
      x: {time: false, distr: state.logx ? 3 : 1, range: (_, low, high) => [low, high]},
      y: {distr: state.logy ? 3 : 1},
    },
    series: [{}, ...series.map(part => ({
      label: part.name, stroke: part.width ? onScreen(part.curve.colour, ink) : "transparent", width: part.width, dash: part.curve.dash,
      spanGaps: true, points: {show: part.width > 1 && part.curve.at.length < 8},
    }))],
    hooks: {setCursor: [read]},
  }, data, chart);
};
// Ticks of a logarithmic axis: 1, 2 and 5 in each decade; only decades if there are many; if the
// axis has fewer than three of them, those of a linear axis.
const decades = (self, axis, low, high, step) => {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const ticks = [];
  for (let power = first; power <= last; power += 1) {
    for (const digit of last - first > 3 ? [1] : [1, 2, 5]) ticks.push(digit * 10 ** power);
  }
  const inside = ticks.filter(tick => tick >= low && tick <= high);
  if (inside.length > 2 || !step) return inside;
  const start = Math.ceil(low / step), end = Math.floor(high / step);
  return Array.from({length: end - start + 1}, (_, i) => (start + i) * step);
};
// The point of a curve that is nearest to the cursor.
const nearest = (self, number, place) => {
  const values = self.data[number];
  if (values[place] !== null && values[place] !== undefined) return place;
  for (let step = 1; step < values.length; step += 1) {
    for (const at of [place - step, place + step]) if (values[at] !== null && values[at] !== undefined) return at;
  }
  return place;
};
const read = self => {
  const place = self.cursor.idx;
  if (place === null || place === undefined) { reading.textContent = ""; return; }
  const lines = series.flatMap((part, i) => {
    if (part.width !== 2) return [];
    const at = nearest(self, i + 1, place), value = self.data[i + 1][at];
    const ends = state.band && part.curve.low ? [1, 2].map(j => self.data[i + 1 + j][at]) : null;
    return [`${part.name} ${show(value)} ${ends ? interval(...ends) : ""}`.trim()];
  });
  reading.textContent = `${showX(self.data[0][place])} ${AXES[state.x]}: ${lines.join("; ")}`;
};
chart.addEventListener("keydown", event => {
  const move = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
  if (!plot || move === undefined) return;
  event.preventDefault();
  const last = plot.data[0].length - 1;
  const place = Math.max(0, Math.min(last, (plot.cursor.idx ?? -1) + move));
  plot.setCursor({left: plot.valToPos(plot.data[0][place], "x"), top: plot.over.clientHeight / 2});
});

// The same curves as rows.
const rows = () => shown().flatMap(curve => curve.at.map((at, i) => ({
  sampler: curve.sampler, case: curve.case, round: at, bits: curve.bits?.[i], seconds: curve.seconds?.[i], training_seconds: curve.training?.[i],
  mean: curve.mean[i], low: curve.low?.[i], high: curve.high?.[i],
})));
const fill = () => {
  const details = page.querySelector(".values");
  const box = details.querySelector(".scroll");
  box.replaceChildren();
  if (!details.open) return;
  const output = document.createElement("table");
  const head = output.createTHead().insertRow();
  for (const text of ["Sampler", "Case", "Round", AXES[state.x], "Mean", "95 % interval"]) {
    if (text === "rounds") continue;
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text[0].toUpperCase() + text.slice(1);
    head.append(cell);
  }
  const body = output.createTBody();
  for (const curve of shown()) curve.at.forEach((at, i) => {
    const row = body.insertRow();
    const cells = [curve.label, curve.case, at, ...(state.x === "at" ? [] : [show(curve[state.x][i])]), show(curve.mean[i]), curve.low ? interval(curve.low[i], curve.high[i]) || "–" : "–"];
    for (const text of cells) row.insertCell().textContent = text;
  });
  box.append(output);
};
page.querySelector(".values").addEventListener("toggle", fill);

// Export.
const save = (text, kind, ending) => {
  const link = document.createElement("a");
  link.href = text instanceof Blob ? URL.createObjectURL(text) : URL.createObjectURL(new Blob([text], {type: kind}));
  link.download = `${state.view.replace("/", "-")}-${state.metric}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const csv = () => {
  const every = rows();
  const columns = [...new Set(every.flatMap(row => Object.keys(row)))].filter(name => every.some(row => row[name] !== undefined));
  const quoted = value => (value === null || value === undefined ? "" : /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
  return [columns.join(","), ...every.map(row => columns.map(name => quoted(row[name])).join(","))].join("\n") + "\n";
};
// The chart as SVG, from uPlot's own scales and ticks.
const svg = () => {
  const view = views.get(state.view);
  const {left, top, width, height} = plot.bbox, ratio = devicePixelRatio;
  const box = {left: left / ratio, top: top / ratio, width: width / ratio, height: height / ratio};
  const visible = shown();
  const below = box.top + box.height + 62 + 18 * visible.length;
  const x = value => box.left + plot.valToPos(value, "x"), y = value => box.top + plot.valToPos(value, "y");
  const text = (words, at, more = "") => `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" ${more}>${String(words).replace(/[&<>]/g, c => `&#${c.charCodeAt()};`)}</text>`;
  const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${plot.width}" height="${below}" viewBox="0 0 ${plot.width} ${below}" font-family="sans-serif" font-size="12">`, `<rect width="100%" height="100%" fill="#fff"/>`];
  for (const tick of plot.axes[0]._splits) {
    out.push(`<path d="M${x(tick).toFixed(1)} ${box.top}v${box.height}" stroke="#ddd"/>`, text(showX(tick), [x(tick), box.top + box.height + 16], 'text-anchor="middle"'));
  }
  for (const tick of plot.axes[1]._splits) {
    out.push(`<path d="M${box.left} ${y(tick).toFixed(1)}h${box.width}" stroke="#ddd"/>`, text(show(tick), [box.left - 6, y(tick) + 4], 'text-anchor="end"'));
  }
  out.push(`<clipPath id="inside"><rect x="${box.left}" y="${box.top}" width="${box.width}" height="${box.height}"/></clipPath><g clip-path="url(#inside)" fill="none">`);
  const path = (curve, values) => {
    let pen = "M";
    return curve[state.x].map((at, i) => {
      if (!usable(at, values[i])) { pen = "M"; return ""; }
      const step = `${pen}${x(at).toFixed(1)} ${y(values[i]).toFixed(1)}`;
      pen = "L";
      return step;
    }).join("");
  };
  for (const curve of visible) {
    if (state.band && curve.low) {
      const places = curve[state.x].map((at, i) => i).filter(i => usable(curve[state.x][i], curve.low[i]) && usable(curve[state.x][i], curve.high[i]));
      const ends = [...places.map(i => [i, curve.high[i]]), ...places.reverse().map(i => [i, curve.low[i]])];
      out.push(`<polygon points="${ends.map(([i, value]) => `${x(curve[state.x][i]).toFixed(1)},${y(value).toFixed(1)}`).join(" ")}" fill="${curve.colour}" fill-opacity="0.18"/>`);
    }
    out.push(`<path d="${path(curve, curve.mean)}" stroke="${curve.colour}" stroke-width="1.8" stroke-dasharray="${curve.dash}"/>`);
  }
  out.push("</g>", text(AXES[state.x], [box.left + box.width / 2, box.top + box.height + 36], 'text-anchor="middle"'));
  const middle = [16, box.top + box.height / 2];
  out.push(text(view.metrics[state.metric], middle, `text-anchor="middle" transform="rotate(-90 ${middle[0]} ${middle[1]})"`));
  visible.forEach((curve, i) => {
    const at = box.top + box.height + 58 + 18 * i;
    out.push(`<path d="M${box.left} ${at - 4}h24" stroke="${curve.colour}" stroke-width="1.8" stroke-dasharray="${curve.dash}"/>`, text(curve.label, [box.left + 32, at]));
  });
  return `${out.join("\n")}\n</svg>\n`;
};
// The PNG is the SVG, so that both have a legend.
const png = () => {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => save(blob, "image/png", "png"));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg())}`;
};
const button = (name, action) => page.querySelector(`[name=${name}]`).addEventListener("click", action);
button("csv", () => save(csv(), "text/csv", "csv"));
button("svg", () => save(svg(), "image/svg+xml", "svg"));
button("png", png);
button("link", async event => {
  const link = location.href.split("#")[0] + address();
  const tag = event.target;
  try {
    await navigator.clipboard.writeText(link);
    tag.textContent = "Copied";
  } catch {
    prompt("Link to this view", link);
  }
  setTimeout(() => { tag.textContent = "Copy link to this view"; }, 2000);
});
for (const name of ["all", "none"]) button(name, () => {
  for (const curve of curves) turn(curve, name === "all");
  for (const box of page.querySelectorAll(".samplers input")) box.checked = name === "all";
  choose();
});

form.addEventListener("change", event => {
  const {name, type, value, checked} = event.target;
  if (name === "search") return;
  state[name] = type === "checkbox" ? checked : value;
  if (name === "view") page.querySelector(".unknown").textContent = "";
  if (name === "view") Object.assign(state, {metric: null, case: null, samplers: null, logy: null});
  if (name === "metric") state.logy = null;
  update();
});
addEventListener("hashchange", () => {
  if (!namesView()) return;
  readAddress();
  update();
});
new ResizeObserver(() => plot?.setSize({width: chart.clientWidth, height: plot.height})).observe(chart);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot && draw(views.get(state.view)));
page.hidden = false;
readAddress();
update();
