// Elements from data.  Text is never read as HTML: programs and rules are not trusted.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export function counted(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

export function duration(seconds) {
  if (seconds == null) return "";
  const [unit, size] = [["s", 1], ["ms", 1e-3], ["µs", 1e-6]].find(([, s]) => seconds >= s) ?? ["ns", 1e-9];
  return `${(seconds / size).toPrecision(3)} ${unit}`;
}
