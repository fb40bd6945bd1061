// The page: it sends files and questions to the worker (worker.js) and shows answers as they arrive.
"use strict";

const byId = (id) => document.getElementById(id);
const MAX_BYTES = 2 ** 31;  // of a file: a C++ string in 32 bits cannot be larger

const state = {
  files: [],  // {name, file}, in order
  log: null,  // the log to explain instead of asking about files
  worker: null,
  loaded: false,   // whether the worker has the files
  early: 2 ** 24,  // from this many bytes on, the content of the files is shown before the report
  urls: [],        // of the report in the frame and of what can be saved
};

const compiled = (async () => {
  const packed = Uint8Array.from(atob(byId("wasm").textContent.trim()), (c) => c.charCodeAt(0));
  const bytes = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(bytes).arrayBuffer());
})();
const workerUrl = URL.createObjectURL(new Blob([byId("worker").textContent], {type: "text/javascript"}));

function commandNow() { return document.querySelector("[name=command]:checked").value; }

function lines(text) { return text.split("\n").map((line) => line.trim()).filter(Boolean); }

/** Returns the question as proto/question.proto has it, with only what the command takes. */
function questionNow() {
  const command = commandNow();
  const takes = (id) => byId(id).closest("[data-of]").dataset.of.split(" ").includes(command);
  const question = {command};
  const confs = lines(byId("conf").value);
  if (takes("conf") && confs.length) {
    question.conf = ["oom", "replay"].includes(command) ? confs.slice(0, 1) : confs;
  }
  for (const id of ["capacity", "torch"]) {
    const value = byId(id).value.trim();
    if (takes(id) && value) question[id] = value;
  }
  if (takes("search") && byId("search").checked) question.search = true;
  return question;
}

function quoted(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`; }

/** Returns the command line that gives the same answer. */
function commandLine(question) {
  const words = ["memreplay", question.command];
  if (question.command === "explain") {
    words.push(state.log.name);
  } else {
    words.push(...state.files.map(({name}) => name));
  }
  if (question.command === "inspect") words.push("--deep");
  for (const conf of question.conf || []) words.push("--conf", conf);
  for (const id of ["capacity", "torch"]) {
    if (question[id]) words.push(`--${id}`, question[id]);
  }
  if (question.search) words.push("--search");
  if (question.command === "report") words.push("-o", pageName());
  return words.map(quoted).join(" ");
}

function pageName() {
  if (state.files.length > 1) return "job.html";
  const name =
      state.files[0].name.replace(/^.*\//, "").replace(/(\.(gz|zst|pickle|pkl|jsonl|json|txt|txtpb|pb))+$/, "");
  return `${name || "page"}.html`;
}

// Returns the report as a file. One that was made on a web server links to this
// page; a link to a disk would mean nothing to others.
function savedPage(page) {
  if (!/^https?:$/.test(location.protocol)) return page;
  const link = `<a href="${location.origin + location.pathname}">memreplay</a>`;
  const note = `<p class="note">Made in a browser, without installing anything, by ${link}.</p>`;
  return new TextDecoder().decode(page).replace("</footer>", () => `${note}\n</footer>`);
}

function show(id, visible) { byId(id).hidden = !visible; }

function stopWorker() {
  if (state.worker) state.worker.terminate();
  state.worker = null;
  state.loaded = false;
  show("working", false);
}

function fail(message) { byId("failure").textContent = message; }

function clear() {
  fail("");
  show("answer", false);
  showText("early", "");
  document.querySelector("iframe")?.remove();
  for (const url of state.urls.splice(0)) URL.revokeObjectURL(url);
  window.answered = null;
}

function failedInWorker(message, question) {
  stopWorker();
  if (/out of memory|allocat/i.test(message)) {
    fail(
        "This needs more than the 4 GiB of memory that a page in a browser can have. " +
        `The program can use all of the machine's: ${commandLine(question)}`);
  } else {
    fail(`The program in this page stopped: ${message}`);
  }
}

async function startWorker() {
  const worker = new Worker(workerUrl);
  state.worker = worker;
  worker.onmessage = ({data}) => {
    if (worker !== state.worker) return;
    if (data.failure !== undefined) return failedInWorker(data.failure, state.question);
    if (data.activity !== undefined) {
      const counted = data.done > 0 && data.total === 0;  // the length of a search is not known in advance
      byId("activity").textContent = data.activity + (counted ? `: ${data.done} replays done` : "");
      const bar = byId("progress");
      if (data.total > 0) {
        bar.max = data.total;
        bar.value = Math.min(data.done, data.total);
      } else {
        bar.removeAttribute("value");
      }
    }
    if (data.offers) offer(data.offers);
    if (data.early?.text) showText("early", data.early.text);
    if (data.answer) finish(data.answer);
  };
  worker.onerror = (event) => {
    if (worker === state.worker) failedInWorker(event.message, state.question);
  };
  const module = await compiled;
  if (worker === state.worker) worker.postMessage({call: "start", module});
  return worker === state.worker;
}

function offer({version, releases, cards}) {
  byId("version").textContent = version;
  if (byId("torch").options.length > 1) return;
  for (const release of [...releases].reverse()) byId("torch").add(new Option(release, release));
  byId("cards").append(...cards.map(({name, title}) => new Option(title, name)));
}

/** Asks what the controls select, about the files or the log. */
async function ask() {
  clear();
  const question = state.log ? {command: "explain"} : questionNow();
  const files = state.log ? [state.log] : state.files;
  state.question = question;
  const large = files.find(({file}) => file.size >= MAX_BYTES);
  if (large) {
    const size = (large.file.size / 2 ** 30).toFixed(1);
    fail(
        `${large.name} has ${size} GiB, and a page in a browser reads less than 2 GiB at once. ` +
        `The program reads it: ${commandLine(question)}`);
    return;
  }
  if (byId("working").hidden === false) stopWorker();  // the question that it is busy with is obsolete
  show("working", true);
  if (!state.worker && !await startWorker()) return;
  if (question.command === "explain") {
    state.worker.postMessage({call: "explain", ...files[0]});
    return;
  }
  if (!state.loaded) {
    for (const file of files) state.worker.postMessage({call: "add", ...file});
    state.loaded = true;
    const bytes = files.reduce((sum, {file}) => sum + file.size, 0);
    if (question.command === "report" && bytes >= state.early) {
      state.worker.postMessage({call: "ask", question: {...question, command: "inspect"}, early: true});
    }
  }
  state.worker.postMessage({call: "ask", question});
}

/** Shows each line by itself in an element, which an empty text hides; lines too long for a table wrap. */
function showText(id, text) {
  const longest = 100;
  show(id, text.length > 0);
  byId(id).replaceChildren(...text.trimEnd().split("\n").map((line) => {
    const shown = document.createElement("div");
    shown.textContent = line;
    shown.classList.toggle("prose", line.length > longest);
    return shown;
  }));
}

function showNames() {
  const sizes = state.files.map(({name, file}) => {
    const mebibytes = file.size / 2 ** 20;
    return `${name} (${mebibytes < 0.1 ? `${Math.ceil(file.size / 1024)} KiB` : `${mebibytes.toFixed(1)} MiB`})`;
  });
  const shown = sizes.slice(0, 8).join(", ") + (sizes.length > 8 ? ` and ${sizes.length - 8} more` : "");
  byId("names").textContent = `${shown}; drop others anywhere on this page`;
}

function finish(answer) {
  const {question} = state;
  // A file that is not a trace may be a log with an error.
  if (question.command === "report" && answer.status === 2 && state.files.length === 1 &&
      /: unknown format:/.test(answer.errors)) {
    state.log = state.files[0];
    state.refused = answer;
    document.querySelector("[value=explain]").checked = true;
    showControls();
    ask();
    return;
  }
  show("working", false);
  if (question.command === "explain" && answer.status === 2 && state.refused) answer = state.refused;
  fail(answer.errors.trim());
  const hasPage = answer.page.length > 0;
  showText("early", "");
  showText("text", hasPage ? "" : answer.text);
  byId("command").textContent = commandLine(question);
  const offered = (content) => {
    state.urls.push(URL.createObjectURL(new Blob([content], {type: hasPage ? "text/html" : "text/plain"})));
    return state.urls.at(-1);
  };
  const save = byId("save");
  save.href = offered(hasPage ? savedPage(answer.page) : answer.text);
  save.download = hasPage ? pageName() : `${question.command}.txt`;
  save.textContent = hasPage ? "Save the report" : "Save the text";
  save.hidden = !answer.text && !hasPage;
  if (hasPage) {
    const frame = document.createElement("iframe");
    frame.title = "report";
    frame.src = offered(answer.page);
    byId("answer").append(frame);
  }
  show("answer", true);
  window.answered = {question, answer};
}

function showControls() {
  const command = commandNow();
  for (const part of document.querySelectorAll("[data-of]")) {
    part.hidden = !part.dataset.of.split(" ").includes(command);
  }
  document.querySelector("[value=diff]").disabled = state.files.length !== 2;
  document.querySelector("[value=explain]").disabled = state.files.length > 1;
}

function take(list) {
  const files = [...list];
  if (!files.length) return;
  stopWorker();
  const names = files.map(({name}) => name);
  // Ranks often have files of the same name in folders of their own.
  state.files = files.map(
      (file, i) =>
          ({file, name: names.indexOf(file.name) === names.lastIndexOf(file.name) ? file.name : `${i}/${file.name}`}));
  state.log = null;
  state.refused = null;
  document.querySelector("[value=report]").checked = true;
  document.body.classList.add("asked");
  byId("paste").open = false;
  showNames();
  show("question", true);
  showControls();
  ask();
}

byId("files").onchange = ({target}) => take(target.files);
byId("explain").onclick = () => {
  const text = byId("message").value;
  if (!text.trim()) return;
  state.log = {name: "error.txt", file: new Blob([text])};
  state.refused = null;
  show("question", false);
  ask();
};
byId("question").onsubmit = (event) => {
  event.preventDefault();
  state.log = commandNow() === "explain" ? state.files[0] : null;
  state.refused = null;
  ask();
};
byId("commands").onchange = () => {
  showControls();
  byId("question").requestSubmit();
};
for (const id of ["capacity", "torch", "search"]) byId(id).onchange = () => byId("question").requestSubmit();
byId("cancel").onclick = () => {
  stopWorker();
  fail("Cancelled.");
};
byId("copy").onclick = async () => {
  const text = byId("command").textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {  // if the page is not allowed to copy, select it for the user
    getSelection().selectAllChildren(byId("command"));
    return;
  }
  byId("copy").textContent = "Copied";
  setTimeout(() => {
    byId("copy").textContent = "Copy";
  }, 2000);
};
addEventListener("dragover", (event) => {
  event.preventDefault();
  byId("drop").classList.add("over");
});
addEventListener("dragleave", () => byId("drop").classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  byId("drop").classList.remove("over");
  take(event.dataTransfer.files);
});
startWorker();
