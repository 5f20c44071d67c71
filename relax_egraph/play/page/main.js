// The page: two editors, what their texts do, and the state in its address.

import { Asking } from "./asking.js";
import { byId, counted, el } from "./dom.js";
import { Editor } from "./editor.js";
import { fragment, stateIn } from "./link.js";
import { Picture } from "./picture.js";
import { functionsIn, showCosts, showKernels, showMatches, showPrograms } from "./results.js";
import { Vocabulary } from "./tokens.js";

const WAIT = 350; // ms without typing before the texts are evaluated

const start = await (await fetch("start.json")).json();
const words = new Vocabulary(start.vocabulary, start.usages);
const rules = new Editor(
  byId("rules"), "Rules", (text) => words.rules(text), (before) => words.ofRules(before), edited,
);
const program = new Editor(
  byId("program"), "Program", (text) => words.program(text), () => words.ofPrograms(), edited,
);
const asking = new Asking(() => ({ program: program.text, rules: rules.text, alone: !byId("book").checked }));
const picture = new Picture(pick);

let timer = 0;
let result = null;
let pane = "egraph";
let code = null;

// --- the state ------------------------------------------------------------------------

function load(state) {
  program.text = state.program;
  rules.text = state.rules;
  byId("book").checked = state.book ?? true;
  const example = start.examples.find((e) => e.program === state.program && e.rules === state.rules);
  byId("examples").value = example?.name ?? "";
  byId("about").textContent = example?.text ?? "";
  byId("about").hidden = !example;
  edited(0);
}

function edited(wait = WAIT) {
  asking.begin();
  status("typing …", "busy");
  byId("results").classList.add("stale");
  clearTimeout(timer);
  timer = setTimeout(evaluate, typeof wait === "number" ? wait : WAIT);
  byId("verdict").hidden = true;
}

function remember() {
  const state = { program: program.text, rules: rules.text, book: byId("book").checked };
  history.replaceState(null, "", `#${fragment(state)}`);
}

function status(text, kind = "") {
  byId("status").textContent = text;
  byId("status").className = kind;
}

// --- evaluation -----------------------------------------------------------------------

async function evaluate() {
  remember();
  const begun = performance.now();
  status("evaluating …", "busy");
  const answer = await asking.ask("result");
  if (!answer) return;
  if (answer.ended) return failed(answer.ended);
  showMistakes(answer.mistakes);
  if (answer.mistakes.length) {
    status(`${counted(answer.mistakes.length, "mistake")}; what is shown is of the text before`, "bad");
    return;
  }
  result = answer;
  code = null;
  byId("results").classList.remove("stale");
  showCosts(result);
  showMatches(result);
  showPrograms(result, pick);
  showKernels(result);
  showOwn();
  offerNames();
  status("the e-graph is recorded …", "busy");
  const steps = await asking.ask("steps");
  if (!steps) return;
  if (steps.ended) return failed(steps.ended);
  picture.set(steps.egraphs ?? [], result.own.map((one) => one.rule));
  status(`up to date, ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  if (pane === "code") await showCode();
}

function failed(reason) {
  status(`the evaluation ${reason}; what is shown is of the text before`, "bad");
  byId("results").classList.add("stale");
}

function showMistakes(mistakes) {
  for (const [name, editor] of [["rules", rules], ["program", program]]) {
    const here = mistakes.filter((m) => m.text === name).map((m) => placed(m, editor.text));
    editor.underline(here);
    byId(`${name}-mistakes`).replaceChildren(...here.map((m) => el("li", {},
      el("button", { type: "button", onclick: () => editor.select(m.start, m.end) }, `line ${m.line}`),
      m.message,
    )));
  }
}

// The server counts characters, a browser units of UTF-16.
function placed(mistake, text) {
  const units = (count) => Array.from(text).slice(0, count).join("").length;
  return { ...mistake, start: units(mistake.start), end: units(mistake.end) };
}

// --- own rules ------------------------------------------------------------------------

function showOwn() {
  const matches = new Map(result.rules.map((rule) => [rule.rule, rule.matches]));
  byId("own").replaceChildren(...result.own.map(({ rule }) => {
    const words = el("span", {});
    const button = (kind) => el("button", {
      type: "button", "data-kind": kind, onclick: () => verdict(kind, rule, words),
    }, kind);
    return el("li", { "data-rule": rule },
      el("code", {}, rule),
      el("span", { class: "dim" }, counted(matches.get(rule) ?? 0, "match", "matches")),
      button("check"), button("prove"),
      el("button", { type: "button", onclick: () => askWhy(rule) }, "why not"),
      words,
    );
  }));
}

async function verdict(kind, rule, words) {
  words.className = "dim";
  words.textContent = `${kind} …`;
  const answer = await asking.ask(kind, { rule });
  if (!answer) return;
  words.textContent = answer.words ?? "no answer";
  words.className = answer.is_wrong ? "wrong" : "";
  byId("verdict").textContent = answer.text ?? `the ${kind} ${answer.ended}`;
  byId("verdict").hidden = false;
}

// --- why not --------------------------------------------------------------------------

function offerNames() {
  const own = result.own.map((one) => one.rule);
  const names = new Set([...own, ...result.rules.map((rule) => rule.rule)]);
  byId("rule-names").replaceChildren(...[...names].map((name) => el("option", { value: name })));
  if (!names.has(byId("why-rule").value)) byId("why-rule").value = own[0] ?? "";
  const values = result.before
    .filter((line) => line.kernels.length || line.fate)
    .map((line) => line.name).filter(Boolean);
  offer(byId("why-value"), "any value", values);
}

// Options for a choice, which stays what it was if it can.
function offer(select, none, values) {
  const chosen = select.value;
  select.replaceChildren(
    el("option", { value: "" }, none), ...values.map((value) => el("option", { value }, value)),
  );
  if (values.includes(chosen)) select.value = chosen;
}

function pick(name) {
  const select = byId("why-value");
  if (![...select.options].some((option) => option.value === name)) return;
  select.value = name;
  if (byId("why-rule").value) why();
  if (pane === "programs") open("why");
}

function askWhy(rule) {
  byId("why-rule").value = rule;
  open("why");
  why();
}

async function why() {
  const [rule, at] = [byId("why-rule").value, byId("why-value").value];
  const text = byId("why-text");
  text.hidden = false;
  text.textContent = "…";
  const answer = await asking.ask("why-not", { rule, at });
  if (!answer) return;
  text.textContent = answer.text ?? answer.mistakes?.map((m) => m.message).join("\n") ?? answer.ended;
  const selected = byId("selected");
  selected.querySelector("pre")?.remove();
  if (pane === "egraph") selected.append(el("pre", { class: "said" }, text.textContent));
}

// --- code -----------------------------------------------------------------------------

async function showCode() {
  const stage = byId("stage").value;
  if (!result) return;
  if (code?.stage !== stage) {
    byId("code-text").textContent = "…";
    const answer = await asking.ask("code", { stage });
    if (!answer) return;
    const text = answer.text ?? answer.mistakes?.map((m) => m.message).join("\n") ?? answer.ended;
    code = { stage, text: answer.cut ? `${text}\n… and more` : text };
    offer(byId("kernel"), "all", [...functionsIn(text, stage).keys()]);
  }
  byId("code-text").textContent = functionsIn(code.text, stage).get(byId("kernel").value) ?? code.text;
}

// --- panes ----------------------------------------------------------------------------

const tabs = [...document.querySelectorAll("[role=tab]")];

function open(name) {
  pane = name;
  for (const tab of tabs) {
    const shown = tab.dataset.pane === name;
    tab.setAttribute("aria-selected", shown);
    tab.tabIndex = shown ? 0 : -1;
    byId(tab.dataset.pane).hidden = !shown;
  }
  if (name === "code") showCode();
}

for (const [k, tab] of tabs.entries()) {
  tab.setAttribute("aria-controls", tab.dataset.pane);
  tab.addEventListener("click", () => open(tab.dataset.pane));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: k - 1, ArrowRight: k + 1 }[event.key];
    if (to === undefined) return;
    const next = tabs[(to + tabs.length) % tabs.length];
    next.focus();
    open(next.dataset.pane);
  });
}

// --- begin ----------------------------------------------------------------------------

byId("file").textContent = start.file;
byId("examples").append(...start.examples.map((e, k) => el("option", { value: e.name }, `${k + 1}  ${e.title}`)));
byId("examples").addEventListener("change", () => {
  const example = start.examples.find((e) => e.name === byId("examples").value);
  if (!example) return;
  picture.picked = null;
  load({ program: example.program, rules: example.rules, book: true });
});
byId("book").addEventListener("change", () => edited(0));
byId("copy").addEventListener("click", async () => {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    status("the address is copied");
  } catch {
    status("the address of this page holds the state");
  }
});
byId("stage").addEventListener("change", showCode);
byId("kernel").addEventListener("change", showCode);
byId("why-form").addEventListener("submit", (event) => {
  event.preventDefault();
  why();
});
addEventListener("hashchange", () => {
  const state = stateIn(location.hash);
  if (state) load(state);
});
open("egraph");
load(stateIn(location.hash) ?? { program: start.program, rules: start.rules });
