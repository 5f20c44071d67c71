// Starts `relax-egraph lsp` for rule files, and shows what its commands answer.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async (context) => {
  const settings = vscode.workspace.getConfiguration("relax-egraph");
  const imports = settings.get("import").flatMap((name) => ["--import", name]);
  const server = { command: settings.get("command"), args: ["lsp", ...imports] };
  const answers = vscode.window.createOutputChannel("relax-egraph: answers");
  const middleware = {
    executeCommand: async (command, args, next) => {
      const [, rule] = args;
      const title = `${command.replace("relax-egraph.", "")} ${rule}`;
      const location = vscode.ProgressLocation.Window;
      const text = await vscode.window.withProgress({ location, title }, () => next(command, args));
      if (text) {
        answers.appendLine(`${text}\n`);
        answers.show(true);
      }
      return text;
    },
  };
  const options = { documentSelector: [{ language: "egg" }], middleware };
  client = new LanguageClient("relax-egraph", "relax-egraph rules", server, options);
  context.subscriptions.push(answers);
  await client.start();
};

exports.deactivate = () => client?.stop();
