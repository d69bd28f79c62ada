// The section "Who is left out?": participation and accuracy of each client under a sampler, and
// under a second one to compare with.
{
  const page = document.getElementById("each-client");
  const datasets = JSON.parse(document.getElementById("clients-data").textContent);
  const form = page.querySelector("form"), fields = form.elements;
  const plot = page.querySelector("svg"), reading = page.querySelector(".reading"), body = page.querySelector("tbody");
  const WIDTH = 900, LEFT = 44, TOP = 8, HEIGHT = 150, GAP = 34;
  const node = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const percent = (value, digits = 0) => (value === null ? "–" : `${(100 * value).toFixed(digits)} %`);
  const option = (value, text) => Object.assign(document.createElement("option"), {value, textContent: text});
  const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;

  const describe = one => {
    const rates = one.participation.filter(value => value !== null), accuracies = one.accuracy.filter(value => value !== null);
    return `${one.label}: ${percent(one.never_selected, 1)} of the clients never take part in a run; ` +
      `participation ${percent(Math.min(...rates), 1)} to ${percent(Math.max(...rates), 1)} of the rounds; ` +
      `accuracy ${percent(mean(accuracies), 1)} on average, ${percent(one.worst_accuracy, 1)} for the worst tenth of the clients.`;
  };
  const panel = (data, measure, title, top, most, one, other) => {
    const step = (WIDTH - LEFT) / data.samples.length, y = value => top + HEIGHT * (1 - value / most);
    plot.append(node("text", {x: LEFT, y: top - 6}, title));
    for (const level of [0, most / 2, most]) {
      plot.append(node("line", {class: "grid", x1: LEFT, x2: WIDTH, y1: y(level), y2: y(level)}));
      plot.append(node("text", {class: "tick", x: LEFT - 6, y: y(level) + 4}, percent(level)));
    }
    data.samples.forEach((samples, client) => {
      const x = LEFT + client * step, group = node("g", {});
      const [first, second, expected] = [one[measure][client], other[measure][client], data.expected[client]];
      group.append(node("title", {}, `Client ${data.names[client]} with ${samples} samples: takes part in ${percent(one.participation[client], 1)} of the rounds ` +
        `(${other.label}: ${percent(other.participation[client], 1)}), accuracy ${percent(one.accuracy[client], 1)} (${percent(other.accuracy[client], 1)})`));
      group.append(node("rect", {class: "hover", x, y: top, width: step, height: HEIGHT}));
      if (first !== null) group.append(node("rect", {class: "first", x: x + 0.1 * step, y: y(first), width: 0.8 * step, height: HEIGHT + top - y(first)}));
      if (second !== null) group.append(node("line", {class: "second", x1: x, x2: x + step, y1: y(second), y2: y(second)}));
      if (measure === "participation" && expected !== null) group.append(node("line", {class: "expected", x1: x, x2: x + step, y1: y(expected), y2: y(expected)}));
      plot.append(group);
    });
  };
  const draw = () => {
    const data = datasets[fields.dataset.selectedIndex];
    const one = data.samplers[fields.first.value], other = data.samplers[fields.second.value];
    const rates = [...one.participation, ...other.participation, ...data.expected].filter(value => value !== null);
    plot.replaceChildren();
    panel(data, "participation", "Participation rate", TOP + 14, Math.max(...rates) || 1, one, other);
    panel(data, "accuracy", "Final accuracy", TOP + 14 + HEIGHT + GAP, 1, one, other);
    const [few, many] = [data.samples[0], data.samples[data.samples.length - 1]], y = TOP + 2 * HEIGHT + GAP + 30;
    plot.append(node("text", {x: LEFT, y}, `${few} samples`), node("text", {x: WIDTH, y, "text-anchor": "end"}, `${many} samples`));
    reading.replaceChildren(...[one, other].map(each => Object.assign(document.createElement("span"), {textContent: describe(each)})),
      Object.assign(document.createElement("span"), {textContent: data.note}));
    body.replaceChildren(...data.samples.map((samples, client) => {
      const row = document.createElement("tr");
      const cells = [data.names[client], samples, ...[one, other].flatMap(each => [percent(each.participation[client], 1), each.relative_weight[client] ?? "–", percent(each.accuracy[client], 1)])];
      row.append(...cells.map(text => Object.assign(document.createElement("td"), {textContent: text})));
      return row;
    }));
  };
  const choose = () => {
    const data = datasets[fields.dataset.selectedIndex], names = Object.entries(data.samplers).sort((a, b) => a[1].label.localeCompare(b[1].label));
    for (const [field, usual] of [["first", page.dataset.first], ["second", page.dataset.second]]) {
      const before = fields[field].value || usual;
      fields[field].replaceChildren(...names.map(([name, {label}]) => option(name, label)));
      fields[field].value = before in data.samplers ? before : names[0][0];
    }
    draw();
  };
  fields.dataset.append(...datasets.map(data => option(data.key, data.title)));
  fields.dataset.addEventListener("change", choose);
  for (const name of ["first", "second"]) fields[name].addEventListener("change", draw);
  choose();
  page.hidden = false;
}
