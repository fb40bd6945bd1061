// The timelines of a device's runs: an overview to choose a range in, the range, and
// what the figures are at one event.

const FIGURES = ["reserved", "active", "allocated", "requested"];
const MARGIN = {top: 24, right: 12, bottom: 34, left: 72};
const MAIN_HEIGHT = 300;
const OVERVIEW_HEIGHT = 44;

// Columns of numbers instead of strings.
function readCurve(curve) {
  const column = (name) => (curve[name] || []).map(Number);
  return {
    complete: curve.complete,
    position: column("position"),
    reserved: column("reserved_bytes"),
    active: column("active_bytes"),
    allocated: column("allocated_bytes"),
    requested: column("requested_bytes"),
    oomPosition: column("oom_position"),
    oomBytes: column("oom_bytes"),
    segmentPosition: column("segment_position"),
    segmentBytes: column("segment_bytes"),
    leftOutSegments: Number(curve.left_out_segments),
  };
}

class Timeline {
  // `host` is empty; `device` one of the report's devices, with events.
  constructor(host, device) {
    this.host = host;
    this.page = device.page;
    this.noun = device.inventory && device.inventory.is_program ? "request" : "event";
    this.base = readCurve(device.page.curve);
    this.others = (device.page.others || []).map((other, index) => ({
      name: other.report.conf || "default settings",
      curve: readCurve(other.curve),
      color: `other-${index % 5}`,
    }));
    this.phases = (device.page.phases || []).map(
        (phase) => ({position: Number(phase.position), name: phase.name}));
    const steps = device.loop && device.loop.steps ? device.loop.steps : {};
    this.steps = (steps.begins || []).map(Number);
    this.stepsSource = steps.source;
    // What is so after the last event is drawn one event wide.
    this.end = Math.max(1, Number(device.page.positions));
    this.domain = [0, this.end];
    this.shown = new Set(["reserved", "allocated"]);
    for (const figure of ["active", "requested"]) {
      if (this.differs(figure)) this.shown.add(figure);
    }
    this.others.forEach((_, index) => this.shown.add("other" + index));
    this.shown.add("marks");
    this.cursor = this.peakIndex();
    this.build();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(host);
  }

  // Whether a curve is, for most of the run, elsewhere than that of what is allocated.
  differs(figure) {
    const scale = d3.max(this.base.reserved) || 1;
    const distance = d3.median(this.base[figure],
                               (bytes, i) => Math.abs(bytes - this.base.allocated[i]));
    return distance > scale / 200;
  }

  peakIndex() {
    let peak = 0;
    this.base.reserved.forEach((bytes, i) => {
      if (bytes > this.base.reserved[peak]) peak = i;
    });
    return peak;
  }

  build() {
    const title = make("h3", {}, "Memory over the run");
    this.legend = make("div", {class: "legend"});
    const add = (key, text, colorName) => {
      const box = make("input", {type: "checkbox", "data-series": key});
      box.checked = this.shown.has(key);
      box.addEventListener("change", () => {
        if (box.checked) this.shown.add(key);
        else this.shown.delete(key);
        this.draw();
      });
      const swatch = make("span", {class: "swatch " + (colorName || "")});
      this.legend.append(make("label", {}, box, colorName ? swatch : "", text));
    };
    for (const figure of FIGURES) add(figure, figure, figure);
    this.others.forEach((other, index) => add("other" + index, "reserved under " + other.name,
                                              other.color));
    add("marks", this.phases.length || this.steps.length ? "phases, steps, segments" : "segments");
    this.svg = d3.create("svg").attr("tabindex", 0).attr("role", "img").attr("class", "chart")
        .attr("aria-label", "Timeline of memory. Arrow keys move along it, plus and minus zoom, " +
              "P goes to the peak, Escape shows the whole run.");
    const button = (text, action) => {
      const element = make("button", {type: "button"}, text);
      element.addEventListener("click", action);
      return element;
    };
    const buttons = make("div", {class: "buttons"},
        button("whole run", () => this.zoomTo([0, this.end])),
        button("around the peak", () => this.zoomAroundPeak()),
        button("zoom in", () => this.zoomBy(0.5)),
        button("zoom out", () => this.zoomBy(2)));
    this.readout = make("div", {class: "readout", "aria-live": "polite"});
    const hint = make("p", {class: "note"}, "Drag over the small chart to choose a range; " +
        (this.base.complete
            ? `every ${this.noun} is drawn.`
            : `of each stretch the highest, lowest and last values are drawn, at their exact ` +
              `${this.noun}s.`) +
        (this.base.leftOutSegments > 0
            ? ` ${formatCount(this.base.leftOutSegments)} smaller segment marks are left out.`
            : ""));
    this.host.append(title, this.legend, this.svg.node(), this.readout, buttons, hint);

    const id = "clip" + Timeline.count++;
    this.clip = this.svg.append("clipPath").attr("id", id).append("rect");
    this.bands = this.svg.append("g").attr("clip-path", `url(#${id})`);
    this.axisX = this.svg.append("g").attr("class", "axis");
    this.axisY = this.svg.append("g").attr("class", "axis");
    this.plot = this.svg.append("g").attr("clip-path", `url(#${id})`);
    this.marks = this.svg.append("g");
    this.line = this.svg.append("line").attr("class", "cursor");
    this.dot = this.svg.append("circle").attr("class", "cursor").attr("r", 4);
    this.overview = this.svg.append("g");
    this.overviewPath = this.overview.append("path").attr("class", "area reserved");
    this.overviewLive = this.overview.append("path").attr("class", "area allocated");
    this.brush = d3.brushX().on("end", () => {
      if (this.zooming) return;  // moved by zoomTo()
      const range = d3.event.selection;
      this.zoomTo(range === null ? [0, this.end] : range.map(this.whole.invert));
    });
    this.brushGroup = this.overview.append("g").attr("class", "brush");
    this.target = this.svg.append("rect").attr("class", "target");
    this.target.on("mousemove", () => {
      this.moveTo(this.nearest(this.x.invert(d3.mouse(this.svg.node())[0])));
    });
    this.svg.on("keydown", () => this.onKey(d3.event));
  }

  resize() {
    const width = Math.max(280, this.host.clientWidth);
    if (width === this.width) return;
    this.width = width;
    const right = width - MARGIN.right;
    const bottom = MARGIN.top + MAIN_HEIGHT;
    const overviewTop = bottom + MARGIN.bottom + 4;
    this.svg.attr("width", width).attr("height", overviewTop + OVERVIEW_HEIGHT + 4)
        .attr("viewBox", [0, 0, width, overviewTop + OVERVIEW_HEIGHT + 4]);
    this.clip.attr("x", MARGIN.left).attr("y", 0).attr("width", right - MARGIN.left)
        .attr("height", bottom);
    this.target.attr("x", MARGIN.left).attr("y", 0).attr("width", right - MARGIN.left)
        .attr("height", bottom);
    this.x = d3.scaleLinear().range([MARGIN.left, right]);
    this.y = d3.scaleLinear().range([bottom, MARGIN.top]);
    this.whole = d3.scaleLinear().domain([0, this.end]).range([MARGIN.left, right]);
    const height = d3.scaleLinear().domain([0, d3.max(this.base.reserved) || 1])
        .range([overviewTop + OVERVIEW_HEIGHT, overviewTop]);
    const points = d3.range(this.base.position.length).concat(-1);
    const area = (column) => d3.area().curve(d3.curveStepAfter)
        .x((i) => this.whole(i < 0 ? this.end : this.base.position[i])).y0(height(0))
        .y1((i) => height(column[i < 0 ? column.length - 1 : i]))(points);
    this.overviewPath.attr("d", area(this.base.reserved));
    this.overviewLive.attr("d", area(this.base.allocated));
    this.brush.extent([[MARGIN.left, overviewTop], [right, overviewTop + OVERVIEW_HEIGHT]]);
    this.brushGroup.call(this.brush);
    this.zoomTo(this.domain);
  }

  zoomTo([from, to]) {
    const least = Math.min(this.end, 4);
    let width = Math.max(to - from, least);
    width = Math.min(width, this.end);
    const middle = (from + to) / 2;
    from = Math.max(0, Math.min(middle - width / 2, this.end - width));
    this.domain = [from, from + width];
    const isWhole = width >= this.end;
    this.zooming = true;
    this.brushGroup.call(this.brush.move, isWhole ? null : this.domain.map(this.whole));
    this.zooming = false;
    this.draw();
  }

  zoomBy(factor) {
    const [from, to] = this.domain;
    const at = this.base.position[this.cursor];
    const middle = at >= from && at <= to ? at : (from + to) / 2;
    const width = (to - from) * factor;
    this.zoomTo([middle - width / 2, middle + width / 2]);
  }

  zoomAroundPeak() {
    this.cursor = this.peakIndex();
    const at = this.base.position[this.cursor] || 0;
    const width = Math.max(40, this.end / 20);
    this.zoomTo([at - width / 2, at + width / 2]);
  }

  // The point nearest to a position; of several there the last.
  nearest(position) {
    const all = this.base.position;
    const after = d3.bisectRight(all, position);
    if (after >= all.length) return all.length - 1;
    if (after === 0) return d3.bisectRight(all, all[0]) - 1;
    return position - all[after - 1] <= all[after] - position
        ? after - 1
        : d3.bisectRight(all, all[after]) - 1;
  }

  moveTo(index) {
    this.cursor = Math.max(0, Math.min(index, this.base.position.length - 1));
    this.drawCursor();
  }

  onKey(event) {
    const step = event.shiftKey ? 20 : 1;
    const actions = {
      ArrowLeft: () => this.moveTo(this.cursor - step),
      ArrowRight: () => this.moveTo(this.cursor + step),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.base.position.length - 1),
      "+": () => this.zoomBy(0.5),
      "=": () => this.zoomBy(0.5),
      "-": () => this.zoomBy(2),
      p: () => this.zoomAroundPeak(),
      P: () => this.zoomAroundPeak(),
      Escape: () => this.zoomTo([0, this.end]),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
    const at = this.base.position[this.cursor];
    if (at < this.domain[0] || at > this.domain[1]) {
      const half = (this.domain[1] - this.domain[0]) / 2;
      this.zoomTo([at - half, at + half]);
    }
  }

  // Indexes of the curve's points within the range, and one more on each side.
  visible(curve) {
    const from = Math.max(0, d3.bisectLeft(curve.position, this.domain[0]) - 1);
    const to = Math.min(curve.position.length, d3.bisectRight(curve.position, this.domain[1]) + 1);
    return d3.range(from, to);
  }

  // The curves to draw, those that cover others first.
  curves() {
    const all = [];
    for (const figure of FIGURES) {
      if (this.shown.has(figure)) {
        all.push({curve: this.base, column: this.base[figure], name: figure,
                  fill: figure === "reserved" || figure === "allocated"});
      }
    }
    this.others.forEach((other, index) => {
      if (!this.shown.has("other" + index)) return;
      all.push({curve: other.curve, column: other.curve.reserved, name: other.color, fill: false});
    });
    return all;
  }

  draw() {
    if (!this.x) return;
    this.x.domain(this.domain);
    const curves = this.curves().map((entry) => ({...entry, points: this.visible(entry.curve)}));
    const highest = d3.max(curves, (entry) => d3.max(entry.points, (i) => entry.column[i])) || 1;
    this.y.domain([0, highest * 1.06]);
    this.drawAxes(highest);
    this.plot.selectAll("path").remove();
    for (const {curve, column, name, fill, points} of curves) {
      // The last value holds until the end.
      const x = (i) => this.x(i < 0 ? this.end : curve.position[i]);
      const y = (i) => this.y(column[i < 0 ? column.length - 1 : i]);
      const upTo = points[points.length - 1] === column.length - 1 ? points.concat(-1) : points;
      if (fill) {
        this.plot.append("path").attr("class", "area " + name)
            .attr("d", d3.area().curve(d3.curveStepAfter).x(x).y0(this.y(0)).y1(y)(upTo));
      }
      this.plot.append("path").attr("class", "line " + name)
          .attr("d", d3.line().curve(d3.curveStepAfter).x(x).y(y)(upTo));
    }
    this.drawMarks();
    this.drawCursor();
  }

  drawAxes(highest) {
    const [left, right] = this.x.range();
    const [bottom] = this.y.range();
    let step = 1;
    while (highest / step > 6) step *= 2;
    this.axisY.attr("transform", `translate(${left},0)`)
        .call(d3.axisLeft(this.y).tickValues(d3.range(0, highest * 1.06, step))
            .tickFormat(formatSize).tickSize(-(right - left)).tickPadding(8));
    // No label runs out of the picture.
    const ticks = this.x.ticks(Math.max(2, (right - left) / 110)).filter((position) =>
        Number.isInteger(position) &&
        this.x(position) + 4 * formatCount(position).length < this.width);
    this.axisX.attr("transform", `translate(0,${bottom})`)
        .call(d3.axisBottom(this.x).tickValues(ticks).tickFormat(formatCount).tickPadding(7));
  }

  // Bands for phases or steps, with names where there is room; out of memory; segments.
  drawMarks() {
    this.bands.selectAll("*").remove();
    this.marks.selectAll("*").remove();
    const [bottom] = this.y.range();
    if (this.shown.has("marks")) {
      this.drawBands(bottom);
      this.base.segmentPosition.forEach((position, i) => {
        if (position < this.domain[0] || position > this.domain[1]) return;
        const bytes = this.base.segmentBytes[i];
        this.marks.append("line").attr("class", bytes > 0 ? "gained" : "given-back")
            .attr("x1", this.x(position)).attr("x2", this.x(position))
            .attr("y1", bottom - (bytes > 0 ? 8 : 5)).attr("y2", bottom);
      });
    }
    this.base.oomPosition.forEach((position) => {
      if (position < this.domain[0] || position > this.domain[1]) return;
      const x = this.x(position);
      this.marks.append("line").attr("class", "oom").attr("x1", x).attr("x2", x)
          .attr("y1", MARGIN.top - 6).attr("y2", bottom);
      this.marks.append("path").attr("class", "oom")
          .attr("d", `M${x - 6},${MARGIN.top - 16}h12l-6,11z`);
    });
  }

  drawBands(bottom) {
    const bands = this.phases.length > 0
        ? this.phases.map((phase, i) => ({
            from: phase.position, name: phase.name, odd: i % 2,
            to: i + 1 < this.phases.length ? this.phases[i + 1].position : this.end}))
        : this.steps.slice(0, -1).map((begin, i) => ({
            from: begin, name: `step ${i + 1}`, odd: i % 2, to: this.steps[i + 1]}));
    for (const band of bands) {
      if (band.to < this.domain[0] || band.from > this.domain[1]) continue;
      const from = Math.max(this.x(band.from), this.x.range()[0]);
      const to = Math.min(this.x(band.to), this.x.range()[1]);
      if (to - from < 2) continue;
      this.bands.append("rect").attr("class", band.odd ? "band odd" : "band").attr("x", from)
          .attr("y", MARGIN.top).attr("width", to - from).attr("height", bottom - MARGIN.top);
      if (to - from > 7 * band.name.length + 8) {
        this.bands.append("text").attr("x", from + 4).attr("y", MARGIN.top - 8).text(band.name);
      }
    }
  }

  // What a run has at a position: exactly, where it has a point there.
  at(curve, position) {
    const index = d3.bisectRight(curve.position, position) - 1;
    return {index: Math.max(0, index), exact: curve.complete || curve.position[index] === position};
  }

  drawCursor() {
    const position = this.base.position[this.cursor];
    const inside = position >= this.domain[0] && position <= this.domain[1];
    const x = this.x(position);
    const reserved = this.base.reserved[this.cursor];
    this.line.attr("x1", x).attr("x2", x).attr("y1", MARGIN.top)
        .attr("y2", this.y.range()[0]).attr("visibility", inside ? "visible" : "hidden");
    this.dot.attr("cx", x).attr("cy", this.y(reserved))
        .attr("visibility", inside && this.shown.has("reserved") ? "visible" : "hidden");
    const item = (name, colorName, bytes, exact) => make("span", {class: "item"},
        make("span", {class: "swatch " + colorName}), name + " ",
        make("b", {"data-series": name, "data-bytes": bytes},
             (exact ? "" : "about ") + formatSize(bytes)),
        make("small", {}, exact ? ` ${formatCount(bytes)}` : ""));
    const where = make("b", {class: "where", "data-position": position},
                       `${this.noun} ${formatCount(position)}`);
    const items = FIGURES.map(
        (figure) => item(figure, figure, this.base[figure][this.cursor], true));
    for (const other of this.others) {
      if (other.curve.position.length === 0) continue;
      const {index, exact} = this.at(other.curve, position);
      items.push(item("reserved under " + other.name, other.color, other.curve.reserved[index],
                      exact));
    }
    this.readout.replaceChildren(
        make("span", {class: "item"}, where, this.placeName(position)), ...items);
  }

  // ", decode, step 3"
  placeName(position) {
    let name = "";
    const phase = d3.bisectRight(this.phases.map((entry) => entry.position), position) - 1;
    if (phase >= 0) name += ", " + this.phases[phase].name;
    const step = d3.bisectRight(this.steps, position);
    if (this.stepsSource !== "marks" && step > 0 && step < this.steps.length) {
      name += ", step " + step;
    }
    const oom = this.base.oomPosition.indexOf(position);
    if (oom >= 0) name += `: no memory for ${formatSize(this.base.oomBytes[oom])}`;
    return name;
  }
}
Timeline.count = 0;
