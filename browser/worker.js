// Runs memreplay in a worker, below emscripten's glue code: files go in, answers come out (exports.cc).

/** A session of memreplay. It is unusable after anything throws. */
class Program {
  /**
   * @param module the compiled program, a WebAssembly.Module
   * @param {(activity: string, done: number, total: number) => void} progress
   * @param memory a WebAssembly.Memory, or undefined for as much as 32 bits hold
   */
  static async start(module, progress, memory) {
    const program = new Program();
    program.wasm = await Memreplay({
      progress,
      ...(memory && {wasmMemory: memory}),
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(module, imports).then((instance) => done(instance, module));
        return {};
      },
    });
    return program;
  }

  /** Puts bytes where the next call finds them; `fill` writes into an array of `size` bytes. */
  put(which, size, fill) {
    const at = this.wasm._memreplay_room(which, size) >>> 0;
    fill(this.wasm.HEAPU8.subarray(at, at + size));
  }

  putText(text) {
    const bytes = new TextEncoder().encode(text);
    this.put(0, bytes.length, (room) => room.set(bytes));
  }

  part(which) {
    const at = this.wasm._memreplay_part(which) >>> 0;
    return this.wasm.HEAPU8.slice(at, at + (this.wasm._memreplay_part_size(which) >>> 0));
  }

  /** Returns the answer to the last question; `page` is empty unless there is one. */
  answer(status) {
    const text = (which) => new TextDecoder().decode(this.part(which));
    return {status, text: text(0), errors: text(1), page: this.part(2)};
  }

  offers() {
    this.wasm._memreplay_room(0, 0);
    return JSON.parse(new TextDecoder().decode(this.part(3)));
  }

  /** Reads a file of `size` bytes, which `fill` writes into an array. */
  add(name, size, fill) {
    this.put(1, size, fill);
    this.putText(name);
    this.wasm._memreplay_add();
  }

  /** @param question a Question (proto/question.proto) as an object */
  ask(question) {
    this.putText(JSON.stringify(question));
    return this.answer(this.wasm._memreplay_ask());
  }

  explain(name, size, fill) {
    this.put(1, size, fill);
    this.putText(name);
    return this.answer(this.wasm._memreplay_explain());
  }
}

if (typeof importScripts === "function") {
  let program;
  let told = 0;
  const tell = (activity, done, total) => {
    if (done > 0 && performance.now() - told < 100) return;
    told = performance.now();
    self.postMessage({activity, done, total});
  };
  // The file is copied in pieces, so that a large file is in memory only once.
  const reader = (name, file) => (room) => {
    const files = new FileReaderSync();
    const step = 1 << 24;
    for (let at = 0; at < file.size; at += step) {
      tell(`reading ${name}`, at, file.size);
      room.set(new Uint8Array(files.readAsArrayBuffer(file.slice(at, at + step))), at);
    }
    tell(`opening ${name}`, 0, 0);
  };
  const handlers = {
    async start({module}) {
      program = await Program.start(module, tell);
      return {offers: program.offers()};
    },
    add: ({name, file}) => program.add(name, file.size, reader(name, file)),
    ask: ({question, early}) => ({[early ? "early" : "answer"]: program.ask(question)}),
    explain: ({name, file}) => ({answer: program.explain(name, file.size, reader(name, file))}),
  };
  let queue = Promise.resolve();
  self.onmessage = ({data}) => {
    queue = queue.then(async () => {
      try {
        self.postMessage({done: data.call, ...await handlers[data.call](data)});
      } catch (error) { self.postMessage({failure: String(error.message || error)}); }
    });
  };
} else {
  module.exports = {Program};
}
