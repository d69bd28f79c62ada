"use strict";
// Filters, sorts and copies. Without it, pages are complete.

const linked = () => location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
addEventListener("submit", event => event.preventDefault());

// The words of a search; those of a question that say nothing do not count, nor do plurals.
const IDLE = new Set("a an and are as at by can do does for from how i if in is it its much of on or so than that the their there this to was what when where which who why with".split(" "));
const searched = text => text.toLowerCase().replace(/[?!,;:"“”()]/g, " ").split(/\s+/)
  .filter(word => word && !IDLE.has(word)).map(word => word.length > 4 ? word.replace(/(?<!s)s$/, "") : word);

// Filters. A block with data-filters="paper=Paper;grade=Grade" has items (data-item) with data-paper
// and data-grade; "|" separates several values of one item, data-words holds more words to search.
// data-folded shows the first items until the reader filters or asks for all.
for (const block of document.querySelectorAll("[data-filters]")) {
  const items = [...block.querySelectorAll("[data-item]")];
  const form = document.createElement("form");
  Object.assign(form, {className: "filters", role: "search"});
  const field = (title, input) => {
    const label = document.createElement("label");
    label.append(title, input);
    form.append(label);
    return input;
  };
  const choices = block.dataset.filters.split(";").map(pair => pair.split("=")).flatMap(([name, title]) => {
    const values = new Set(items.flatMap(item => item.dataset[name].split("|")));
    if (values.size < 2) return [];
    const choice = field(title, document.createElement("select"));
    choice.name = name;
    choice.add(new Option("all", ""));
    for (const value of values) if (value) choice.add(new Option(value));
    return [choice];
  });
  const words = field("Search", document.createElement("input"));
  words.type = "search";
  const count = document.createElement("output");
  form.append(count);
  const unfold = () => block.classList.remove("folded");
  if ("folded" in block.dataset) {
    const more = document.createElement("button");
    more.textContent = `Show all ${items.length}`;
    more.addEventListener("click", unfold);
    block.classList.add("folded");
    block.append(more);
  }
  const show = () => {
    const wanted = searched(words.value);
    // The items with the most words of a question, at least half of them.
    const hits = new Map(items.map(item => {
      const text = `${item.textContent} ${item.dataset.words ?? ""} ${item.dataset.paper ?? ""}`.toLowerCase();
      return [item, wanted.filter(word => text.includes(word)).length];
    }));
    const most = Math.max(wanted.length / 2, ...hits.values());
    let shown = 0;
    for (const item of items) {
      const fits = hits.get(item) === (wanted.length ? most : 0) &&
        choices.every(c => !c.value || item.dataset[c.name].split("|").includes(c.value));
      item.hidden = !fits;
      shown += fits;
    }
    if (wanted.length || choices.some(c => c.value)) {
      unfold();
      for (const part of block.querySelectorAll(".apart")) part.open ||= part.querySelector("[data-item]:not([hidden])");
    }
    for (const body of block.querySelectorAll("tbody:has([data-item])")) body.hidden = !body.querySelector("[data-item]:not([hidden])");
    count.value = `${shown} of ${items.length}`;
  };
  // A link to a hidden item resets the filters.
  const reveal = () => {
    const target = linked();
    const item = target && items.find(each => each.contains(target));
    if (!item || item.checkVisibility()) return;
    form.reset();
    show();
    unfold();
    target.scrollIntoView();
  };
  // An address such as #standing=confirmed chooses what is shown; that of the chooser does not.
  const choose = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const choice of asked.has("choose") ? [] : choices) {
      if (!asked.has(choice.name)) continue;
      const value = asked.get(choice.name);
      if (![...choice.options].some(option => option.value === value)) choice.add(new Option(value));
      choice.value = value;
    }
    show();
    reveal();
  };
  form.addEventListener("input", show);
  addEventListener("hashchange", choose);
  block.prepend(form);
  choose();
}

// Plots of settings: a list for each open setting; rows of other settings fade.
for (const box of document.querySelectorAll(".choices:has(circle)")) {
  const rows = [...box.querySelectorAll("[data-setting]")];
  const parts = rows.map(row => row.dataset.setting.split(", "));
  if (parts.some(each => each.length !== parts[0].length) || parts[0].length < 2) continue;
  const form = document.createElement("form");
  form.className = "filters";
  const fields = parts[0].flatMap((_, place) => {
    const values = [...new Set(parts.map(each => each[place]))];
    if (values.length < 2) return [];
    const field = document.createElement("select"), label = document.createElement("label");
    field.add(new Option("any", ""));
    for (const value of values) field.add(new Option(value));
    field.dataset.place = place;
    // "FLANP: 10 clients first" names its list.
    const heads = new Set(values.map(value => value.includes(": ") ? value.split(": ")[0] : ""));
    const [head] = heads;
    label.append(heads.size === 1 && head ? head : values.slice(0, 2).join(" or "), field);
    form.append(label);
    return [field];
  });
  const count = document.createElement("output");
  form.append(count);
  const show = () => {
    const kept = rows.filter((row, i) => {
      const fits = fields.every(field => !field.value || parts[i][field.dataset.place] === field.value);
      row.classList.toggle("other", !fits);
      return fits;
    });
    const number = list => new Set(list.map(row => row.dataset.setting)).size;
    count.value = `${number(kept)} of ${number(rows)} settings`;
  };
  form.addEventListener("input", show);
  box.querySelector("figure").before(form);
  show();
}

// A link to a claim or a figure opens what holds it.
const open = () => {
  const target = linked();
  for (let part = target?.closest?.("details"); part; part = part.parentElement.closest("details")) part.open = true;
  if (target?.closest?.("details")) target.scrollIntoView();
};
addEventListener("hashchange", open);
open();

// The chooser: looks up the advice for the chosen answers, which the address keeps.
const chooser = document.getElementById("chooser");
if (chooser) {
  const {texts, picks} = JSON.parse(document.getElementById("picks").textContent);
  const form = chooser.querySelector("form"), list = chooser.querySelector("ul");
  const fields = [...form.querySelectorAll("select")];
  const item = text => Object.assign(document.createElement("li"), {textContent: text});
  const answer = () => {
    const lines = texts[picks[fields.map(field => field.value).join(" ")]] ?? [];
    list.replaceChildren(...lines.map(item));
  };
  const stored = new URLSearchParams(location.hash.slice(1));
  for (const field of fields) {
    const option = [...field.options].find(each => each.value === stored.get(field.name));
    if (option) option.selected = true;
  }
  form.addEventListener("input", () => {
    const changed = fields.filter(field => field.selectedIndex).map(field => [field.name, field.value]);
    history.replaceState(null, "", `#${new URLSearchParams([["choose", ""], ...changed])}`);
    answer();
  });
  chooser.hidden = false;
  if (stored.has("choose")) chooser.scrollIntoView();
  answer();
}

// Sort order: numbers, censored numbers (">17"), words, dashes.
const rank = cell => {
  const text = cell.dataset.value ?? cell.textContent.trim().replaceAll("−", "-").replace(/(\d),(?=\d{3})/g, "$1");
  const number = parseFloat(text.replace(/^[>≥]/, ""));
  if (/^([–-]|)$/.test(text)) return [3, 0, ""];
  return Number.isNaN(number) ? [2, 0, text.toLowerCase()] : [/^[>≥]/.test(text) ? 1 : 0, number, ""];
};
const compare = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2].localeCompare(b[2]);

for (const table of document.querySelectorAll("table.sortable, .fragment table")) {
  const body = table.tBodies[0];
  if (!table.tHead || body.rows.length < 3) continue;
  const rows = [...body.rows];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const keys = new Map(rows.map(row => [row, rank(row.cells[column])]));
      // Missing values stay at the end in both directions.
      const order = (a, b) => (a[0] === 3 || b[0] === 3 ? a[0] - b[0] : sign * compare(a, b));
      body.append(...rows.toSorted((a, b) => order(keys.get(a), keys.get(b))));
    });
  });
}

// A button that copies each command and each citation.
for (const source of document.querySelectorAll("pre, td > code.command")) {
  const button = document.createElement("button");
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const text = source.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  if (source.matches("pre")) {
    const box = document.createElement("div");
    box.className = "copied";
    source.replaceWith(box);
    box.append(source, button);
  } else source.after(button);
}
