// Everything that is known about one block, and a short form of it next to the pointer.

/** @param {Run} run @param {number} stack */
function frameList(run, stack) {
  const frames = run.stackFrames.subarray(run.stackBegin[stack], run.stackBegin[stack + 1]);
  const label = run.labels[stack] || "no stack recorded";
  const list = make("ol", {class: "frames"});
  const items = Array.from(frames, (frame) => make("li", {}, run.frames[frame]));
  // Frames of the user's own code are shown; several others in a row fold.
  const hasOwn = frames.some((frame) => run.isOwn[frame]);
  for (let i = 0; i < items.length;) {
    let end = i;
    while (hasOwn && end < items.length && !run.isOwn[frames[end]]) ++end;
    if (end > i + 1) {
      list.append(make(
          "li", {class: "folded"},
          make(
              "details", {}, make("summary", {}, `${formatCount(end - i)} frames in libraries`),
              make("ol", {class: "frames"}, ...items.slice(i, end)))));
    } else {
      list.append(items[i]);
      end = i + 1;
    }
    i = end;
  }
  return [make("p", {class: "stack"}, label), list];
}

class Details {
  /** @param {HTMLElement} host @param {Run} run @param {View} view */
  constructor(host, run, view) {
    this.host = host;
    this.run = run;
    this.view = view;
    this.shown = "";
    view.listen(() => this.draw());
    this.draw();
  }

  draw() {
    const {view, run, host} = this;
    if (view.state.tab !== "allocation") return;
    const block = view.state.selected >= 0 ? view.state.selected : view.state.hovered;
    const key = [block, view.state.moment, view.state.axis].join();
    if (key === this.shown || (block < 0 && this.shown !== "")) return;
    this.shown = key;
    if (block < 0) {
      host.replaceChildren(make(
          "p", {class: "note"},
          "Point at a band or a block to see its details; click to keep them here. " +
              "Press ? for a list of keys."));
      return;
    }
    const list = make("dl", {
      "data-block": block,
      "data-address": formatHex(run.address[block]),
      "data-size": run.block[block],
      "data-requested": run.size[block]
    });
    for (const [name, value] of this.facts(block))
      list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    host.replaceChildren(list, ...frameList(run, run.stack[block]));
    if (run.freeStack[block] !== NO_STACK && run.freeStack[block] !== run.stack[block]) {
      const label = run.labels[run.freeStack[block]];
      host.append(make(
          "details", {}, make("summary", {}, "freed by " + label),
          make("ol", {class: "frames"}, ...run.framesOf(run.freeStack[block]).map((frame) => make("li", {}, frame)))));
    }
  }

  /** @param {number} block @returns {[string, string | HTMLElement][]} */
  facts(block) {
    const {run, view} = this;
    const {moment} = view.state;
    const link = (/** @type {number} */ at, /** @type {string} */ text) => {
      const button = make("button", {type: "button", class: "link"}, text);
      button.addEventListener("click", () => {
        view.moveTo(at);
        view.follow();
      });
      return button;
    };
    const {start, freed, end} = run;
    const state = moment < start[block] ? "not yet allocated" :
        moment >= end[block]            ? "freed" :
        moment >= freed[block]          ? "freed, but other streams may still use it" :
                                          "allocated";
    /** @type {[string, string | HTMLElement][]} */
    const facts = [
      ["block", formatHex(run.address[block])],
      ["size", `${formatSize(run.block[block])} (${formatCount(run.block[block])} bytes)`],
      ["requested", `${formatCount(run.size[block])} bytes`],
      ["at the cursor", state],
      [
        "allocated",
        start[block] === 0 ? (run.last === 0 ? "not recorded" : "before the first event") :
                             link(start[block], view.momentName(start[block]))
      ],
    ];
    if (freed[block] <= run.last && freed[block] > 0)
      facts.push(["freed", link(freed[block], view.momentName(freed[block]))]);
    if (end[block] <= run.last && end[block] > freed[block] + 1)
      facts.push(["returned to the cache", link(end[block], view.momentName(end[block]))]);
    if (end[block] > run.last) facts.push(["freed", "not in this run"]);
    facts.push(["lives", view.lifeOf(block)], ["stream", run.streams[run.stream[block]] || "?"]);
    const category = run.categoryNames[run.category[block]];
    if (category) facts.splice(1, 0, ["category", category]);
    const module = run.modules[run.module[block]];
    if (module) facts.splice(2, 0, ["module", module]);
    const pool = run.pools[run.pool[block]];
    if (pool) facts.push(["pool", pool]);
    return facts;
  }
}

class Tip {
  /** @param {Run} run @param {View} view */
  constructor(run, view) {
    this.run = run;
    this.view = view;
    this.box = make("div", {class: "tip", role: "tooltip", hidden: ""});
    document.body.append(this.box);
  }

  /** @param {MouseEvent} event @param {string[]} lines */
  show(event, lines) {
    this.box.hidden = false;
    this.box.replaceChildren(...lines.map((line, i) => make(i === 0 ? "b" : "span", {}, line)));
    const {offsetWidth: width, offsetHeight: height} = this.box;
    const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
    const top = event.clientY + 16 + height > innerHeight ? event.clientY - 12 - height : event.clientY + 16;
    this.box.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  /** @param {number} block @param {MouseEvent} [event] */
  ofBlock(block, event) {
    this.box.hidden = block < 0 || !event;
    if (block < 0 || !event) return;
    const {run, view} = this;
    this.show(event, [
      `${formatSize(run.block[block])}  ${run.tags[run.stack[block]] || run.labels[run.stack[block]]}`,
      [run.categoryNames[run.category[block]], run.modules[run.module[block]], view.lifeOf(block)].filter(Boolean).join(
          ", ")
    ]);
  }

  /** @param {Place | null} place @param {MouseEvent} [event] */
  ofPlace(place, event) {
    if (!place || !event || place.block >= 0) {
      this.ofBlock(place ? place.block : -1, event);
      return;
    }
    const {ranges} = this.run;
    const isFree = place.size < ranges.size[place.range] || this.isFree(place);
    this.show(event, [
      isFree ? `${formatSize(place.size)} free` : `${formatSize(place.size)} segment`,
      `${formatHex(place.address)}, in ${ranges.groupName(this.run, place.range)}`
    ]);
  }

  /** @param {Place} place */
  isFree(place) {
    return !this.run.stateAt(this.view.state.moment)
                .blocks.some(
                    (block) => place.address <= this.run.address[block] &&
                        this.run.address[block] < place.address + place.size);
  }
}
