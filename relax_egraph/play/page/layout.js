// The places of classes and edges of an e-graph: layers of operands above layers of their users.

const CHAR = 7.25, ROW = 19, HEAD = 20, PAD = 8, GAP = 22, LAYER = 44, MOST = 46;

export { CHAR, HEAD, PAD, ROW };

// Classes as boxes with rows, by number; `width` and `height` are those of the whole.  A layer that
// is wider than `most` becomes several.
export function layout(classes, label, most) {
  const boxes = new Map(classes.map((c) => [c.class, box(c, label)]));
  const wide = layered(classes, boxes);
  order(wide, boxes);
  const layers = wide.flatMap((layer) => cutIn(layer, most));
  let y = GAP, width = 0;
  for (const layer of layers) {
    let x = GAP;
    for (const b of layer) {
      Object.assign(b, { x, y });
      x += b.width + GAP;
    }
    width = Math.max(width, x);
    y += Math.max(...layer.map((b) => b.height)) + LAYER;
  }
  for (const layer of layers) settle(layer, boxes, width);
  return { boxes, width, height: y };
}

function box(c, label) {
  const rows = c.nodes.map((node) => ({ node, text: cut(label.node(node)) }));
  if (c.more) rows.push({ node: null, text: `… ${c.more} more` });
  const wide = Math.max(
    label.class(c.class).length + label.about(c).length + 3,
    ...rows.map((row) => row.text.length + 2 + (row.node?.fresh ? row.node.rule.length + 2 : 0)),
  );
  return { c, rows, width: wide * CHAR + 2 * PAD, height: HEAD + rows.length * ROW + PAD / 2, x: 0, y: 0 };
}

function cutIn(layer, most) {
  const parts = [[]];
  let width = 0;
  for (const b of layer) {
    if (parts.at(-1).length && width + b.width > most) {
      parts.push([]);
      width = 0;
    }
    parts.at(-1).push(b);
    width += b.width + GAP;
  }
  return parts;
}

function cut(text) {
  return text.length > MOST ? `${text.slice(0, MOST - 1)}…` : text;
}

// Each class is below the operands of its oldest node, so that the program keeps its place.
function layered(classes, boxes) {
  const depth = new Map();
  const of = (number) => {
    if (depth.has(number)) return depth.get(number);
    depth.set(number, 0); // until it is known: joined classes may be operands of each other
    const oldest = boxes.get(number).c.nodes.reduce((a, b) => (b.step < a.step ? b : a));
    const below = oldest.classes.filter((k) => boxes.has(k) && k !== number).map(of);
    depth.set(number, below.length ? 1 + Math.max(...below) : 0);
    return depth.get(number);
  };
  const layers = [];
  for (const c of classes) (layers[of(c.class)] ??= []).push(boxes.get(c.class));
  return layers.filter(Boolean);
}

// Fewer crossings: each class moves to the mean place of its neighbours, a few times.
function order(layers, boxes) {
  const neighbours = new Map([...boxes.keys()].map((c) => [c, new Set()]));
  for (const b of boxes.values()) {
    for (const { node } of b.rows) {
      for (const k of node?.classes ?? []) {
        if (!boxes.has(k) || k === b.c.class) continue;
        neighbours.get(b.c.class).add(k);
        neighbours.get(k).add(b.c.class);
      }
    }
  }
  const place = new Map();
  const write = (layer) => layer.forEach((b, k) => place.set(b.c.class, (k + 0.5) / layer.length));
  layers.forEach(write);
  for (let sweep = 0; sweep < 6; sweep += 1) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const mean = new Map(layer.map((b) => {
        const near = [...neighbours.get(b.c.class)].map((k) => place.get(k));
        return [b, near.length ? near.reduce((s, v) => s + v, 0) / near.length : place.get(b.c.class)];
      }));
      layer.sort((a, b) => mean.get(a) - mean.get(b));
      write(layer);
    }
  }
  for (const b of boxes.values()) b.near = [...neighbours.get(b.c.class)];
}

// Each class below or above its neighbours, as far as the others in its layer leave room.
function settle(layer, boxes, width) {
  const wanted = layer.map((b) => {
    const near = b.near.map((k) => boxes.get(k)).filter((n) => n.y < b.y);
    if (!near.length) return b.x;
    return near.reduce((sum, n) => sum + n.x + n.width / 2, 0) / near.length - b.width / 2;
  });
  const span = layer.reduce((sum, b) => sum + b.width + GAP, 0);
  let left = GAP, rest = span;
  layer.forEach((b, k) => {
    rest -= b.width + GAP;
    b.x = Math.max(left, Math.min(wanted[k], width - rest - b.width - GAP));
    left = b.x + b.width + GAP;
  });
  if (layer[0].y === GAP) {
    const shift = (width - left) / 2;
    for (const b of layer) b.x += Math.max(0, shift);
  }
}
