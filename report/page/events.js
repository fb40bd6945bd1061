// The events around the cursor, and a search among all of them.

const EVENTS_SHOWN = 15;

class EventList {
  /** @param {HTMLElement} host @param {Run} run @param {View} view */
  constructor(host, run, view) {
    this.run = run;
    this.view = view;
    this.search = /** @type {HTMLInputElement} */ (make("input", {
      type: "search",
      placeholder: "search events: a file, a function, segment_alloc, oom ...",
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
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.find(event.shiftKey ? -1 : 1);
    });
    table.addEventListener("wheel", (event) => {
      event.preventDefault();
      view.moveTo(view.state.moment + Math.sign(event.deltaY) * (event.shiftKey ? 20 : 1));
      view.follow();
    }, {passive: false});
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
   * What an event is about.
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
    const {run, view} = this;
    const {moment} = view.state;
    const first = Math.max(1, Math.min(moment - Math.floor(EVENTS_SHOWN / 2), run.last - EVENTS_SHOWN + 1));
    const rows = [];
    for (let at = first; at < first + EVENTS_SHOWN && at <= run.last; ++at) {
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
  }

  /** @param {number} step 1 or -1 */
  find(step) {
    const {run, view} = this;
    const text = this.search.value.trim().toLowerCase();
    if (text === "") return;
    const isMatch = (/** @type {string} */ name) => name.toLowerCase().includes(text);
    const kinds = run.kindNames.map(isMatch);
    const stacks = run.stacksWith(text);
    const texts = run.texts.map((name) => name !== "" && isMatch(name));
    const address = /^0x[0-9a-f]+$/.test(text) ? Number(text) : -1;
    for (let at = view.state.moment + step; at >= 1 && at <= run.last; at += step) {
      const event = at - 1;
      const kind = run.kind[event];
      const subject = run.subject[event];
      const isAlloc = kind === run.allocKind;
      const isOther = !isAlloc && kind !== run.freeKind && kind !== run.completedKind;
      if (kinds[kind] || (isAlloc && (stacks[run.stack[subject]] || run.address[subject] === address)) ||
          (isOther && (texts[run.otherText[subject]] || run.otherAddress[subject] === address))) {
        this.told.textContent = "";
        view.moveTo(at);
        if (isAlloc) view.select(subject);
        view.follow();
        return;
      }
    }
    this.told.textContent = step > 0 ? "no match after the cursor" : "no match before the cursor";
  }
}
