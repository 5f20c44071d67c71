// The e-graph as SVG, and its stepper: what each rule added.

import { byId, counted, el, svg } from "./dom.js";
import { CHAR, HEAD, PAD, ROW, layout } from "./layout.js";

export class Picture {
  // `pick` is called with the name of a value that is clicked; `own` are the names of own rules.
  constructor(pick) {
    this.pick = pick;
    this.own = new Set();
    this.graphs = [];
    this.graph = 0;
    this.step = 0;
    this.picked = null;
    byId("step").addEventListener("input", () => this.go(Number(byId("step").value)));
    byId("back").addEventListener("click", () => this.go(this.step - 1));
    byId("on").addEventListener("click", () => this.go(this.step + 1));
    byId("graphs").addEventListener("change", () => this.show(Number(byId("graphs").value)));
  }

  set(graphs, own) {
    const atEnd = this.step >= this.steps.length - 1;
    this.graphs = graphs;
    this.own = new Set(own);
    const select = byId("graphs");
    select.hidden = graphs.length < 2;
    select.replaceChildren(
      ...graphs.map((g, k) => el("option", { value: k }, `block ${k + 1}: ${g.function}`)),
    );
    this.graph = Math.min(this.graph, Math.max(0, graphs.length - 1));
    this.show(this.graph, atEnd ? Infinity : this.step);
  }

  get steps() {
    return this.graphs[this.graph]?.steps ?? [];
  }

  show(graph, step = Infinity) {
    this.graph = graph;
    byId("graphs").value = graph;
    byId("step").max = Math.max(0, this.steps.length - 1);
    this.go(step);
  }

  go(step) {
    this.step = Math.max(0, Math.min(step, this.steps.length - 1));
    byId("step").value = this.step;
    byId("back").disabled = this.step === 0;
    byId("on").disabled = this.step >= this.steps.length - 1;
    this.draw();
  }

  draw() {
    const step = this.steps[this.step];
    const place = byId("picture");
    byId("effects").replaceChildren();
    if (!step) {
      byId("step-text").textContent = "no dataflow block";
      place.replaceChildren();
      this.details(null);
      return;
    }
    byId("step-text").textContent = this.title(step);
    const effects = [...step.effects].sort((a, b) => this.isOwn(b) - this.isOwn(a));
    byId("effects").replaceChildren(...effects.map((e) => this.effect(e)));
    place.replaceChildren(this.drawn(step));
    this.details(step);
  }

  title(step) {
    const last = this.step === this.steps.length - 1;
    const at = step.phase ? `${step.phase}, iteration ${step.iteration}` : "the program as it is written";
    const size = step.classes.length < step.of
      ? `${step.classes.length} of ${counted(step.of, "class", "classes")}`
      : counted(step.of, "class", "classes");
    return `${this.step + 1} of ${this.steps.length}: ${at}; ${size}${last ? "; ● is chosen" : ""}`;
  }

  isOwn(effect) {
    return this.own.has(effect.rule);
  }

  effect(effect) {
    const did = [
      effect.nodes && counted(effect.nodes, "node"), effect.unions && counted(effect.unions, "union"),
    ].filter(Boolean).join(", ");
    return el("li", { class: this.isOwn(effect) ? "own" : "" }, `${effect.rule}: ${counted(effect.matches, "match", "matches")}, ${did}`);
  }

  // The names of classes and nodes in a step.
  labels(step) {
    const names = new Map(step.classes.map((c) => {
      const leaf = c.nodes.find((n) => !n.classes.length && /^[\w.+-]+$/.test(n.text));
      return [c.class, c.names[0] ?? leaf?.text ?? `c${c.class}`];
    }));
    const one = (c) => names.get(c) ?? `c${c}`;
    return {
      class: one,
      about: (c) => (c.kernel == null ? c.type : `kernel ${c.kernel + 1}  ${c.type}`),
      node: (node) => {
        const [head, ...attributes] = node.text.split(" ");
        return node.classes.length ? [head, ...node.classes.map(one), ...attributes].join(" ") : node.text;
      },
    };
  }

  drawn(step) {
    const first = this.step === 0;
    for (const c of step.classes) {
      for (const node of c.nodes) node.fresh = !first && node.step === step.number && Boolean(node.rule);
    }
    const label = this.labels(step);
    const { boxes, width, height } = layout(step.classes, label, (byId("picture").clientWidth || 900) - 50);
    const edges = [], groups = [];
    for (const b of boxes.values()) {
      groups.push(this.group(b, label));
      b.rows.forEach(({ node }, k) => {
        for (const operand of new Set(node?.classes ?? [])) {
          const from = boxes.get(operand);
          if (from) edges.push(edge(from, b, b.y + HEAD + (k + 0.5) * ROW, node));
        }
      });
    }
    return svg("svg", {
      width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${step.classes.length} classes`,
    }, ...edges, ...groups);
  }

  group(b, label) {
    const { c } = b;
    const kind = ["class", c.root && "root", c.class === this.picked && "picked"].filter(Boolean).join(" ");
    const rows = b.rows.map(({ node, text }, k) => {
      const y = b.y + HEAD + k * ROW;
      const look = ["row", node?.fresh && "fresh", node?.chosen && "chosen"].filter(Boolean).join(" ");
      return svg("g", { class: look },
        svg("rect", { x: b.x + 3, y, width: b.width - 6, height: ROW - 1, rx: 3 }),
        svg("text", { x: b.x + PAD, y: y + ROW - 6 }, `${node?.chosen ? "●" : " "} ${text}`),
        node?.fresh ? svg("text", {
          class: "by", x: b.x + PAD + (text.length + 3) * CHAR, y: y + ROW - 6,
        }, node.rule) : null,
        node?.rule ? svg("title", {}, `added by ${node.rule}`) : null,
      );
    });
    const pick = () => this.choose(c);
    return svg("g", {
      class: kind, tabindex: 0, role: "button", "aria-label": `class ${label.class(c.class)}`,
      onclick: pick, onkeydown: (event) => event.key === "Enter" && pick(),
    },
      svg("rect", { class: "box", x: b.x, y: b.y, width: b.width, height: b.height, rx: 6 }),
      svg("text", { x: b.x + PAD, y: b.y + 14 }, label.class(c.class)),
      svg("text", {
        class: "type", x: b.x + b.width - PAD, y: b.y + 14, "text-anchor": "end",
      }, label.about(c)),
      ...rows,
    );
  }

  choose(c) {
    this.picked = c.class;
    this.draw();
    if (c.names.length) this.pick(c.names[0]);
  }

  // The class that is picked, with all its nodes in words.
  details(step) {
    const place = byId("selected");
    const c = step?.classes.find((one) => one.class === this.picked);
    if (!c) {
      place.replaceChildren(el("p", { class: "hint" }, "Boxes are classes of equal values, rows the ways to compute them. Click on one to ask why a rule did not match there."));
      return;
    }
    const label = this.labels(step);
    place.replaceChildren(
      el("p", {}, `${c.names.join(" = ") || `class ${c.class}, which rules made`}: ${c.type}`),
      el("ul", {}, ...c.nodes.map((node) => el("li", {},
        el("code", {}, label.node(node)),
        el("span", { class: "dim" }, node.rule ? `  added by ${node.rule}` : "  of the program"),
        node.chosen ? "  ● chosen" : null,
      ))),
    );
  }
}

function edge(from, to, y, node) {
  const [x1, y1] = [from.x + from.width / 2, from.y + from.height];
  const right = x1 > to.x + to.width / 2;
  const x2 = right ? to.x + to.width : to.x;
  const bend = Math.max(24, Math.min(60, Math.abs(y - y1) / 2));
  const kind = ["edge", node.chosen && "chosen", !node.chosen && node.fresh && "fresh"].filter(Boolean);
  return svg("path", {
    class: kind.join(" "),
    d: `M${x1},${y1} C${x1},${y1 + bend} ${right ? x2 + bend : x2 - bend},${y} ${x2},${y}`,
  });
}
