// Tokens of rule files and of programs: [kind, text], which together are the whole text.

const RULES = /;[^\n]*|"(?:[^"\\]|\\.)*"?|[^\s()";]+|[()]|\s+/g;
const PROGRAM = /#[^\n]*|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[A-Za-z_][\w.]*|\d[\w.]*|\s+|[^]/g;
const NUMBER = /^-?(\d+(\.\d*)?([eE][-+]?\d+)?|inf)$/;
const WORDS = new Set(
  "def return with class if else for in as from import True False None and or not while".split(" "),
);

export class Vocabulary {
  // `names` by kind; `usages` by name: its arguments, and the sort of its result.
  constructor(names, usages) {
    this.usages = Object.entries(usages);
    this.kinds = new Map();
    for (const [kind, words] of Object.entries(names)) {
      for (const word of words) this.kinds.set(word, kind);
    }
  }

  rules(text) {
    return (text.match(RULES) ?? []).map((word) => [this.ruleKind(word), word]);
  }

  ruleKind(word) {
    if (word[0] === ";") return "comment";
    if (word[0] === '"') return "string";
    if (word[0] === ":") return "option";
    if (NUMBER.test(word)) return "number";
    return this.kinds.get(word) ?? "";
  }

  program(text) {
    return (text.match(PROGRAM) ?? []).map((word) => [this.programKind(word), word]);
  }

  // What may complete a word of a rule: after a parenthesis names with their arguments, else names.
  ofRules(before) {
    const applied = before.endsWith("(");
    return this.usages.map(([word, { args, result }]) => ({
      word, detail: ` ${args.join(" ")} → ${result}`, rest: applied && args.length ? ` ${args.join(" ")}` : "",
    }));
  }

  ofPrograms() {
    return this.usages.filter(([word]) => word.startsWith("R."))
      .map(([word, { args }]) => ({ word, detail: `(${args.join(", ")})` }));
  }

  programKind(word) {
    if (word[0] === "#") return "comment";
    if (word[0] === '"' || word[0] === "'") return "string";
    if (/^\d/.test(word)) return "number";
    if (WORDS.has(word)) return "keyword";
    return this.kinds.get(word) === "operator" ? "operator" : "";
  }
}
