// Words that complete what is typed: a list below the caret of an editor.

import { el } from "./dom.js";

const MOST = 8;
const WORD = /[^\s()";,[\]{}=+*/]+$/;

export class Completion {
  // `offers(before)` are the candidates where the text ends with `before`: words with details.
  constructor(place, area, offers) {
    this.area = area;
    this.offers = offers;
    this.id = `${place.id}-words`;
    this.list = el("ul", { class: "words", id: this.id, role: "listbox", "aria-label": "Completions", hidden: "" });
    area.setAttribute("aria-autocomplete", "list");
    area.setAttribute("aria-controls", this.id);
    area.addEventListener("blur", () => this.close());
    area.addEventListener("click", () => this.close());
    area.addEventListener("scroll", () => this.close());
    place.append(this.list);
    this.shown = [];
    this.chosen = 0;
  }

  get isOpen() {
    return this.shown.length > 0;
  }

  // After an input: words that begin with what is before the caret, then those that have it within.
  typed() {
    const { value, selectionStart: at } = this.area;
    const before = value.slice(0, at);
    this.word = WORD.exec(before)?.[0] ?? "";
    if (this.word.length < 2 || /^[^\s()";]/.test(value.slice(at))) return this.close();
    const wanted = this.word.toLowerCase();
    const places = this.offers(before.slice(0, at - this.word.length))
      .map((offer) => ({ offer, at: offer.word.toLowerCase().indexOf(wanted) }))
      .filter((one) => one.at >= 0 && one.offer.word !== this.word);
    places.sort((a, b) => Number(a.at > 0) - Number(b.at > 0));
    this.shown = places.slice(0, MOST).map((one) => one.offer);
    this.chosen = 0;
    this.draw();
  }

  // Whether a key was for the list.
  key(event) {
    if (!this.isOpen || event.isComposing) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.chosen = (this.chosen + step + this.shown.length) % this.shown.length;
      this.draw();
    } else if (event.key === "Tab" || event.key === "Enter") {
      this.accept(this.chosen);
    } else if (event.key === "Escape") {
      this.close();
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }

  accept(number) {
    const { word, rest = "" } = this.shown[number];
    const end = this.area.selectionStart;
    const begin = end - this.word.length;
    this.close();
    this.area.focus();
    this.area.setRangeText(word + rest, begin, end, "end");
    this.area.dispatchEvent(new Event("input"));
    this.close();
    const first = /^ (\S+)/.exec(rest);
    if (first) {
      const from = begin + word.length + 1;
      this.area.setSelectionRange(from, from + first[1].length);
    }
  }

  close() {
    this.shown = [];
    this.draw();
  }

  draw() {
    this.list.hidden = !this.isOpen;
    this.list.replaceChildren(...this.shown.map(({ word, detail = "" }, k) => el("li", {
      role: "option", id: `${this.id}-${k}`, "aria-selected": String(k === this.chosen),
      onmousedown: (event) => {
        event.preventDefault(); // the text area keeps the focus
        this.accept(k);
      },
    }, word, el("span", { class: "dim" }, detail))));
    if (!this.isOpen) return this.area.removeAttribute("aria-activedescendant");
    this.area.setAttribute("aria-activedescendant", `${this.id}-${this.chosen}`);
    const lines = this.area.value.slice(0, this.area.selectionStart - this.word.length).split("\n");
    this.list.style.setProperty("--line", lines.length);
    this.list.style.setProperty("--column", lines.at(-1).length);
    const { left, top } = this.area.getBoundingClientRect();
    this.list.style.setProperty("--left", `${left - this.area.scrollLeft}px`);
    this.list.style.setProperty("--top", `${top - this.area.scrollTop}px`);
  }
}
