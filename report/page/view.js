// What a user looks at: one state that all parts of a device's page share. It is kept in the URL's hash, so that a view
// can be sent to somebody.

/**
 * @typedef {object} ViewState
 * @property {number} moment where the cursor is
 * @property {number} mark the other cursor; -1: none
 * @property {number} from what is shown, in units of the axis
 * @property {number} to
 * @property {number} low likewise, bytes
 * @property {number} high 0: up to the maximum
 * @property {number} selected allocation; -1: none
 * @property {number} hovered likewise
 * @property {keyof typeof COLORINGS} color
 * @property {number} only group of that colouring that is drawn; -1: all
 * @property {number} lit group that the pointer is on; -1: none
 * @property {"event" | "time"} axis
 * @property {number} least smaller blocks are drawn as one band
 * @property {string} tab
 */

class View {
  /** @param {Run} run @param {number} device its place on the page @param {string} noun of positions */
  constructor(run, device, noun) {
    this.run = run;
    this.noun = noun;
    this.device = device;
    /** @type {ViewState} */
    this.state = {
      moment: run.peak,
      mark: -1,
      from: 0,
      to: run.last + 1,
      low: 0,
      high: 0,
      selected: -1,
      hovered: -1,
      color: View.knowsCategories(run) ? "category" : "line",
      only: -1,
      lit: -1,
      axis: "event",
      least: 0,
      tab: "who",
    };
    /** @type {Set<(state: ViewState, changed: Set<string>) => void>} */
    this.listeners = new Set();
    /** @type {Set<string>} */
    this.changed = new Set();
    this.pending = false;
    this.frozen = false;  // a block was clicked: the pointer no longer moves the cursor
    /** @type {number | undefined} */
    this.saving = undefined;
    this.readHash();
  }

  /**
   * Returns whether the category is known for a third of what holds memory at the peak.
   * @param {Run} run
   */
  static knowsCategories(run) {
    const unknown = run.categoryNames.indexOf("unknown");
    let known = 0;
    for (const block of run.stateAt(run.peak).blocks) {
      if (run.category[block] !== unknown) known += run.block[block];
    }
    return 3 * known >= run.active[run.peak];
  }

  /** Returns the group that is highlighted; -1: none. */
  focus() { return this.state.lit >= 0 ? this.state.lit : this.state.only; }

  /** @param {keyof typeof COLORINGS} color */
  setColor(color) { this.set({color, only: -1, lit: -1}); }

  /**
   * Draws only one group, or all if it already does so.
   * @param {number} group
   */
  isolate(group) { this.set({only: group === this.state.only ? -1 : group, lit: -1}); }

  /**
   * Registers a listener that is called, at most once per frame, with what has changed.
   * @param {(state: ViewState, changed: Set<string>) => void} listener
   */
  listen(listener) { this.listeners.add(listener); }

  /** @param {Partial<ViewState>} fields */
  set(fields) {
    const state = /** @type {any} */ (this.state);
    for (const [name, value] of Object.entries(fields)) {
      if (state[name] === value) continue;
      state[name] = value;
      this.changed.add(name);
    }
    if (this.changed.size > 0 && !this.pending) {
      this.pending = true;
      requestAnimationFrame(() => this.tell());
    }
  }

  tell() {
    this.pending = false;
    const changed = this.changed;
    this.changed = new Set();
    for (const listener of this.listeners) listener(this.state, changed);
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.writeHash(), 250);
  }

  /**
   * Registers a listener that is called after nothing listed has changed for a moment, for work that takes longer than
   * a frame.
   * @param {string[]} names @param {() => void} listener
   */
  listenAtRest(names, listener) {
    /** @type {number | undefined} */
    let waiting;
    this.listen((_, changed) => {
      if (!names.some((name) => changed.has(name))) return;
      clearTimeout(waiting);
      waiting = setTimeout(listener, changed.has("tab") ? 0 : 60);
    });
  }

  /**
   * Moves the cursor, within the run.
   * @param {number} moment
   */
  moveTo(moment) { this.set({moment: Math.max(0, Math.min(moment, this.run.last))}); }

  /**
   * Selects a block, or none (-1), and keeps the cursor where it is.
   * @param {number} block
   */
  select(block) { this.selectOnly(block === this.state.selected ? -1 : block); }

  /** @param {number} selected a block, or none (-1) */
  selectOnly(selected) {
    this.frozen = selected >= 0;
    this.set(selected >= 0 ? {selected, tab: "allocation"} : {selected});
  }

  /**
   * Returns "at event 1,234".
   * @param {number} moment
   */
  momentName(moment) {
    if (this.run.last === 0) return "when the snapshot was taken";
    return moment === 0 ? `before the first ${this.noun}` :
                          `at ${this.noun} ${formatCount(this.run.positionOf(moment))}`;
  }

  /**
   * Returns how long a block exists: "12 events, 340 us".
   * @param {number} block
   */
  lifeOf(block) {
    const {run} = this;
    const end = Math.min(run.end[block], run.last);
    const events = run.positionOf(end) - Math.max(0, run.positionOf(run.start[block]));
    let text = `${formatCount(events)} ${this.noun}${events === 1 ? "" : "s"}`;
    if (run.time && run.last > 0) {
      const from = run.start[block] === 0 ? 0 : run.time[run.start[block] - 1];
      text += `, ${formatTime(run.time[Math.max(0, end - 1)] - from, 0)}`;
    }
    if (run.start[block] === 0) text = "since before the start, " + text;
    return run.end[block] > run.last ? text + ", to the end" : text;
  }

  // The methods below concern the axis: events, or microseconds.

  /** Returns the end of the axis. */
  extent() {
    return this.state.axis === "time" && this.run.time ? Math.max(1, this.run.time[this.run.last - 1]) :
                                                         this.run.last + 1;
  }

  /** @param {number} moment the one after the last is at the end of the axis */
  xOf(moment) {
    if (this.state.axis !== "time" || !this.run.time) return moment;
    return moment === 0 ? 0 : this.run.time[Math.min(moment, this.run.last) - 1];
  }

  /**
   * Returns the last moment at or before `x`.
   * @param {number} x
   */
  momentAt(x) {
    const {run} = this;
    if (this.state.axis !== "time" || !run.time) { return Math.max(0, Math.min(Math.floor(x), run.last)); }
    let low = 0;
    let high = run.last;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (run.time[middle - 1] <= x) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /**
   * Shows a range of the axis, limited to its extent.
   * @param {number} from @param {number} to
   */
  show(from, to) {
    const extent = this.extent();
    const width = Math.min(extent, Math.max(to - from, Math.min(extent, 8)));
    const start = Math.max(0, Math.min((from + to - width) / 2, extent - width));
    this.set({from: start, to: start + width});
  }

  /** @param {number} factor below 1: nearer @param {number} [around] a place on the axis */
  zoom(factor, around) {
    const {from, to, moment} = this.state;
    const cursor = this.xOf(moment);
    const middle = around ?? (cursor >= from && cursor <= to ? cursor : (from + to) / 2);
    this.show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  showAll() {
    this.set({low: 0, high: 0});
    this.show(0, this.extent());
  }

  /** Moves the range so that the cursor is visible. */
  follow() {
    const {from, to, moment} = this.state;
    const x = this.xOf(moment);
    if (x < from || x >= to) this.show(x - (to - from) / 2, x + (to - from) / 2);
  }

  /** @param {"event" | "time"} axis */
  setAxis(axis) {
    const from = this.state.from <= 0 ? 0 : this.momentAt(this.state.from);
    const to = this.state.to >= this.extent() ? this.run.last + 1 : this.momentAt(this.state.to);
    this.set({axis});
    this.show(this.xOf(from), this.xOf(to));
  }

  writeHash() {
    const {state} = this;
    const parts = [`device=${this.device}`, `at=${state.moment}`];
    if (state.mark >= 0) parts.push(`mark=${state.mark}`);
    if (state.axis !== "event") parts.push(`axis=${state.axis}`);
    if (state.from > 0 || state.to < this.extent()) {
      parts.push(`from=${+ state.from.toFixed(2)}`, `to=${+ state.to.toFixed(2)}`);
    }
    if (state.high > 0) parts.push(`low=${Math.round(state.low)}`, `high=${Math.round(state.high)}`);
    if (state.selected >= 0) parts.push(`block=${state.selected}`);
    if (state.least > 0) parts.push(`least=${state.least}`);
    parts.push(`color=${state.color}`, `tab=${state.tab}`);
    if (state.only >= 0) parts.push(`only=${state.only}`);
    history.replaceState(null, "", "#" + parts.join("&"));
  }

  readHash() {
    const fields = new URLSearchParams(location.hash.slice(1));
    if (Number(fields.get("device") ?? -1) !== this.device) return;
    const {state, run} = this;
    const number =
        (/** @type {string} */ name, /** @type {number} */ least, /** @type {number} */ most,
         /** @type {number} */ otherwise) => {
          const value = Number(fields.get(name) ?? NaN);
          return value >= least && value <= most ? value : otherwise;
        };
    if (fields.get("axis") === "time" && run.time) state.axis = "time";
    const extent = this.extent();
    state.moment = Math.round(number("at", 0, run.last, state.moment));
    state.mark = Math.round(number("mark", 0, run.last, -1));
    state.from = number("from", 0, extent, 0);
    state.to = number("to", state.from, extent, extent);
    state.low = number("low", 0, Number.MAX_SAFE_INTEGER, 0);
    state.high = number("high", state.low, Number.MAX_SAFE_INTEGER, 0);
    state.selected = Math.round(number("block", 0, run.size.length - 1, -1));
    state.least = number("least", 0, Number.MAX_SAFE_INTEGER, 0);
    const color = fields.get("color");
    if (color !== null && Object.hasOwn(COLORINGS, color)) {
      state.color = /** @type {keyof typeof COLORINGS} */ (color);
    }
    state.only = Math.round(number("only", 0, 1e6, -1));
    state.tab = fields.get("tab") || state.tab;
  }
}
