// node answers.js FOLDER [MIB] < CASES: puts the questions of each case to the page's binary, which lies in FOLDER as
// browser/build left it. A case is a line of JSON, {files: [{name, path}], ask: [question...], explain: boolean}, and
// its questions share a session.
// Prints one line for each question: {status, text, errors, page: base64, cpu: seconds}, or {thrown}. MIB: the memory
// that it may have.
"use strict";
const fs = require("fs");
const path = require("path");
const [folder, mebibytes] = process.argv.slice(2);
const {Program} = require(path.join(folder, "worker.js"));

async function main() {
  const module = await WebAssembly.compile(fs.readFileSync(path.join(folder, "memreplay.wasm")));
  const pages = (mib) => mib * 16;
  for (const line of fs.readFileSync(0, "utf8").trim().split("\n")) {
    const {files, ask, explain} = JSON.parse(line);
    const memory = mebibytes && new WebAssembly.Memory({initial: pages(16), maximum: pages(Number(mebibytes))});
    const program = await Program.start(module, () => {}, memory);
    const tell = (question) => {
      try {
        const before = process.cpuUsage();
        const answer = question();
        const {user, system} = process.cpuUsage(before);
        return {...answer, page: Buffer.from(answer.page).toString("base64"), cpu: (user + system) / 1e6};
      } catch (error) { return {thrown: error.message}; }
    };
    const contents = files.map((file) => ({name: file.name, bytes: fs.readFileSync(file.path)}));
    const fill = (bytes) => (room) => room.set(bytes);
    const print = (answer) => fs.writeSync(1, JSON.stringify(answer) + "\n");
    if (explain) {
      const [{name, bytes}] = contents;
      print(tell(() => program.explain(name, bytes.length, fill(bytes))));
      continue;
    }
    let failed = null;
    for (const {name, bytes} of contents) {
      try {
        program.add(name, bytes.length, fill(bytes));
      } catch (error) { failed ||= {thrown: error.message}; }
    }
    for (const question of ask) print(failed || tell(() => program.ask(question)));
  }
}
main();
