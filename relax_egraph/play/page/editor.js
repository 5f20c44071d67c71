// An editor: a text area over a copy of its text that is highlighted, with mistakes underlined.

import { Completion } from "./completion.js";
import { el } from "./dom.js";

export class Editor {
  // `tokens` of a text have kinds; `offers` complete a word; `changed` is called after an edit.
  constructor(place, label, tokens, offers, changed) {
    this.tokens = tokens;
    this.mistakes = [];
    this.copy = el("pre", { "aria-hidden": "true" });
    this.area = el("textarea", {
      "aria-label": label, spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off",
      oninput: () => {
        this.mistakes = [];
        this.draw();
        this.completion.typed();
        changed();
      },
      onscroll: () => this.scroll(),
      onkeydown: (event) => this.completion.key(event) || this.indent(event),
    });
    place.replaceChildren(this.copy, this.area);
    this.completion = new Completion(place, this.area, offers);
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.mistakes = [];
    this.draw();
  }

  // Underline mistakes: each has a start and an end, in characters of the text.
  underline(mistakes) {
    this.mistakes = mistakes;
    this.draw();
  }

  select(start, end) {
    this.area.focus();
    this.area.setSelectionRange(start, end);
  }

  // A new line is indented like the one before it.
  indent(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
    const before = this.text.slice(0, this.area.selectionStart);
    const margin = /[ \t]*/.exec(before.slice(before.lastIndexOf("\n") + 1))[0];
    if (!margin) return;
    event.preventDefault();
    this.area.setRangeText(`\n${margin}`, this.area.selectionStart, this.area.selectionEnd, "end");
    this.area.dispatchEvent(new Event("input"));
  }

  draw() {
    const pieces = [];
    let at = 0;
    for (const [kind, word] of this.tokens(this.text)) {
      pieces.push(...this.pieces(kind, word, at));
      at += word.length;
    }
    this.copy.replaceChildren(...pieces, "\n");
    this.scroll();
  }

  // A word, cut where a mistake begins or ends.
  *pieces(kind, word, at) {
    const cuts = new Set([0, word.length]);
    for (const { start, end } of this.mistakes) {
      for (const cut of [start - at, end - at]) if (cut > 0 && cut < word.length) cuts.add(cut);
    }
    const sorted = [...cuts].sort((a, b) => a - b);
    for (let k = 0; k + 1 < sorted.length; k += 1) {
      const [from, to] = [sorted[k], sorted[k + 1]];
      const wrong = this.mistakes.find((m) => m.start < at + to && at + from < m.end);
      const names = [kind && `t-${kind}`, wrong && "bad"].filter(Boolean).join(" ");
      const text = word.slice(from, to);
      yield names ? el("span", { class: names }, text) : text;
    }
  }

  scroll() {
    this.copy.scrollTop = this.area.scrollTop;
    this.copy.scrollLeft = this.area.scrollLeft;
  }
}
