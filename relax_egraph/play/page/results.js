// The panes beside the e-graph: costs, rules, programs, kernels.

import { byId, counted, duration, el } from "./dom.js";

export function showCosts(result) {
  const assumed = Object.entries(result.assumed).map(([name, sizes]) => `${name} = ${sizes.join(", ")}`);
  const gain = result.cost ? `${(result.cost_before / result.cost).toFixed(2)} ×` : "–";
  const tiles = [
    ["as it is written", duration(result.cost_before)],
    ["chosen program", duration(result.cost)],
    ["gain", gain],
    ["proven gap", `${(100 * result.gap).toFixed(1)} %`],
    ["sizes", assumed.join("; ") || "static"],
    ["rules run until", [...new Set(result.stops.map((s) => s.stop.replaceAll("; ", "\n")))].join("\n") || "–"],
  ];
  byId("costs").replaceChildren(
    ...tiles.map(([name, value]) => el("div", {},
      el("dt", {}, name), el("dd", { class: value.length > 24 ? "long" : "" }, value))),
  );
}

export function showMatches(result) {
  const head = ["rule", "law", "rounding", "matches"].map((name) => el("th", {}, name));
  const rules = [...result.rules].sort((a, b) => b.user - a.user || b.matches - a.matches);
  const rows = rules.map((rule) => el("tr", { class: rule.user ? "own" : "" },
    el("td", {}, el("code", {}, rule.rule)),
    el("td", {}, rule.law),
    el("td", {}, rule.float),
    el("td", { class: "n" }, String(rule.matches)),
  ));
  const stops = result.stops.map((s) => el("p", { class: "hint" }, `${s.function}: ${s.stop}`));
  byId("matches").replaceChildren(
    el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)),
    rows.length ? "" : el("p", { class: "hint" }, "no rule matched"),
    ...stops,
  );
}

export function showPrograms(result, pick) {
  const before = result.before.map((line) => {
    const kernels = line.kernels.map((k) => el("span", { class: "k" }, `kernel ${k + 1}`));
    const fate = line.fate ? el("span", { class: "fate" }, line.fate) : null;
    const value = line.name && !line.text.trimStart().startsWith("def");
    return el("span", {
      class: value ? "line value" : "line", onclick: value ? () => pick(line.name) : () => {},
      "data-kernels": line.kernels.join(" "),
    }, line.text || " ", ...kernels, fate);
  });
  const after = result.after.map((line) => el("span", { class: "line" },
    line.text || " ",
    line.kernel == null ? null : el("span", { class: "k" }, `kernel ${line.kernel + 1}`),
  ));
  byId("programs").replaceChildren(
    el("h2", {}, "Before"), el("div", { class: "lines", tabindex: 0 }, ...before),
    el("h2", {}, "After"), el("div", { class: "lines", tabindex: 0 }, ...after),
  );
}

export function showKernels(result) {
  const most = Math.max(...result.kernels.map((k) => k.seconds ?? 0), 1e-12);
  const head = ["kernel", "calls", "operators", "instead of", "price", ""].map((name) => el("th", {}, name));
  const rows = result.kernels.map((kernel) => {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${Math.max(2, (100 * (kernel.seconds ?? 0)) / most)}%`;
    return el("tr", {},
      el("td", {}, `${kernel.kernel + 1}: `, el("code", {}, kernel.variable)),
      el("td", {}, el("code", {}, kernel.calls)),
      el("td", {}, kernel.operators.join(", ")),
      el("td", {}, kernel.replaces.join(", ")),
      el("td", { class: "n" }, duration(kernel.seconds) || "unknown"),
      el("td", { width: "18%" }, bar),
    );
  });
  byId("kernels").replaceChildren(
    el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)),
    el("p", { class: "hint" }, `${counted(rows.length, "kernel")}; prices are estimates of the cost model, by which kernels are chosen.`),
  );
}

// The functions in code by name, in the order of the text.
export function functionsIn(text, stage) {
  const head = stage === "tir" ? /^ *@[TR]\.\w+func/ : /^[;#] [\w.]+$/;
  const parts = [];
  for (const line of text.split("\n")) {
    if (head.test(line) || !parts.length) parts.push([]);
    parts.at(-1).push(line);
  }
  const name = stage === "tir" ? /^ *def (\w+)\(/m : /^[;#] ([\w.]+)$/m;
  const named = parts.map((lines) => lines.join("\n")).map((part) => [name.exec(part)?.[1], part]);
  return new Map(named.filter(([called]) => called));
}
