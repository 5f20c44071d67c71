// Questions to the server.  A question of an older edit is given up, and so is its answer.

export class Asking {
  constructor(state) {
    this.state = state;
    this.tab = Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16)).join("");
    this.edit = 0;
    this.given = new AbortController();
  }

  // A new edit: what is asked from now on is about it.
  begin() {
    this.edit += 1;
    this.given.abort();
    this.given = new AbortController();
  }

  // The answer as data; null if there is a newer edit.  It has `ended` where there is none.
  async ask(kind, more = {}) {
    const edit = this.edit;
    const body = JSON.stringify({ tab: this.tab, edit, kind, ...this.state(), ...more });
    try {
      const response = await fetch("ask", {
        method: "POST", headers: { "Content-Type": "application/json" }, body, signal: this.given.signal,
      });
      const answer = response.ok ? await response.json() : { ended: (await response.text()).trim() };
      return edit === this.edit && !answer.outdated ? answer : null;
    } catch (problem) {
      if (edit !== this.edit) return null;
      return { ended: problem instanceof TypeError ? "the server does not answer" : String(problem) };
    }
  }
}
