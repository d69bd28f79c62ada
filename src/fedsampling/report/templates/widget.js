"use strict";
// The widget of the samplers' page: what five samplers do with made-up clients, from closed forms.
// A test compares these numbers with those of the Python functions.

const SAMPLERS = {md: "MD", uniform: "Uniform", clustered_size: "Clustered by size", optimal: "Optimal (equal updates)", flanp: "FLANP, first stage"};

// Sizes from equal (0) to very unequal (2): log-normal quantiles. Delays: 57.5 s ± spread, unrelated to sizes.
const population = (n, inequality, spread) => {
  const samples = [], delays = [];
  for (let i = 0; i < n; i += 1) {
    const u = (i + 0.5) / n;
    samples.push(Math.max(1, Math.round(1000 * Math.exp(inequality * normal(u)))));
    delays.push(57.5 * (1 + spread * (2 * ((i * 0.6180339887 + 0.5) % 1) - 1)));
  }
  return {samples, delays};
};
// Quantile of the normal distribution, by bisection of a series for its distribution function.
const normal = u => {
  let low = -8, high = 8;
  while (high - low > 1e-9) {
    const z = (low + high) / 2;
    let term = z, sum = z;
    for (let k = 1; k < 200 && Math.abs(term) > 1e-16; k += 1) sum += (term *= (z * z) / (2 * k + 1));
    const below = 0.5 + sum * Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
    if (below < u) low = z; else high = z;
  }
  return low;
};
const total = values => values.reduce((sum, value) => sum + value, 0);
// E[max delay] if P(all drawn delays ≤ τ) = below(set of clients with delay ≤ τ).
const slowest = (delays, below) => {
  const order = delays.map((_, i) => i).sort((a, b) => delays[a] - delays[b]), fast = new Set();
  let before = 0, mean = 0;
  for (const i of order) {
    fast.add(i);
    const chance = below(fast);
    mean += delays[i] * (chance - before);
    before = chance;
  }
  return mean;
};
// Algorithm 1 of Fraboni et al. 2021: the largest clients first, end to end over m distributions.
const clustered = (samples, m) => {
  const M = total(samples), r = Array.from({length: m}, () => samples.map(() => 0));
  let k = 0, room = M;
  for (const i of samples.map((_, i) => i).sort((a, b) => samples[b] - samples[a] || a - b)) {
    for (let left = m * samples[i]; left > 0;) {
      const part = Math.min(left, room);
      r[k][i] += part / M;
      left -= part;
      room -= part;
      if (!room) { k += 1; room = M; }
    }
  }
  return r;
};
// Eq. (6) of Chen et al. 2022 for updates of equal norms: probabilities in proportion to p, at most 1.
const optimal = (p, m) => {
  const sure = new Set();
  for (;;) {
    const rest = p.filter((_, i) => !sure.has(i)), scale = (m - sure.size) / total(rest);
    const more = p.map((_, i) => i).filter(i => !sure.has(i) && p[i] * scale > 1 + 1e-12);
    if (!more.length) return p.map((share, i) => (sure.has(i) ? 1 : share * scale));
    for (const i of more) sure.add(i);
  }
};
// Of each sampler: P(client i takes part), Var[ω_i], and the expected seconds of a round.
const compute = (samples, delays, m) => {
  const n = samples.length, M = total(samples), p = samples.map(size => size / M);
  const sum = (values, set) => { let all = 0; for (const i of set) all += values[i]; return all; };
  const r = clustered(samples, m), q = optimal(p, m);
  const fastest = delays.map((_, i) => i).sort((a, b) => delays[a] - delays[b]).slice(0, m);
  // P(all m of n without replacement are among k) = C(k, m) / C(n, m)
  const among = k => { let chance = 1; for (let j = 0; j < m; j += 1) chance *= Math.max(0, k - j) / (n - j); return chance; };
  return {
    md: {
      inclusion: p.map(share => 1 - (1 - share) ** m),
      variance: p.map(share => share * (1 - share) / m),
      seconds: slowest(delays, fast => sum(p, fast) ** m),
    },
    uniform: {
      inclusion: p.map(() => m / n),
      variance: p.map(share => share ** 2 * (n / m - 1)),
      seconds: slowest(delays, fast => among(fast.size)),
    },
    clustered_size: {
      inclusion: p.map((_, i) => 1 - r.reduce((none, row) => none * (1 - row[i]), 1)),
      variance: p.map((_, i) => total(r.map(row => row[i] * (1 - row[i]))) / m ** 2),
      seconds: slowest(delays, fast => r.reduce((all, row) => all * sum(row, fast), 1)),
    },
    optimal: {  // every client trains, m report
      inclusion: q,
      variance: p.map((share, i) => share ** 2 * (1 / q[i] - 1)),
      seconds: Math.max(...delays),
    },
    flanp: {
      inclusion: p.map((_, i) => (fastest.includes(i) ? 1 : 0)),
      variance: p.map(() => 0),
      seconds: delays[fastest[m - 1]],
    },
  };
};

const widget = document.getElementById("widget");
if (widget) {
  const form = widget.querySelector("form"), body = widget.querySelector("tbody");
  const number = value => (value === 0 ? "0" : value.toPrecision(3));
  const show = () => {
    const [n, m, inequality, spread] = ["n", "m", "inequality", "spread"].map(name => Number(form.elements[name].value));
    form.elements.m.max = n;
    for (const name of ["n", "m", "inequality", "spread"]) form.querySelector(`[data-of=${name}]`).textContent = form.elements[name].value;
    const {samples, delays} = population(n, inequality, spread);
    const moments = compute(samples, delays, Math.min(m, n));
    body.replaceChildren(...Object.entries(moments).map(([name, {inclusion, variance, seconds}]) => {
      const row = document.createElement("tr");
      const cells = [SAMPLERS[name], number(Math.min(...inclusion)), number(Math.max(...inclusion)), name === "flanp" ? "0 (biased)" : number(total(variance)), `${seconds.toFixed(1)} s`];
      for (const text of cells) row.insertCell().textContent = text;
      return row;
    }));
  };
  form.addEventListener("input", show);
  widget.hidden = false;
  show();
}
