// Shows what holds the memory at the cursor, or what was added and removed since the mark.

const ROWS_SHOWN = 200;
const LINES_SHOWN = 12;  // of a group

/**
 * Returns bytes and counts by a number of each entry: those at a moment, minus those at a mark.
 * @param {Coloring} coloring @param {ArrayLike<number>} numbers @param {number} count of numbers
 * @param {View} view @param {(entry: number) => boolean} [isCounted]
 */
function bytesBy(coloring, numbers, count, view, isCounted) {
  const bytes = new Float64Array(count);
  const entries = new Float64Array(count);
  const add = (/** @type {number} */ at, /** @type {number} */ sign) => {
    for (const entry of coloring.entriesAt(at)) {
      if (isCounted && !isCounted(entry)) continue;
      bytes[numbers[entry]] += sign * coloring.sizes[entry];
      entries[numbers[entry]] += sign;
    }
  };
  add(view.state.moment, 1);
  if (view.state.mark >= 0) add(view.state.mark, -1);
  return {bytes, entries};
}

/**
 * Returns the title of the table and the flame graph.
 * @param {View} view
 */
function whoseTitle(view) {
  const {run} = view;
  const {moment, mark} = view.state;
  const peak = moment === run.peak && run.last > 0 ? ", the peak" : "";
  if (mark < 0) {
    return `${formatSize(run.active[moment])} ${run.last === 0 ? "was" : "is"} active ${view.momentName(moment)}${
        peak}.`;
  }
  return `${formatChange(run.active[moment] - run.active[mark])} ${view.momentName(moment)} since the mark ${
      view.momentName(mark)}. Press M to remove the mark.`;
}

class WhoTable {
  /** @param {HTMLElement} host @param {Run} run @param {View} view @param {() => Coloring} coloring */
  constructor(host, run, view, coloring) {
    this.run = run;
    this.view = view;
    this.coloring = coloring;
    this.search = /** @type {HTMLInputElement} */ (make(
        "input",
        {type: "search", placeholder: "filter stacks ...", "aria-label": "Only stacks that contain this text"}));
    this.title = make("p", {class: "note"});
    this.body = make("tbody", {});
    host.append(
        this.title, make("div", {class: "row"}, this.search),
        make("table", {class: "who", "aria-label": "Bytes, blocks and who holds them"}, this.body));
    this.search.addEventListener("input", () => this.draw());
    this.body.addEventListener("pointerleave", () => view.set({lit: -1}));
    view.listen((_, changed) => {
      if (changed.has("hovered") || changed.has("only")) this.drawNow();
    });
    view.listenAtRest(["moment", "mark", "tab", "color"], () => {
      if (view.state.tab === "who") this.draw();
    });
    if (view.state.tab === "who") this.draw();
  }

  /** Marks the row of the block under the pointer, and that of the group that is drawn alone. */
  drawNow() {
    const {hovered, only} = this.view.state;
    const coloring = this.coloring();
    const group = hovered >= 0 && !coloring.isSegments ? coloring.group[hovered] : only;
    for (const row of this.body.querySelectorAll("tr[data-group]")) {
      row.classList.toggle("now", Number(/** @type {HTMLElement} */ (row).dataset.group) === group);
    }
  }

  draw() {
    const {run, view} = this;
    const coloring = this.coloring();
    const text = this.search.value.trim();
    const has = text === "" || coloring.isSegments ? null : run.stacksWith(text);
    const {bytes, entries} = bytesBy(
        coloring, coloring.group, coloring.names.length, view, has ? (entry) => has[run.stack[entry]] : undefined);
    this.title.textContent = whoseTitle(view);
    const rows = Array.from(bytes.keys()).filter((group) => bytes[group] !== 0 || entries[group] !== 0);
    rows.sort((a, b) => Math.abs(bytes[b]) - Math.abs(bytes[a]) || a - b);
    const sum = rows.reduce((total, group) => total + bytes[group], 0);
    const most = Math.abs(bytes[rows[0]]) || 1;
    const total = make(
        "tr", {class: "total", "data-bytes": sum}, make("td", {class: "n"}, formatSize(sum)),
        make("td", {class: "n"}, formatCount(rows.reduce((count, group) => count + entries[group], 0))),
        make("td", {}, "in all"));
    const more = rows.length > ROWS_SHOWN ?
        [make("tr", {}, make("td", {colspan: 3, class: "note"}, `and ${formatCount(rows.length - ROWS_SHOWN)} more`))] :
        [];
    this.body.replaceChildren(
        total, ...rows.slice(0, ROWS_SHOWN).map((group) => this.row(group, bytes[group], entries[group], most)),
        ...more);
    this.drawNow();
  }

  /** @param {number} group @param {number} bytes @param {number} count @param {number} most */
  row(group, bytes, count, most) {
    const {view} = this;
    const coloring = this.coloring();
    const cell = make("td", {class: bytes < 0 ? "n share less" : "n share"}, formatSize(bytes));
    cell.style.backgroundSize = 100 * Math.abs(bytes) / most + "% 16px";
    const swatch = make("span", {class: "swatch"});
    swatch.style.background = cssOf(coloring.pixels[group]);
    const name = make("button", {type: "button", class: "link", title: "show it alone"}, swatch, coloring.names[group]);
    name.addEventListener("click", () => view.isolate(group));
    const label = make("div", {}, name);
    if (!coloring.isSegments) {
      const inside = make("details", {}, make("summary", {"aria-label": "its stacks"}));
      inside.addEventListener("toggle", () => {
        if (inside.childElementCount === 1) inside.append(...this.stacksOf(group));
      });
      label.append(inside);
    }
    const row = make(
        "tr", {"data-bytes": bytes, "data-group": group}, cell, make("td", {class: "n"}, formatCount(count)),
        make("td", {class: "label"}, label));
    row.addEventListener("pointerenter", () => view.set({lit: group}));
    return row;
  }

  /**
   * Returns the stacks of a group with their frames, those that hold most first.
   * @param {number} group
   */
  stacksOf(group) {
    const {run, view} = this;
    const coloring = this.coloring();
    const {bytes} = bytesBy(coloring, run.stack, run.labels.length, view, (entry) => coloring.group[entry] === group);
    const stacks = Array.from(bytes.keys()).filter((stack) => bytes[stack] !== 0);
    stacks.sort((a, b) => Math.abs(bytes[b]) - Math.abs(bytes[a]) || a - b);
    if (stacks.length === 1) return frameList(run, stacks[0]);
    const parts = stacks.slice(0, LINES_SHOWN).map((stack) => {
      const frame = make(
          "details", {}, make("summary", {}, `${formatSize(bytes[stack])}  ${run.tags[stack] || run.labels[stack]}`));
      frame.addEventListener("toggle", () => {
        if (frame.childElementCount === 1) frame.append(...frameList(run, stack));
      });
      return frame;
    });
    const left = stacks.length - parts.length;
    return left > 0 ? [...parts, make("p", {class: "note"}, `and ${formatCount(left)} more stacks`)] : parts;
  }
}

/**
 * Stacks as a tree from the outermost frame inwards. Node 0 is everything; children come
 * after their parents.
 */
class CallTree {
  /** @param {Run} run @param {boolean} whole all frames, else the program's own and what the stack is called by */
  constructor(run, whole) {
    this.names = ["everything"];
    this.parent = [-1];
    this.isOwn = [false];
    /** @type {number[][]} */
    this.children = [[]];
    /** @type {Map<string, number>[]} */
    const known = [new Map()];
    this.leaf = run.labels.map((label, stack) => {  // of each stack
      let node = 0;
      const step = (/** @type {string} */ name, /** @type {boolean} */ isOwn) => {
        let child = known[node].get(name);
        if (child === undefined) {
          child = this.names.push(name) - 1;
          known[node].set(name, child);
          known.push(new Map());
          this.parent.push(node);
          this.isOwn.push(isOwn);
          this.children.push([]);
          this.children[node].push(child);
        }
        node = child;
      };
      const frames = run.stackFrames.subarray(run.stackBegin[stack], run.stackBegin[stack + 1]);
      for (let i = frames.length - 1; i >= 0; --i) {
        const isOwn = run.isOwn[frames[i]] !== 0;
        if (whole || isOwn) step(run.frames[frames[i]], isOwn);
      }
      if (whole && node > 0) return node;
      // In "train.py:12 step > einops.py:532 rearrange > aten::add, from ...", this is what follows the own frame.
      const words = (run.tags[stack] || label || "no stack recorded").replace(/, from .*/, "").split(" > ");
      for (const word of node > 0 ? words.slice(1) : words) step(word, false);
      return node;
    });
  }
}

/** A flame graph of what stacks hold. */
class Flame {
  /** @param {HTMLElement} host @param {Run} run @param {View} view @param {() => Coloring} coloring */
  constructor(host, run, view, coloring) {
    this.host = host;
    this.run = run;
    this.view = view;
    this.coloring = coloring;
    this.title = make("p", {class: "note"});
    this.svg = d3.create("svg").attr("class", "flame");
    this.told = make("p", {class: "note", "aria-live": "polite"});
    const box = /** @type {HTMLInputElement} */ (make("input", {type: "checkbox", "data-choice": "frames"}));
    host.append(
        this.title, make("div", {class: "row"}, make("label", {}, box, " also show frames in libraries")),
        this.svg.node(), this.told);
    this.root = 0;  // the node that is as wide as the graph
    /** @type {Coloring | undefined} where the chart shows segments */
    this.plain = undefined;
    this.tree = new CallTree(run, false);
    box.addEventListener("change", () => {
      this.root = 0;
      this.tree = new CallTree(run, box.checked);
      this.draw();
    });
    view.listenAtRest(["moment", "mark", "color", "only"], () => this.draw());
    new ResizeObserver(() => this.draw()).observe(host);
    this.draw();
  }

  /** Computes for each stack the bytes, and the colour of most of them. */
  weigh() {
    const {run, view} = this;
    const coloring = this.coloring();
    const blocks = coloring.isSegments ? this.plain ??= new Coloring(run, "category") : coloring;
    const {only} = view.state;
    const {bytes} = bytesBy(
        blocks, run.stack, run.labels.length, view,
        only >= 0 && blocks === coloring ? (entry) => blocks.group[entry] === only : undefined);
    const pixels = new Uint32Array(bytes.length);
    const most = new Float64Array(bytes.length);
    for (const block of run.stateAt(view.state.moment).blocks) {
      const stack = run.stack[block];
      if (run.block[block] <= most[stack]) continue;
      most[stack] = run.block[block];
      pixels[stack] = blocks.pixelOf(block);
    }
    return {bytes, pixels};
  }

  draw() {
    const {view} = this;
    const {parent, leaf, names, isOwn, children} = this.tree;
    const width = Math.max(240, this.host.clientWidth);
    const {bytes, pixels} = this.weigh();
    // Increases and decreases must not cancel out in the widths.
    const net = new Float64Array(parent.length);
    const gross = new Float64Array(parent.length);
    const pixel = new Uint32Array(parent.length);  // of what holds most below
    const most = new Float64Array(parent.length);
    const color = (/** @type {number} */ node, /** @type {number} */ bytes, /** @type {number} */ of) => {
      if (bytes <= most[node]) return;
      most[node] = bytes;
      pixel[node] = of;
    };
    bytes.forEach((sum, stack) => {
      net[leaf[stack]] += sum;
      gross[leaf[stack]] += Math.abs(sum);
      color(leaf[stack], sum, pixels[stack]);
    });
    for (let node = net.length - 1; node > 0; --node) {
      net[parent[node]] += net[node];
      gross[parent[node]] += gross[node];
      color(parent[node], most[node], pixel[node]);
    }
    if (gross[this.root] === 0) this.root = 0;
    this.title.textContent = whoseTitle(view);
    /** @type {{node: number, x: number, width: number, depth: number, folded: number}[]} */
    const boxes = [];
    const lay =
        (/** @type {number} */ node, /** @type {number} */ x, /** @type {number} */ wide,
         /** @type {number} */ depth) => {
          if (wide < 2) return;
          // Frames that are all as wide as the one that they call share one row.
          let shown = node;
          let folded = 0;
          for (let next = node; next >= 0;) {
            shown = next;
            next = children[shown].find((child) => wide * (1 - gross[child] / gross[shown]) < 2) ?? -1;
            if (next >= 0 && node > 0) ++folded;
            else if (node === 0 && folded === 0) break;
          }
          boxes.push({node: shown, x, width: wide, depth, folded});
          let at = x;
          for (const child of [...children[shown]].sort((a, b) => gross[b] - gross[a])) {
            const share = wide * gross[child] / gross[shown];
            lay(child, at, share, depth + 1);
            at += share;
          }
        };
    if (gross[this.root] > 0) lay(this.root, 0, width, 0);
    const height = 18 * (1 + Math.max(0, ...boxes.map((box) => box.depth)));
    this.svg.attr("width", width).attr("height", height);
    const name = (/** @type {number} */ node) => node === 0 ? names[0] : shortFrame(names[node]);
    const told = (/** @type {number} */ node) =>
        `${formatSize(net[node])} (${(100 * gross[node] / (gross[0] || 1)).toFixed(1)} %)  ${names[node]}`;
    const groups = this.svg.selectAll("g")
                       .data(boxes)
                       .join("g")
                       .attr("transform", (/** @type {any} */ box) => `translate(${box.x},${box.depth * 18})`)
                       .on("click",
                           (/** @type {any} */ box) => {
                             this.root = box.node === this.root ? 0 : box.node;
                             this.draw();
                           })
                       .on("mousemove", (/** @type {any} */ box) => void (this.told.textContent = told(box.node)));
    groups.selectAll("*").remove();
    groups.append("rect")
        .attr("width", (/** @type {any} */ box) => Math.max(1, box.width - 1))
        .attr("height", 17)
        .attr("rx", 2)
        .attr("data-bytes", (/** @type {any} */ box) => net[box.node])
        .attr(
            "class",
            (/** @type {any} */ box) => view.state.mark < 0 ? (isOwn[box.node] ? "own" : "other") :
                net[box.node] < 0                           ? "less" :
                                                              "more")
        .style(
            "fill", (/** @type {any} */ box) => view.state.mark >= 0 || box.node === 0 ? null : cssOf(pixel[box.node]));
    groups.append("text").attr("x", 4).attr("y", 13).text(
        (/** @type {any} */ box) => cutName(
            name(box.node) + (box.folded > 0 ? `  (in ${formatCount(box.folded)} more)` : ""),
            Math.floor((box.width - 8) / 6.6)));
    this.told.textContent = told(this.root);
  }
}

/**
 * Returns "forward  train.py:12" for a frame with its whole path; other names are unchanged.
 * @param {string} frame
 */
function shortFrame(frame) {
  const [, file, name] = /^(?:.*[/\\])?([^/\\]*:\d+) (.*)$/.exec(frame) || [];
  return file ? `${name}  ${file}` : frame;
}
