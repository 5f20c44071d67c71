"use strict";
// Pointing at a kernel marks what it stands for; a class of the e-graph is drawn with its nodes.
// The place in the address says what is selected: #k3, #c0.17, or both, #k3&c0.17.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const panel = document.getElementById("panel");
  const picture = document.getElementById("picture");
  const input = document.getElementById("class-input");
  const byClass = new Map(data.egraph.map((c) => [c.class, c]));
  const byLine = new Map();
  const calls = new Map();
  let kept = null;

  root.classList.add("scripted");
  for (const line of document.querySelectorAll("[data-k]")) {
    for (const k of line.dataset.k.split(" ")) push(byLine, Number(k), line);
  }
  for (const line of document.querySelectorAll("[data-calls]")) push(calls, line.dataset.calls, line);

  function push(map, key, value) {
    if (!map.has(key)) map.set(key, []);
    map.get(key).push(value);
  }

  function make(tag, text, attributes = {}) {
    const svg = ["svg", "g", "rect", "path", "text", "a"].includes(tag) && attributes.svg;
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (name !== "svg") made.setAttribute(name, value);
    if (text !== null) made.textContent = text;
    return made;
  }

  function linesOf(k) {
    const kernel = data.kernels[k];
    return kernel ? [...(byLine.get(k) || []), ...(calls.get(kernel.calls) || [])] : [];
  }

  function mark(kernels, name) {
    for (const line of document.querySelectorAll("." + name)) line.classList.remove(name);
    for (const k of kernels) for (const line of linesOf(k)) line.classList.add(name);
  }

  function tell(kernels) {
    panel.replaceChildren();
    panel.hidden = kernels.length === 0;
    for (const k of kernels.slice(0, 4)) {
      const kernel = data.kernels[k];
      const said = make("p", null);
      said.append(make("a", String(k), { class: "k", href: "#k" + k }), " ", make("code", kernel.variable + " = " + kernel.calls),
        kernel.seconds === null ? "" : " · " + (kernel.seconds * 1e6).toPrecision(3) + " µs");
      for (const c of kernel.classes) said.append(" · ", make("a", "class c" + c, { href: "#c" + c }));
      panel.append(said, make("p", "stands for " + (kernel.replaces.join(", ") || "nothing that the source names")));
      if (kernel.rules) panel.append(make("p", "by " + (kernel.rules.join(" → ") || "no rule"), { class: "dim" }));
    }
    if (kernels.length > 4) panel.append(make("p", "and " + (kernels.length - 4) + " more", { class: "dim" }));
  }

  function show(kernels) {
    mark(kernels, "on");
    tell(kernels.length ? kernels : kept === null ? [] : [kept]);
  }

  function kernelsAt(target) {
    const line = target.closest && target.closest("[data-k]");
    return line ? line.dataset.k.split(" ").map(Number) : [];
  }

  function keep(k) {
    kept = k;
    mark(k === null ? [] : [k], "kept");
    show([]);
    for (const line of k === null ? [] : linesOf(k)) {
      const details = line.closest("details");
      if (details) details.open = true;
      const pane = line.closest(".code");
      if (pane && !pane.dataset.moved) { pane.scrollTop = line.offsetTop - pane.offsetTop - pane.clientHeight / 3; pane.dataset.moved = k; }
    }
    for (const pane of document.querySelectorAll(".code")) delete pane.dataset.moved;
  }

  // --- the picture of a class: its nodes on the left, the classes of their operands on the right

  const ROW = 20, WIDE = 430, GAP = 120;

  function short(text, most) { return text.length > most ? text.slice(0, most - 1) + "…" : text; }

  function box(c, x, y, rows) {
    const told = byClass.get(c);
    const link = make("a", null, { svg: 1, href: "#c" + c });
    const head = "c" + c + (told ? " " + (told.names.length ? told.names.join(", ") + "  " : "") + told.type : " (not in this page)");
    link.append(make("rect", null, { svg: 1, class: "box" + (told && told.chosen ? " made" : ""), x, y, width: WIDE, height: ROW * (rows + 1) + 6, rx: 5 }),
      make("text", short(head, 60), { svg: 1, x: x + 8, y: y + 15 }));
    return link;
  }

  function draw(c) {
    const told = byClass.get(c);
    picture.replaceChildren();
    if (!told) { picture.append(make("p", "Class c" + c + " is not among those of this page.", { class: "note" })); return; }
    const operands = [...new Set(told.nodes.flatMap((node) => node.classes))];
    const places = new Map();
    let y = 4;
    for (const k of operands) {
      const rows = byClass.has(k) ? Math.min(3, byClass.get(k).nodes.length) : 0;
      places.set(k, { y, rows });
      y += ROW * (rows + 1) + 16;
    }
    const height = Math.max(y, ROW * (told.nodes.length + 3)), x = WIDE + GAP;
    const svg = make("svg", null, { svg: 1, width: x + WIDE + 8, height, viewBox: "0 0 " + (x + WIDE + 8) + " " + height, role: "group", "aria-label": "Class c" + c });
    const edges = make("g", null, { svg: 1 });
    svg.append(edges, box(c, 4, 4, told.nodes.length + (told.more ? 1 : 0)));
    told.nodes.forEach((node, n) => {
      const made = told.chosen && n === 0, at = 4 + ROW * (n + 1) + 15;
      svg.append(make("text", (made ? "● " : "   ") + short(node.text, 58), { svg: 1, x: 12, y: at, "xml:space": "preserve" }));
      for (const k of new Set(node.classes)) {
        const to = places.get(k).y + 12, half = WIDE + GAP / 2;
        edges.append(make("path", null, { svg: 1, class: "edge" + (made ? " made" : ""), d: `M${WIDE + 4} ${at - 5} C${half} ${at - 5} ${half} ${to} ${x} ${to}` }));
      }
    });
    if (told.more) svg.append(make("text", "   and " + told.more + " more", { svg: 1, class: "dim", x: 12, y: 4 + ROW * (told.nodes.length + 1) + 15 }));
    for (const [k, place] of places) {
      const below = byClass.get(k);
      svg.append(box(k, x, place.y, place.rows));
      for (let n = 0; n < place.rows; n++) {
        const last = n === 2 && below.nodes.length > 3;
        const text = last ? "… " + (below.nodes.length - 2 + below.more) + " more" : (below.chosen && n === 0 ? "● " : "   ") + short(below.nodes[n].text, 56);
        svg.append(make("text", text, { svg: 1, class: "dim", x: x + 8, y: place.y + ROW * (n + 1) + 15, "xml:space": "preserve" }));
      }
    }
    picture.append(svg);
    const users = data.egraph.filter((other) => other.nodes.some((node) => node.classes.includes(c)));
    const used = make("figcaption", users.length ? "operand in " : "operand in none of these classes");
    for (const user of users.slice(0, 12)) used.append(make("a", "c" + user.class, { href: "#c" + user.class }), " ");
    if (users.length > 12) used.append("and " + (users.length - 12) + " more");
    picture.append(used);
    const maker = data.kernels.find((kernel) => kernel.classes.includes(c));
    if (maker) used.append(" · written by kernel ", make("a", String(maker.kernel), { class: "k", href: "#k" + maker.kernel }));
  }

  function select(c, move) {
    input.value = "c" + c;
    draw(c);
    if (move) picture.scrollIntoView({ block: "center" });
  }

  function follow(move) {
    const parts = decodeURIComponent(location.hash.slice(1)).split("&");
    const k = parts.map((part) => /^k(\d+)$/.exec(part)).find(Boolean);
    const c = parts.map((part) => /^c(\d+\.\d+)$/.exec(part)).find(Boolean);
    if (k && data.kernels[Number(k[1])]) {
      keep(Number(k[1]));
      if (move && !c) document.getElementById("k" + k[1]).scrollIntoView({ block: "center" });
    }
    if (c) select(c[1], move);
  }

  const list = document.getElementById("class-list");
  for (const c of data.egraph) list.append(make("option", c.names.join(", "), { value: "c" + c.class }));
  input.addEventListener("change", () => {
    const wanted = input.value.trim();
    const named = data.egraph.find((c) => "c" + c.class === wanted || c.names.includes(wanted));
    if (named) location.hash = "c" + named.class; else draw(wanted.replace(/^c/, ""));
  });
  document.addEventListener("mouseover", (event) => show(kernelsAt(event.target)));
  document.addEventListener("focusin", (event) => show(kernelsAt(event.target)));
  document.addEventListener("click", (event) => {
    const line = event.target.closest(".code [data-k]");
    if (!line || event.target.closest("a") || getSelection().toString()) return;
    const k = Number(line.dataset.k.split(" ")[0]);
    keep(kept === k ? null : k);
    try { history.replaceState(null, "", kept === null ? "#" : "#k" + k); } catch { /* a frame has no address */ }
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") keep(null); });
  addEventListener("hashchange", () => follow(true));
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
  if (data.egraph.length) select(data.egraph[0].class, false);
  follow(false);
})();
