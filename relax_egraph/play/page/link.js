// The state of the page as a fragment of its address, and back.

const KEYS = { program: "p", rules: "r", book: "b" };

export function fragment(state) {
  const short = Object.fromEntries(Object.entries(KEYS).map(([name, key]) => [key, state[name]]));
  const bytes = new TextEncoder().encode(JSON.stringify(short));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// The state in a fragment; null where it is none.
export function stateIn(text) {
  try {
    const bytes = atob(text.replace(/^#/, "").replaceAll("-", "+").replaceAll("_", "/"));
    const short = JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0))));
    if (typeof short.p !== "string" || typeof short.r !== "string") return null;
    return { program: short.p, rules: short.r, book: short.b !== false };
  } catch {
    return null;
  }
}
