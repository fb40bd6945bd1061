// Who holds the memory at the cursor, or what is more and less there than at the mark.

/**
 * Live bytes by stack: those at a moment, less those at another.
 * @param {Run} run @param {number} moment @param {number} mark -1: none
 */
function bytesByStack(run, moment, mark) {
  const bytes = new Float64Array(run.labels.length);
  const count = new Float64Array(run.labels.length);
  const add = (/** @type {number} */ at, /** @type {number} */ sign) => {
    for (const block of run.stateAt(at).blocks) {
      bytes[run.stack[block]] += sign * run.block[block];
      count[run.stack[block]] += sign;
    }
  };
  add(moment, 1);
  if (mark >= 0) add(mark, -1);
  return {bytes, count};
}

/**
 * What is said above the table and the flame graph.
 * @param {View} view
 */
function whoseTitle(view) {
  const {run} = view;
  const {moment, mark} = view.state;
  if (run.last === 0) return `${formatSize(run.active[moment])} was active ${view.momentName(moment)}.`;
  if (mark < 0)
    return `${formatSize(run.active[moment])} is active ${
        view.momentName(moment)}. Press m to set a mark for comparison.`;
  const change = run.active[moment] - run.active[mark];
  return `${formatChange(change)} ${view.momentName(moment)} since the mark ${
      view.momentName(mark)}. Press M to remove the mark.`;
}

class WhoTable {
  /** @param {HTMLElement} host @param {Run} run @param {View} view */
  constructor(host, run, view) {
    this.run = run;
    this.view = view;
    this.search = /** @type {HTMLInputElement} */ (make(
        "input",
        {type: "search", placeholder: "filter stacks ...", "aria-label": "Only stacks that contain this text"}));
    this.title = make("p", {class: "note"});
    this.body = make("tbody", {});
    host.append(
        this.title, make("div", {class: "row"}, this.search),
        make(
            "div", {class: "scroll"},
            make(
                "table", {class: "who"},
                make(
                    "thead", {},
                    make(
                        "tr", {}, make("th", {class: "n"}, "bytes"), make("th", {class: "n"}, "blocks"),
                        make("th", {}, "stack"))),
                this.body)));
    this.search.addEventListener("input", () => this.draw());
    view.listenAtRest(["moment", "mark", "tab"], () => {
      if (view.state.tab === "who") this.draw();
    });
    if (view.state.tab === "who") this.draw();
  }

  draw() {
    const {run, view} = this;
    const {bytes, count} = bytesByStack(run, view.state.moment, view.state.mark);
    this.title.textContent = whoseTitle(view);
    const text = this.search.value.trim();
    const isShown = text === "" ? null : run.stacksWith(text);
    const rows =
        Array.from(bytes.keys())
            .filter((stack) => (bytes[stack] !== 0 || count[stack] !== 0) && (isShown === null || isShown[stack]));
    rows.sort((a, b) => Math.abs(bytes[b]) - Math.abs(bytes[a]) || a - b);
    const sum = rows.reduce((total, stack) => total + bytes[stack], 0);
    const most = Math.abs(bytes[rows[0]]) || 1;
    const cells = rows.slice(0, 200).map((stack) => {
      const cell = make("td", {class: bytes[stack] < 0 ? "n share less" : "n share"}, formatSize(bytes[stack]));
      cell.style.backgroundSize = 100 * Math.abs(bytes[stack]) / most + "% 16px";
      const frame = make("details", {}, make("summary", {}, run.tags[stack] || run.labels[stack]));
      frame.addEventListener("toggle", () => {
        if (frame.childElementCount === 1) frame.append(...frameList(run, stack));
      });
      return make(
          "tr", {"data-bytes": bytes[stack]}, cell, make("td", {class: "n"}, formatCount(count[stack])),
          make("td", {class: "label"}, frame));
    });
    const more = rows.length > 200 ?
        [make("tr", {}, make("td", {colspan: 3, class: "note"}, `and ${formatCount(rows.length - 200)} more stacks`))] :
        [];
    const total = make(
        "tr", {class: "total", "data-bytes": sum}, make("td", {class: "n"}, formatSize(sum)), make("td", {}),
        make("td", {}, text === "" ? "total" : "total of these"));
    this.body.replaceChildren(total, ...cells, ...more);
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
      // "train.py:12 step > einops.py:532 rearrange > aten::add, from ...": what follows the own frame.
      const words = (run.tags[stack] || label || "no stack recorded").replace(/, from .*/, "").split(" > ");
      for (const word of node > 0 ? words.slice(1) : words) step(word, false);
      return node;
    });
  }
}

/** A flame graph of what stacks hold. */
class Flame {
  /** @param {HTMLElement} host @param {Run} run @param {View} view */
  constructor(host, run, view) {
    this.host = host;
    this.run = run;
    this.view = view;
    this.title = make("p", {class: "note"});
    this.svg = d3.create("svg").attr("class", "flame");
    this.told = make("p", {class: "note", "aria-live": "polite"});
    const box = /** @type {HTMLInputElement} */ (make("input", {type: "checkbox", "data-choice": "frames"}));
    host.append(
        this.title, make("div", {class: "row"}, make("label", {}, box, " also show frames in libraries")),
        this.svg.node(), this.told);
    this.root = 0;  // the node that is as wide as the graph
    this.tree = new CallTree(run, false);
    box.addEventListener("change", () => {
      this.root = 0;
      this.tree = new CallTree(run, box.checked);
      this.draw();
    });
    view.listenAtRest(["moment", "mark", "tab"], () => {
      if (view.state.tab === "flame") this.draw();
    });
    new ResizeObserver(() => {
      if (view.state.tab === "flame") this.draw();
    }).observe(host);
  }

  draw() {
    const {run, view} = this;
    const {parent, leaf, names, isOwn, children} = this.tree;
    const width = Math.max(240, this.host.clientWidth);
    const {bytes} = bytesByStack(run, view.state.moment, view.state.mark);
    // What is more and what is less must not cancel out in the widths.
    const net = new Float64Array(parent.length);
    const gross = new Float64Array(parent.length);
    bytes.forEach((sum, stack) => {
      net[leaf[stack]] += sum;
      gross[leaf[stack]] += Math.abs(sum);
    });
    for (let node = net.length - 1; node > 0; --node) {
      net[parent[node]] += net[node];
      gross[parent[node]] += gross[node];
    }
    if (gross[this.root] === 0) this.root = 0;
    this.title.textContent = whoseTitle(view);
    /** @type {{node: number, x: number, width: number, depth: number, folded: number}[]} */
    const boxes = [];
    const lay =
        (/** @type {number} */ node, /** @type {number} */ x, /** @type {number} */ wide,
         /** @type {number} */ depth) => {
          if (wide < 2) return;
          // Frames that are all as wide as the one that they call take one row together.
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
            (/** @type {any} */ box) =>
                (view.state.mark >= 0 ? (net[box.node] < 0 ? "less" : "more") :
                     isOwn[box.node]  ? "own" :
                                        "other"));
    groups.append("text").attr("x", 4).attr("y", 13).text(
        (/** @type {any} */ box) => box.width < 40 ?
            "" :
            (name(box.node) + (box.folded > 0 ? `  (in ${formatCount(box.folded)} more)` : ""))
                .slice(0, Math.floor((box.width - 6) / 6.6)));
    this.told.textContent = told(this.root);
  }
}

/**
 * "forward  train.py:12" of a frame with its whole path; other names as they are.
 * @param {string} frame
 */
function shortFrame(frame) {
  const [, file, name] = /^(?:.*[/\\])?([^/\\]*:\d+) (.*)$/.exec(frame) || [];
  return file ? `${name}  ${file}` : frame;
}
