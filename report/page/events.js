// The events around the cursor, and a search in all of them.

const EVENTS_SHOWN = 15;

class EventList {
  /** @param {HTMLElement} host @param {Run} run @param {View} view */
  constructor(host, run, view) {
    this.run = run;
    this.view = view;
    this.search = /** @type {HTMLInputElement} */ (make("input", {
      type: "search",
      placeholder: "search: a file, a function, segment_alloc, oom ...",
      "aria-label": "Search events; Enter moves to the next match, Shift+Enter to the previous one"
    }));
    this.told = make("span", {class: "note", "aria-live": "polite"});
    this.body = make("tbody", {});
    const table = make(
        "table", {class: "events"},
        make(
            "thead", {},
            make(
                "tr", {}, make("th", {class: "n"}, "at"), make("th", {}, "event"), make("th", {class: "n"}, "size"),
                make("th", {class: "address"}, "address"), make("th", {}, "by"))),
        this.body);
    host.append(make("div", {class: "row"}, this.search, this.told), make("div", {class: "scroll"}, table));
    /** @type {number[]} moments that match the search */
    this.hits = [];
    this.search.addEventListener("input", () => {
      this.hits = this.findAll();
      this.draw();
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.step(event.shiftKey ? -1 : 1);
    });
    this.body.addEventListener("click", (event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest("tr");
      if (!row || !row.dataset.moment) return;
      view.moveTo(Number(row.dataset.moment));
      view.select(Number(row.dataset.block));
      view.follow();
    });
    view.listen((_, changed) => {
      if (view.state.tab === "events" && (changed.has("moment") || changed.has("tab"))) this.draw();
    });
    if (view.state.tab === "events") this.draw();
  }

  /**
   * Returns what an event is about.
   * @param {number} event
   */
  describe(event) {
    const {run} = this;
    const kind = run.kind[event];
    const subject = run.subject[event];
    const name = run.kindNames[kind] || "?";
    if (kind === run.allocKind || kind === run.freeKind || kind === run.completedKind) {
      const stack = kind === run.allocKind ? run.stack[subject] : run.freeStack[subject];
      return {name, size: run.size[subject], address: run.address[subject], block: subject, stack, text: ""};
    }
    return {
      name,
      size: run.otherSize[subject],
      address: kind === run.oomKind ? -1 : run.otherAddress[subject],
      block: -1,
      stack: run.otherStack[subject],
      text: run.texts[run.otherText[subject]] || ""
    };
  }

  draw() {
    const {run, view, hits} = this;
    const {moment} = view.state;
    const isSearch = this.search.value.trim() !== "";
    const count = isSearch ? hits.length : run.last;
    const now = isSearch ? d3.bisectLeft(hits, moment) : moment - 1;
    const first = Math.max(0, Math.min(now - Math.floor(EVENTS_SHOWN / 2), count - EVENTS_SHOWN));
    const rows = [];
    for (let i = first; i < first + EVENTS_SHOWN && i < count; ++i) {
      const at = isSearch ? hits[i] : i + 1;
      const what = this.describe(at - 1);
      const label = what.text || (what.stack >= 0 ? run.labels[what.stack] : "");
      const isMark = what.text !== "";
      rows.push(make(
          "tr", {"data-moment": at, "data-block": what.block, class: at === moment ? "now" : ""},
          make("td", {class: "n"}, formatCount(run.positionOf(at))), make("td", {class: what.name}, what.name),
          make("td", {class: "n"}, isMark ? "" : formatSize(what.size)),
          make("td", {class: "address"}, isMark || what.address <= 0 ? "" : make("code", {}, formatHex(what.address))),
          make("td", {class: "label", title: label}, label.replace(/[^\s]*\//g, ""))));
    }
    this.body.replaceChildren(...rows);
    const found = formatCount(hits.length) + (hits.length === 1 ? " match" : " matches");
    if (!isSearch) this.told.textContent = "";
    else if (hits.length === 0) this.told.textContent = "no match";
    else this.told.textContent = hits[now] === moment ? `${formatCount(now + 1)} of ${found}` : found;
  }

  /** Finds the moments of all events that match the search. */
  findAll() {
    const {run} = this;
    const text = this.search.value.trim().toLowerCase();
    /** @type {number[]} */
    const hits = [];
    if (text === "") return hits;
    const isMatch = (/** @type {string} */ name) => name.toLowerCase().includes(text);
    const kinds = run.kindNames.map(isMatch);
    const stacks = run.stacksWith(text);
    const texts = run.texts.map((name) => name !== "" && isMatch(name));
    const address = /^0x[0-9a-f]+$/.test(text) ? Number(text) : -1;
    for (let event = 0; event < run.last; ++event) {
      const kind = run.kind[event];
      const subject = run.subject[event];
      const isAlloc = kind === run.allocKind;
      const isOther = !isAlloc && kind !== run.freeKind && kind !== run.completedKind;
      if (kinds[kind] || (isAlloc && (stacks[run.stack[subject]] || run.address[subject] === address)) ||
          (isOther && (texts[run.otherText[subject]] || run.otherAddress[subject] === address))) {
        hits.push(event + 1);
      }
    }
    return hits;
  }

  /**
   * Moves to the next match, and from the last to the first.
   * @param {number} by 1 or -1
   */
  step(by) {
    const {run, view, hits} = this;
    if (hits.length === 0) return;
    const {moment} = view.state;
    const next = by > 0 ? d3.bisectRight(hits, moment) : d3.bisectLeft(hits, moment) - 1;
    const at = hits[(next + hits.length) % hits.length];
    view.moveTo(at);
    if (run.kind[at - 1] === run.allocKind) view.set({selected: run.subject[at - 1]});
    view.follow();
    requestAnimationFrame(() => this.draw());
  }
}
