// The part of a page that shows one device's run: chart, block map, and who, what, when.

/** @type {[string, string][]} */
const TABS = [["who", "What holds it"], ["flame", "Flame graph"], ["events", "Events"], ["allocation", "Block"]];

class Workbench {
  /**
   * @param {HTMLElement} section @param {any} device of the report @param {number} index
   * @param {Run} run
   */
  constructor(section, device, index, run) {
    const host = /** @type {HTMLElement} */ (section.querySelector(".workbench"));
    this.run = run;
    this.device = device;
    this.noun = device.inventory && device.inventory.is_program ? "request" : "event";
    const overlays =
        (device.page.others ||
         []).map((/** @type {any} */ other, /** @type {number} */ i) => new Overlay(other, run, `other-${i % 5}`));
    const view = this.view = new View(run, index, this.noun);
    this.stretches = this.readStretches();
    this.readout = make("div", {class: "readout", "aria-live": "polite"});
    this.help = make(
        "div", {class: "keys", hidden: ""},
        make(
            "dl", {},
            ...KEYS_TOLD.map(
                ([key, what]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)))));
    const chartHost = make("div", {class: "timeline"});
    const bar = make("div", {class: "legend"});
    this.legend = make("div", {class: "legend colors"});
    host.append(make("h3", {}, run.last > 0 ? "Active memory" : "Memory in use"), bar);
    if (run.last > 0) host.append(this.readout, chartHost);
    host.append(this.legend, this.help);
    this.chart = new Chart(chartHost, run, view, this.stretches, overlays);
    this.fillBar(bar, overlays);
    const map = make("div", {class: "blocks"});
    const side = make("div", {class: "side"});
    host.append(make("div", {class: "panes"}, map, side));
    const panels = this.addTabs(side);
    const tip = new Tip(run, view);
    this.map = new BlockMap(map, run, view, () => this.chart.coloring);
    this.map.onHover = (place, event) => tip.ofPlace(place, event);
    this.chart.onHover = (block, event) => tip.ofBlock(block, event);
    this.chart.onColors = () => {
      this.map.draw();
      this.drawLegend();
    };
    new WhoTable(panels.who, run, view);
    new Flame(panels.flame, run, view);
    const events = panels.events ? new EventList(panels.events, run, view) : null;
    new Details(panels.allocation, run, view);
    section.addEventListener("click", (event) => this.onLink(/** @type {HTMLElement} */ (event.target)));
    listenToKeys(section, view, {
      help: () => void (this.help.hidden = !this.help.hidden),
      search: () => {
        if (events === null) return;
        view.set({tab: "events"});
        requestAnimationFrame(() => events.search.focus());
      },
    });
    view.listen((_, changed) => {
      if (changed.has("moment") || changed.has("mark") || changed.has("axis")) this.drawReadout();
    });
    this.drawReadout();
    this.drawLegend();
  }

  /**
   * A table's link to a moment, and to a block there.
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
   * Phases that a program marks, else steps that were found.
   * @returns {Stretch[]}
   */
  readStretches() {
    const {device, run} = this;
    const phases =
        (device.page.phases ||
         []).map((/** @type {any} */ phase) => ({at: run.momentAt(Number(phase.position) - 1), name: phase.name}));
    const steps = ((device.loop && device.loop.steps && device.loop.steps.begins) || []).map(Number);
    const begins = phases.length > 0 ?
        phases :
        steps.map(
            (/** @type {number} */ at, /** @type {number} */ i) =>
                ({at: run.momentAt(at - 1), name: i + 1 < steps.length ? `step ${i + 1}` : ""}));
    return begins.map(
        (/** @type {any} */ begin, /** @type {number} */ i) =>
            ({from: begin.at, to: i + 1 < begins.length ? begins[i + 1].at : run.last + 1, name: begin.name}));
  }

  /** @param {HTMLElement} bar @param {Overlay[]} overlays */
  fillBar(bar, overlays) {
    const {view, run, chart} = this;
    /**
     * @param {string} label @param {[string, string][]} options @param {string} now
     * @param {(value: string) => void} action
     */
    const choose = (label, options, now, action) => {
      const select = /** @type {HTMLSelectElement} */ (make("select", {"data-choice": label}));
      for (const [value, text] of options) select.append(make("option", {value}, text));
      select.value = now;
      select.addEventListener("change", () => action(select.value));
      return make("label", {}, label + " ", select);
    };
    const colorings =
        Object.entries(COLORINGS).filter(([by]) => by !== "category" || run.tags.some((tag) => tag !== ""));
    bar.append(choose("colour", colorings, view.state.color, (value) => view.set({color: /** @type {any} */ (value)})));
    if (run.last > 0) {
      if (run.time)
        bar.append(choose(
            "along", [["event", "events"], ["time", "time"]], view.state.axis,
            (value) => view.setAxis(/** @type {any} */ (value))));
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
        bar.append(make("label", {}, box, swatch ? make("span", {class: "swatch " + swatch}) : "", text));
      };
      for (const figure of FIGURES)
        if (figure !== "active") add(figure, figure, figure);
      overlays.forEach((overlay, i) => add("other" + i, "reserved under " + overlay.name, overlay.color));
      add("marks", this.stretches.length > 0 ? "steps, segments" : "segments", "");
      const slider = /** @type {HTMLInputElement} */ (
          make("input", {type: "range", min: 0, max: 32, step: 1, "aria-label": "smallest block drawn separately"}));
      const told = make("span", {class: "nowrap"});
      const tell = () => void (
          told.textContent = view.state.least > 0 ? `blocks from ${formatSize(view.state.least)}` : "every block");
      slider.value = view.state.least > 0 ? String(Math.log2(view.state.least)) : "0";
      slider.addEventListener("input", () => {
        view.set({least: slider.value === "0" ? 0 : 2 ** Math.max(9, Number(slider.value))});
        tell();
      });
      tell();
      bar.append(make("label", {}, "detail ", slider, told));
    }
    const button = (/** @type {string} */ text, /** @type {() => void} */ action) => {
      const element = make("button", {type: "button"}, text);
      element.addEventListener("click", action);
      return element;
    };
    const press = (/** @type {string} */ key) => () =>
        this.chart.svg.node().dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    if (run.last > 0) {
      bar.append(
          button("whole run", press("Escape")), button("peak reserved", press("p")), button("peak active", press("a")));
      if (chart.ooms.length > 0) bar.append(button("out of memory", press("o")));
      bar.append(button("mark", press("m")));
    }
    bar.append(button("keys", press("?")));
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
    if (!(view.state.tab in panels)) view.state.tab = "who";
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

  drawReadout() {
    const {view, run} = this;
    const {moment, mark} = view.state;
    const item =
        (/** @type {string} */ name, /** @type {string} */ swatch, /** @type {number} */ bytes,
         /** @type {boolean} */ exact) =>
            make(
                "span", {class: "item"}, make("span", {class: "swatch " + swatch}), name + " ",
                make("b", {"data-series": name, "data-bytes": bytes}, (exact ? "" : "about ") + formatSize(bytes)),
                make("small", {}, exact ? ` ${formatCount(bytes)}` : ""),
                mark >= 0 && exact ?
                    make("small", {}, ` (${formatChange(bytes - /** @type {any} */ (run)[name][mark])})`) :
                    "");
    const items = FIGURES.map((figure) => item(figure, figure, run[figure][moment], true));
    for (const overlay of this.chart.overlays) {
      if (overlay.moments.length === 0) continue;
      const at = overlay.at(moment);
      items.push(item(
          "reserved under " + overlay.name, overlay.color, overlay.reserved[at],
          overlay.complete || overlay.moments[at] === moment));
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
   * ", step 3: no memory for 2.00 GiB"
   * @param {number} moment
   */
  placeName(moment) {
    const {run, view} = this;
    let name = "";
    if (run.time && moment > 0) name += `, ${formatTime(run.time[moment - 1], 0)} after the first event`;
    /** @type {Stretch | undefined} */
    const stretch = this.stretches.find((/** @type {Stretch} */ each) => each.from <= moment && moment < each.to);
    if (stretch && stretch.name) name += ", " + stretch.name;
    if (moment > 0 && run.kind[moment - 1] === run.oomKind)
      name += `: out of memory, ${formatSize(run.otherSize[run.subject[moment - 1]])}`;
    if (view.state.mark >= 0) name += `; marked: ${view.momentName(view.state.mark)}`;
    return name;
  }

  /** The largest groups of the colouring. */
  drawLegend() {
    /** @type {Coloring} */
    const coloring = this.chart.coloring;
    const shown = coloring.by === "age" ? Array.from(coloring.names.keys()) :
                                          coloring.order.filter((group) => coloring.weight[group] > 0).slice(0, 12);
    this.legend.replaceChildren(...shown.map((group) => {
      const swatch = make("span", {class: "swatch"});
      swatch.style.background = cssOf(coloring.pixels[group]);
      return make("span", {class: "item"}, swatch, coloring.names[group] || "none");
    }));
  }
}
