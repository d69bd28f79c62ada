// The explorer's heat map: clients by rounds, for one sampler of the case that is shown.
{
  const box = page.querySelector(".selected"), recorded = box.querySelector(".recorded");
  const choice = recorded.querySelector("form").elements, canvas = box.querySelector("canvas");
  const LEFT = 48, BOTTOM = 40;
  let maps = [], map = null, order = [], top = 1;

  const percent = share => `${+(100 * share).toPrecision(2)} %`;
  // The last row and column may have fewer clients and rounds.
  const clientsIn = row => Math.min(map.perRow, map.clients - row * map.perRow);
  const roundsIn = column => Math.min(map.perColumn, map.rounds[1] - map.rounds[0] + 1 - column * map.perColumn);
  const share = (rows, row, column) => rows[row][column] / (clientsIn(row) * roundsIn(column) * map.seeds);
  const total = counts => counts.reduce((sum, count) => sum + count, 0);
  const span = (first, size, last) => (size === 1 ? `${first}` : `${first} to ${Math.min(first + size - 1, last)}`);
  const clientsOf = row => span(row * map.perRow, map.perRow, map.clients - 1);
  const roundsOf = column => span(map.rounds[0] + column * map.perColumn, map.perColumn, map.rounds[1]);

  const show = async () => {
    if (!box.open) return;
    const view = views.get(state.view);
    recorded.hidden = !view.selections;
    box.querySelector(".unrecorded").hidden = view.selections;
    if (!view.selections) return;
    const wanted = state.view, data = await load(`${wanted}/selections`);
    if (wanted !== state.view) return;  // meanwhile the reader chose another view
    maps = data.filter(each => state.all || each.case === state.case);
    const name = each => (view.samplers[each.sampler] ?? each.sampler) + (state.all && view.cases.length > 1 ? `, ${each.case}` : "");
    options(choice.map, maps.map((each, i) => [String(i), name(each)]), choice.map.value);
    choose();
  };
  const choose = () => {
    map = maps[+choice.map.value];
    const rounds = map.rounds[1] - map.rounds[0] + 1;
    const shares = map.selected.map((row, i) => total(row) / (clientsIn(i) * rounds * map.seeds));
    order = shares.map((_, i) => i);
    if (choice.order.value === "often") order.sort((a, b) => shares[b] - shares[a]);
    top = Math.max(...map.selected.flatMap((row, i) => row.map((_, j) => share(map.selected, i, j))));
    const never = shares.filter(each => each === 0).length, most = shares.indexOf(Math.max(...shares));
    const unit = map.perRow === 1 ? "clients" : `groups of ${map.perRow} clients`;
    const failed = map.failed ? ` Of the selected clients, ${percent(total(map.failed.flat()) / total(map.selected.flat()))} did not report.` : "";
    box.querySelector(".summary").textContent = `${never} of the ${map.selected.length} ${unit} up to client ${map.clients - 1} ${never === 1 ? "was" : "were"} never selected. ` +
      `Most often: client${map.perRow === 1 ? "" : "s"} ${clientsOf(most)}, in ${percent(shares[most])} of the rounds.${failed}`;
    paint();
  };

  const paint = () => {
    if (!map || !canvas.clientWidth) return;
    const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(name).trim();
    const rows = map.selected.length, columns = map.selected[0].length, ratio = devicePixelRatio;
    const width = canvas.clientWidth, height = Math.max(180, Math.min(520, rows * 8)) + BOTTOM;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const w = (width - LEFT) / columns, h = (height - BOTTOM) / rows;
    pen.fillStyle = colour("--link");
    for (const [place, row] of order.entries()) for (let column = 0; column < columns; column += 1) {
      if (!map.selected[row][column]) continue;
      pen.globalAlpha = 0.12 + 0.88 * share(map.selected, row, column) / top;
      pen.fillRect(LEFT + column * w, place * h, Math.ceil(w * ratio) / ratio, Math.ceil(h * ratio) / ratio);
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = colour("--rule");
    pen.strokeRect(LEFT + 0.5, 0.5, width - LEFT - 1, height - BOTTOM - 1);
    pen.fillStyle = colour("--ink");
    pen.font = `13px ${colour("--sans")}`;
    pen.textAlign = "right";
    if (choice.order.value === "number") for (const row of [0, Math.floor(rows / 2), rows - 1]) pen.fillText(row * map.perRow, LEFT - 6, Math.min(Math.max(row * h + h / 2 + 4, 12), height - BOTTOM));
    pen.textAlign = "center";
    for (const column of [0, Math.floor(columns / 2), columns - 1]) {
      pen.fillText(map.rounds[0] + column * map.perColumn, Math.min(LEFT + (column + 0.5) * w, width - 14), height - BOTTOM + 16);
    }
    pen.fillText("rounds", LEFT + (width - LEFT) / 2, height - 6);
    pen.save();
    pen.translate(12, (height - BOTTOM) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText("clients", 0, 0);
    pen.restore();
    canvas.setAttribute("aria-label", `Clients by rounds: ${box.querySelector(".summary").textContent}`);
    const many = map.seeds > 1 || map.perRow > 1 || map.perColumn > 1;
    box.querySelector(".ramp").hidden = !many;
    box.querySelector(".range").textContent = many
      ? `selected in 0 to ${percent(top)} of ${map.seeds} seed${map.seeds === 1 ? "" : "s"}` + (map.perColumn > 1 ? `; a column is ${map.perColumn} rounds` : "") + (map.perRow > 1 ? `; a row is ${map.perRow} clients` : "")
      : "coloured: selected in this round";
  };
  canvas.addEventListener("pointermove", event => {
    const {left, top: above, width, height} = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - left - LEFT) / (width - LEFT) * map.selected[0].length);
    const row = order[Math.floor((event.clientY - above) / (height - BOTTOM) * order.length)];
    const failed = map.failed ? `, and did not report in ${percent(share(map.failed, row ?? 0, column))}` : "";
    box.querySelector(".cell").textContent = column < 0 || row === undefined ? "" :
      `client ${clientsOf(row)}, round ${roundsOf(column)}: selected in ${percent(share(map.selected, row, column))}${failed}`;
  });
  recorded.querySelector("form").addEventListener("change", choose);
  box.addEventListener("toggle", show);
  page.addEventListener("viewed", show);
  new ResizeObserver(paint).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
}
