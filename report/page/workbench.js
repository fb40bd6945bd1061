// The part of a page that shows one device's run: chart, block map and tabs.

/** @type {[string, string][]} */
const TABS = [["who", "Who holds it"], ["allocation", "Block"], ["events", "Events"]];

const LEGEND_LETTERS = 48;
const READOUT_LETTERS = 60;  // of the name of a run

class Workbench {
  /**
   * @param {HTMLElement} section @param {any} device of the report @param {number} index
   * @param {Run} run
   */
  constructor(section, device, index, run) {
    const host = /** @type {HTMLElement} */ (section.querySelector(".workbench"));
    const more = /** @type {HTMLElement} */ (section.querySelector(".more"));
    this.run = run;
    this.device = device;
    this.noun = device.inventory && device.inventory.is_program ? "request" : "event";
    const overlays = this.namedCurves().map(([name, curve], i) => new Overlay(name, curve, run, `other-${i % 5}`));
    const view = this.view = new View(run, index, this.noun);
    this.ribbons = this.readRibbons();
    this.readout = make("div", {class: "readout", "aria-live": "polite"});
    this.statistics = make("p", {class: "statistics note"});
    const chartHost = make("div", {class: "timeline"});
    const bar = make("div", {class: "legend"});
    this.legend = make("div", {class: "legend colors"});
    const left = make("div", {class: "left"});
    const side = make("div", {class: "side"});
    if (run.last > 0) left.append(this.readout, chartHost, this.statistics);
    left.append(this.legend);
    host.append(bar, make("div", {class: run.last > 0 ? "first" : "first flat"}, left, side));
    this.chart = new Chart(chartHost, run, view, this.ribbons, overlays, this.readLimit());
    const coloring = () => this.chart.coloring;
    this.fillBar(bar, overlays);
    const map = make("div", {class: "blocks"});
    const flame = make("div", {class: "flame-host"});
    more.append(map, make("h3", {}, "Who holds it, by caller"), flame);
    const panels = this.addTabs(side);
    const tip = new Tip(run, view);
    this.map = new BlockMap(map, run, view, coloring);
    this.map.onHover = (place, event) => tip.ofPlace(place, event);
    this.chart.onHover = (place, event) => tip.ofPlace(place, event);
    this.chart.onColors = () => {
      this.map.draw();
      this.drawLegend();
    };
    new WhoTable(panels.who, run, view, coloring);
    new Flame(flame, run, view, coloring);
    const events = panels.events ? new EventList(panels.events, run, view) : null;
    new Details(panels.allocation, run, view);
    section.addEventListener("click", (event) => this.onLink(/** @type {HTMLElement} */ (event.target)));
    this.keys = keysOf(view, {
      search: () => {
        if (events === null) return;
        view.set({tab: "events"});
        requestAnimationFrame(() => events.search.focus());
      },
    });
    view.listen((_, changed) => {
      if (changed.has("moment") || changed.has("mark") || changed.has("axis")) this.drawReadout();
      if (changed.has("only")) this.pressLegend();
    });
    view.listenAtRest(["moment", "mark", "from", "to"], () => this.drawStatistics());
    this.drawReadout();
    this.drawStatistics();
    this.drawLegend();
  }

  /**
   * Follows a table's link to a moment, and to a block there.
   * @param {HTMLElement} target
   */
  onLink(target) {
    const {position, address} = target.dataset;
    if (position === undefined) return;
    const {run, view} = this;
    view.moveTo(run.momentAt(Number(position)));
    view.follow();
    const at = Number(address);
    const block = at === 0 ?
        undefined :
        run.stateAt(view.state.moment)
            .blocks.find((each) => run.address[each] <= at && at < run.address[each] + run.block[each]);
    view.selectOnly(block ?? -1);
    this.chart.stage.scrollIntoView({block: "center"});
  }

  /**
   * Returns phases that a written schedule marks, else those that were found, else steps; and modules.
   * @returns {Ribbons}
   */
  readRibbons() {
    const {device, run} = this;
    const upTo = (/** @type {{at: number, name: string}[]} */ begins) =>
        begins.map(({at, name}, i) => ({from: at, to: i + 1 < begins.length ? begins[i + 1].at : run.last + 1, name}));
    /** @param {Stretch[]} row neighbours of one name are one @param {(name: string) => string} nameOf */
    const joined = (row, nameOf) => {
      /** @type {Stretch[]} */
      const result = [];
      for (const {from, to, name} of row) {
        const last = result[result.length - 1];
        if (last && last.name === nameOf(name)) last.to = to;
        else result.push({from, to, name: nameOf(name)});
      }
      return result;
    };
    const marked =
        (device.page.phases ||
         []).map((/** @type {any} */ phase) => ({at: run.momentAt(Number(phase.position) - 1), name: phase.name}));
    const word = this.stepWord();
    const found = Array.from(run.phaseBegin, (begin, i) => ({
                                               at: run.momentAt(begin - 1),
                                               name: run.phaseNames[run.phase[i]] +
                                                   (run.step[i] > 0 && word ? `, ${word} ${run.step[i]}` : "")
                                             }));
    const steps = ((device.loop && device.loop.steps && device.loop.steps.begins) || []).map(Number);
    const counted = steps.map(
        (/** @type {number} */ at, /** @type {number} */ i) =>
            ({at: run.momentAt(at - 1), name: i + 1 < steps.length ? `${word || "step"} ${i + 1}` : ""}));
    const ribbons = [];
    if (marked.length > 0) ribbons.push([upTo(marked)]);
    else if (found.length > 1) ribbons.push([upTo(found), joined(upTo(found), (name) => name.replace(/^.*, /, ""))]);
    else if (counted.length > 0) ribbons.push([upTo(counted)]);
    const modules = this.readModules();
    if (modules.length > 0) {
      const depth = Math.max(...modules.map(({name}) => name.split(".").length));
      const prefix = (/** @type {number} */ length) => (/** @type {string} */ name) =>
          name.split(".").slice(0, length).join(".");
      ribbons.push(d3.range(depth, 0, -1).map((/** @type {number} */ length) => joined(modules, prefix(length))));
    }
    return ribbons;
  }

  /** Returns the name for the parts of the loop; "" if nothing repeats. */
  stepWord() {
    const {loop, categories} = this.device;
    if (categories && Number(categories.peak_step) > 0) return "step";
    if (!loop || !loop.steps || !Number(loop.steps.steps)) return "";
    return loop.steps.may_be_layers ? "part" : "step";
  }

  /** Returns the module that runs: that of what is allocated. */
  readModules() {
    const {run} = this;
    /** @type {Stretch[]} */
    const stretches = [];
    for (let i = run.startAllocations; i < run.size.length; ++i) {
      const last = stretches[stretches.length - 1];
      const name = run.modules[run.module[i]];
      if (last && last.name === name) continue;
      if (last) last.to = run.start[i];
      stretches.push({from: run.start[i], to: run.last + 1, name});
    }
    return stretches.some(({name}) => name !== "") ? stretches : [];
  }

  /** @returns {Limit} */
  readLimit() {
    const {device, run} = this;
    const oom = device.oom && device.oom.use ? device.oom : null;
    const card = Number(oom ? oom.use.capacity_bytes || 0 : device.capacity_bytes || 0);
    const outside = Math.max(0, Number(oom ? oom.use.outside_bytes || 0 : 0));
    const bytes = card - outside;
    const at = oom && run.last > 0 ? run.momentAt(Number(oom.event_index || 0)) : -1;
    const isOom = at > 0 && run.kind[at - 1] === run.oomKind;
    return {
      bytes,
      text: outside > 0 ?
          `limit ${formatSize(bytes)}: a card of ${formatSize(card)}, ${formatSize(outside)} outside PyTorch` :
          `limit ${formatSize(bytes)}`,
      at: isOom ? at : -1,
      by: (oom && oom.stack && oom.stack.summary) || "a request without a stack",
    };
  }

  /** @param {HTMLElement} bar @param {Overlay[]} overlays */
  fillBar(bar, overlays) {
    const {view, run, chart} = this;
    /** @type {Record<string, HTMLElement>} */
    const colors = {};
    const group = make("div", {class: "choices", role: "group", "aria-label": "coloured by"});
    for (const [by, text] of Object.entries(COLORINGS)) {
      if (by === "module" && run.modules.length < 2) continue;
      colors[by] = make("button", {type: "button", "data-color": by}, text);
      colors[by].addEventListener("click", () => view.setColor(/** @type {any} */ (by)));
      group.append(colors[by]);
    }
    const press = () => {
      for (const [by, button] of Object.entries(colors)) {
        button.setAttribute("aria-pressed", String(by === view.state.color));
      }
    };
    view.listen((_, changed) => {
      if (changed.has("color")) press();
    });
    press();
    bar.append(group);
    const button = (/** @type {string} */ text, /** @type {() => void} */ action) => {
      const element = make("button", {type: "button"}, text);
      element.addEventListener("click", action);
      return element;
    };
    const type = (/** @type {string} */ key) => () => this.keys[key](new KeyboardEvent("keydown", {key}));
    if (run.last > 0) {
      bar.append(button("whole run", type("Escape")), button("peak", type("p")));
      if (chart.ooms.length > 0) bar.append(button("out of memory", type("o")));
      bar.append(button("mark", type("m")));
    }
    bar.append(button("keys", toggleHelp));
    if (run.last > 0) bar.append(this.options(overlays));
  }

  /**
   * Adds the options that are seldom changed.
   * @param {Overlay[]} overlays
   */
  options(overlays) {
    const {view, run, chart} = this;
    const row = make("div", {class: "legend"});
    if (run.time) {
      const select = /** @type {HTMLSelectElement} */ (make(
          "select", {"data-choice": "along"}, make("option", {value: "event"}, "events"),
          make("option", {value: "time"}, "time")));
      select.value = view.state.axis;
      select.addEventListener("change", () => view.setAxis(/** @type {any} */ (select.value)));
      row.append(make("label", {}, "along ", select));
    }
    const add = (/** @type {string} */ key, /** @type {string} */ text, /** @type {string} */ swatch) => {
      const box = /** @type {HTMLInputElement} */ (make("input", {type: "checkbox", "data-series": key}));
      box.checked = chart.shown.has(key);
      box.addEventListener("change", () => {
        if (box.checked) chart.shown.add(key);
        else chart.shown.delete(key);
        chart.drawnKey = "";
        chart.drawn = false;
        chart.draw();
      });
      row.append(make("label", {}, box, swatch ? make("span", {class: "swatch " + swatch}) : "", text));
    };
    for (const figure of FIGURES)
      if (figure !== "active") add(figure, figure, figure);
    overlays.forEach((overlay, i) => add("other" + i, overlay.name, overlay.color));
    add("marks", "phases, modules, segments", "");
    const slider = /** @type {HTMLInputElement} */ (
        make("input", {type: "range", min: 0, max: 32, step: 1, "aria-label": "smallest block drawn separately"}));
    const told = make("span", {class: "nowrap"});
    const tell = () =>
        void (told.textContent = view.state.least > 0 ? `blocks from ${formatSize(view.state.least)}` : "every block");
    slider.value = view.state.least > 0 ? String(Math.log2(view.state.least)) : "0";
    slider.addEventListener("input", () => {
      view.set({least: slider.value === "0" ? 0 : 2 ** Math.max(9, Number(slider.value))});
      tell();
    });
    tell();
    row.append(make("label", {}, "detail ", slider, told));
    return make("details", {class: "options"}, make("summary", {}, "options"), row);
  }

  /** @param {HTMLElement} side */
  addTabs(side) {
    const {view} = this;
    const list = make("div", {class: "tabs", role: "tablist"});
    side.append(list);
    /** @type {Record<string, HTMLElement>} */
    const panels = {};
    /** @type {Record<string, HTMLElement>} */
    const tabs = {};
    for (const [name, title] of TABS) {
      if (name === "events" && this.run.last === 0) continue;
      const tab = tabs[name] = make("button", {type: "button", role: "tab", "data-tab": name}, title);
      tab.addEventListener("click", () => view.set({tab: name}));
      list.append(tab);
      panels[name] = make("div", {class: "panel " + name, role: "tabpanel"});
      side.append(panels[name]);
    }
    if (!Object.hasOwn(panels, view.state.tab)) view.state.tab = "who";
    const show = () => {
      for (const name of Object.keys(panels)) {
        panels[name].hidden = name !== view.state.tab;
        tabs[name].setAttribute("aria-selected", String(name === view.state.tab));
      }
    };
    view.listen((_, changed) => {
      if (changed.has("tab")) show();
    });
    show();
    return panels;
  }

  /**
   * Returns the runs that are drawn over this one, as the tables list them: under other settings, then with changes of
   * the script.
   * @returns {[string, any][]}
   */
  namedCurves() {
    const {page, advice} = this.device;
    const others = (page.others || [])
                       .map(
                           (/** @type {any} */ other) =>
                               ["reserved under " + (other.report.conf || "default settings"), other.curve]);
    const serving =
        (page.serving || [])
            .map(
                (/** @type {any} */ curve,
                 /** @type {number} */ i) => ["reserved with " + advice.rows[advice.serving_rows[i]].change, curve]);
    return [...others, ...serving];
  }

  drawReadout() {
    const {view, run} = this;
    const {moment, mark} = view.state;
    const item =
        (/** @type {string} */ name, /** @type {string} */ swatch, /** @type {number} */ bytes,
         /** @type {boolean} */ exact, /** @type {number} */ marked) =>
            make(
                "span", {class: "item"}, make("span", {class: "swatch " + swatch}),
                cutName(name, READOUT_LETTERS) + " ",
                make("b", {"data-series": name, "data-bytes": bytes}, (exact ? "" : "about ") + formatSize(bytes)),
                make("small", {}, exact ? ` ${formatCount(bytes)}` : ""),
                mark >= 0 ? make("small", {}, ` (${formatChange(bytes - marked)})`) : "");
    const items = FIGURES.map((figure) => item(figure, figure, run[figure][moment], true, run[figure][mark]));
    for (const overlay of this.chart.overlays) {
      if (overlay.moments.length === 0) continue;
      const at = overlay.at(moment);
      const before = overlay.at(mark);
      const exact =
          overlay.complete || (overlay.moments[at] === moment && (mark < 0 || overlay.moments[before] === mark));
      items.push(item(overlay.name, overlay.color, overlay.reserved[at], exact, overlay.reserved[before]));
    }
    const position = run.positionOf(moment);
    this.readout.replaceChildren(
        make(
            "span", {class: "item"},
            make("b", {class: "where", "data-position": position, "data-moment": moment}, view.momentName(moment)),
            this.placeName(moment)),
        ...items);
  }

  /**
   * Returns ", step 3: no memory for 2.00 GiB".
   * @param {number} moment
   */
  placeName(moment) {
    const {run, view} = this;
    let name = "";
    if (run.time && moment > 0) name += `, ${formatTime(run.time[moment - 1], 0)} after the first event`;
    for (const [row] of this.ribbons) {
      const {right} = d3.bisector((/** @type {Stretch} */ each) => each.from);
      const stretch = row[right(row, moment) - 1];
      if (stretch && stretch.name) name += ", " + stretch.name;
    }
    if (moment > 0 && run.kind[moment - 1] === run.oomKind)
      name += `: out of memory, ${formatSize(run.otherSize[run.subject[moment - 1]])}`;
    if (view.state.mark >= 0) name += `; marked: ${view.momentName(view.state.mark)}`;
    return name;
  }

  /** Shows what happens between the mark and the cursor, else in the visible range. */
  drawStatistics() {
    const {run, view} = this;
    const {moment, mark} = view.state;
    if (run.last === 0) return;
    const [from, to] = mark >= 0 ? [Math.min(mark, moment), Math.max(mark, moment)] :
                                   [view.momentAt(view.state.from), view.momentAt(view.state.to)];
    const sums = run.statisticsOf(from, to);
    const of = (/** @type {number} */ count, /** @type {string} */ noun, /** @type {number} */ bytes) =>
        `${formatCount(count)} ${noun}${count === 1 ? "" : "s"} of ${formatSize(bytes)}`;
    const where = mark >= 0 ? "From mark to cursor" : to - from >= run.last ? "In the whole run" : "In this part";
    this.statistics.dataset.range = `${from}-${to}`;
    this.statistics.textContent =
        `${where}: ${of(sums.allocations, "allocation", sums.allocated)}, ${of(sums.frees, "free", sums.freed)}, ${
            of(sums.segments, "segment",
               sums.obtained)} obtained; at most ${formatSize(sums.active)} active, ${view.momentName(sums.peak)}.`;
  }

  /** Shows the largest groups of the colouring; a click draws one of them alone. */
  drawLegend() {
    /** @type {Coloring} */
    const coloring = this.chart.coloring;
    const {view} = this;
    const {only} = view.state;
    const shown = coloring.by === "age" ? Array.from(coloring.names.keys()) :
                                          coloring.order.filter((group) => coloring.weight[group] > 0).slice(0, 12);
    if (only >= 0 && !shown.includes(only)) shown.push(only);
    this.legend.replaceChildren(...shown.map((group) => {
      const swatch = make("span", {class: "swatch"});
      swatch.style.background = cssOf(coloring.pixels[group]);
      const item = make(
          "button", {type: "button", class: "item", "data-group": group, "aria-pressed": String(group === only)},
          swatch, cutName(coloring.names[group], LEGEND_LETTERS));
      item.title = coloring.names[group];
      item.addEventListener("click", () => view.isolate(group));
      item.addEventListener("pointerenter", () => view.set({lit: group}));
      item.addEventListener("pointerleave", () => view.set({lit: -1}));
      return item;
    }));
  }

  /** Marks the group that is drawn alone. */
  pressLegend() {
    for (const item of this.legend.querySelectorAll("button")) {
      item.setAttribute("aria-pressed", String(Number(item.dataset.group) === this.view.state.only));
    }
  }
}
