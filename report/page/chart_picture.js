// How the chart is drawn, again and again: a call stays within one frame.

/** A run under other settings, drawn over this one. */
class Overlay {
  /** @param {any} other of the report @param {Run} run @param {string} color */
  constructor(other, run, color) {
    this.name = other.report.conf || "default settings";
    this.color = color;
    const column = (/** @type {string} */ name) => (other.curve[name] || []).map(Number);
    this.reserved = column("reserved_bytes");
    /** @type {number[]} */
    this.moments = column("position").map((/** @type {number} */ position) => run.momentAt(position));
    this.complete = other.curve.complete;
    this.most = Math.max(0, ...this.reserved);
  }

  /**
   * Index of its last point at a moment.
   * @param {number} moment
   */
  at(moment) { return Math.max(0, d3.bisectRight(this.moments, moment) - 1); }
}

const MARGIN = {
  top: 26,
  right: 14,
  bottom: 26
};
const FIGURES = /** @type {const} */ (["reserved", "active", "allocated", "requested"]);
const FRAME_MILLISECONDS = 2;  // for bands; the rest of a frame's 16 is the browser's

/** @typedef {{from: number, to: number, name: string}} Stretch of moments */

class ChartPicture {
  /** @param {Run} run @param {View} view @param {Stretch[]} stretches @param {Overlay[]} overlays */
  constructor(run, view, stretches, overlays) {
    this.run = run;
    this.view = view;
    this.stretches = stretches;
    this.overlays = overlays;
    this.bands = new Bands(run, view);
    this.coloring = new Coloring(run, view.state.color);
    const highest = (/** @type {MaxTree} */ tree) => tree.values[tree.find(0, run.last + 1)];
    this.most =
        Math.max(1, highest(run.reservedTree), highest(run.activeTree), ...overlays.map((overlay) => overlay.most));
    /** @type {Set<string>} */
    this.shown = new Set(["reserved", "marks", ...overlays.map((_, i) => "other" + i)]);
    /** @type {Map<string, MaxTree>} */
    this.trees = new Map([["reserved", run.reservedTree], ["active", run.activeTree]]);
    this.segments = this.momentsOf(run.segmentKinds);
    this.ooms = this.momentsOf([run.oomKind]);
    this.left = 70;
    this.width = 0;
    this.plotWidth = 0;
    this.plotHeight = 0;
    this.ratio = 1;
    this.drawnKey = "";  // of axes and marks
    this.drawn = false;  // the canvas shows what it should
    /** @type {Map<string, Float64Array>} the highest value of each column, by figure */
    this.columns = new Map();
    this.columnsKey = "";
    this.waiting = false;
    this.canvas = /** @type {HTMLCanvasElement} */ (make("canvas", {class: "bands"}));
    this.svg = d3.create("svg")
                   .attr("class", "chart")
                   .attr("tabindex", 0)
                   .attr("role", "img")
                   .attr(
                       "aria-label",
                       "Memory over the run. Arrow keys move the cursor from event to event, " +
                           "plus and minus zoom, question mark lists all keys.");
    const id = "clip" + view.device;
    const clipped = (/** @type {string} */ tag) => this.svg.append(tag).attr("clip-path", `url(#${id})`);
    this.clip = this.svg.append("clipPath").attr("id", id).append("rect");
    this.bounds = clipped("path").attr("class", "bound");
    this.names = clipped("g");
    this.axisX = this.svg.append("g").attr("class", "axis x");
    this.axisY = this.svg.append("g").attr("class", "axis y");
    this.outline = clipped("path").attr("class", "outline");
    this.marks = clipped("path").attr("class", "oom");
    this.between = clipped("rect").attr("class", "between");
    this.markLine = this.svg.append("line").attr("class", "cursor mark");
    this.cursorLine = this.svg.append("line").attr("class", "cursor");
    this.target = this.svg.append("rect").attr("class", "target");
    this.x = d3.scaleLinear();
    this.y = d3.scaleLinear();
  }

  /** @param {number[]} kinds of events that are not of allocations */
  momentsOf(kinds) {
    const {run} = this;
    return run.otherEvent.filter((event) => kinds.includes(run.kind[event])).map((event) => event + 1);
  }

  /** @param {keyof typeof COLORINGS} by */
  setColoring(by) {
    if (this.coloring.by === by) this.coloring.paint();
    else this.coloring = new Coloring(this.run, by);
  }

  /** @param {number} width of everything, in CSS pixels */
  setWidth(width) {
    this.width = width;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.left = width < 600 ? 58 : 70;
    this.plotWidth = width - this.left - MARGIN.right;
    this.plotHeight = width < 600 ? 240 : width < 1800 ? 340 : 480;
  }

  /** Bytes at the lower and the upper edge. */
  heights() {
    const {low, high} = this.view.state;
    return high > low ? {low, high} : {low: 0, high: this.most * 1.06};
  }

  draw() {
    const {from, to, axis, least} = this.view.state;
    const {low, high} = this.heights();
    this.x.domain([from, to]);
    this.y.domain([low, high]);
    const {canvas} = this;
    const done = this.bands.work(
        {from, to, low, high, axis, least, width: canvas.width, height: canvas.height}, this.coloring,
        FRAME_MILLISECONDS);
    const key = [from, to, low, high, axis, this.width].join();
    if (!done || !this.drawn || key !== this.drawnKey) this.drawCanvas(done);
    this.drawn = done;
    if (key !== this.drawnKey) {
      this.drawnKey = key;
      this.drawAxes();
      this.drawMarks();
      this.onRange();
    }
    this.drawOutline();
    this.drawCursors();
    if (!done && !this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.draw();
      });
    }
  }

  /**
   * Bands, as far as they are there, and lines.
   * @param {boolean} done
   */
  drawCanvas(done) {
    const {bands, ratio} = this;
    const {canvas} = this;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (this.shown.has("reserved")) this.drawLine(context, "reserved", true);
    const {picture} = bands;
    if (picture !== null && picture.axis === this.view.state.axis) {
      const x = (/** @type {number} */ at) => (this.x(at) - this.left) * ratio;
      const y = (/** @type {number} */ bytes) => (this.y(bytes) - MARGIN.top) * ratio;
      context.imageSmoothingEnabled = false;
      if (done) context.drawImage(bands.canvas, 0, 0);
      else
        context.drawImage(
            bands.canvas, x(picture.from), y(picture.high), x(picture.to) - x(picture.from),
            y(picture.low) - y(picture.high));
    }
    for (const figure of FIGURES)
      if (this.shown.has(figure)) this.drawLine(context, figure, false);
    this.overlays.forEach((overlay, i) => {
      if (this.shown.has("other" + i)) this.drawOverlay(context, overlay);
    });
    if (this.shown.has("marks")) {
      this.drawStretches(context);
      this.drawSegments(context);
    }
  }

  /**
   * A tick for each segment got from the driver (tall) or given back.
   * @param {CanvasRenderingContext2D} context
   */
  drawSegments(context) {
    const {run, view, ratio} = this;
    const {width, height} = this.canvas;
    const {from, to} = view.state;
    const end = d3.bisectRight(this.segments, view.momentAt(to));
    let before = [-1, -1];
    for (let i = d3.bisectLeft(this.segments, view.momentAt(from)); i < end; ++i) {
      const moment = this.segments[i];
      const gained = run.kind[moment - 1] === run.segmentKinds[0] || run.kind[moment - 1] === run.segmentKinds[2];
      const column = Math.floor((view.xOf(moment) - from) / (to - from) * width);
      if (column === before[+gained]) continue;
      before[+gained] = column;
      context.fillStyle = color(gained ? "text" : "requested");
      context.fillRect(column, height - (gained ? 8 : 5) * ratio, ratio, (gained ? 8 : 5) * ratio);
    }
  }

  /**
   * The highest value that each column of pixels stands for.
   * @param {typeof FIGURES[number]} figure
   */
  columnsOf(figure) {
    const {run, view} = this;
    const {from, to, axis} = view.state;
    const {width} = this.canvas;
    const key = [from, to, axis, width].join();
    if (key !== this.columnsKey) this.columns.clear();
    this.columnsKey = key;
    let columns = this.columns.get(figure);
    if (columns) return columns;
    let tree = this.trees.get(figure);
    if (!tree) this.trees.set(figure, tree = new MaxTree(run[figure]));
    columns = new Float64Array(width);
    const step = (to - from) / width;
    let first = view.momentAt(from);
    for (let column = 0; column < width; ++column) {
      const next = view.momentAt(from + (column + 1) * step);
      columns[column] = tree.values[tree.find(first, Math.max(first + 1, next))];
      first = next;
    }
    this.columns.set(figure, columns);
    return columns;
  }

  /**
   * The line of a figure, or the area under it.
   * @param {CanvasRenderingContext2D} context @param {typeof FIGURES[number]} figure @param {boolean} fill
   */
  drawLine(context, figure, fill) {
    const {width, height} = this.canvas;
    const {low, high} = this.heights();
    const scale = height / (high - low);
    context.beginPath();
    let before = NaN;
    const columns = this.columnsOf(figure);
    for (let column = 0; column < width; ++column) {
      const y = height - (columns[column] - low) * scale;
      if (y === before) continue;
      context.lineTo(column, before);
      context.lineTo(column, y);
      before = y;
    }
    context.lineTo(width, before);
    if (fill) {
      context.lineTo(width, height);
      context.lineTo(0, height);
      context.fillStyle = color(figure + "-fill");
      context.fill();
    } else {
      context.strokeStyle = color(figure);
      context.lineWidth = 1.5 * this.ratio;
      context.setLineDash(figure === "requested" ? [4 * this.ratio, 2 * this.ratio] : []);
      context.stroke();
      context.setLineDash([]);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Overlay} overlay */
  drawOverlay(context, overlay) {
    const {view, ratio} = this;
    const {from, to} = view.state;
    const first = overlay.at(view.momentAt(from));
    const last = Math.min(overlay.moments.length - 1, overlay.at(view.momentAt(to)) + 1);
    context.beginPath();
    for (let i = first; i <= last; ++i) {
      const x = (this.x(view.xOf(overlay.moments[i])) - this.left) * ratio;
      const y = (this.y(overlay.reserved[i]) - MARGIN.top) * ratio;
      if (i > first) context.lineTo(x, (this.y(overlay.reserved[i - 1]) - MARGIN.top) * ratio);
      context.lineTo(x, y);
      if (i === overlay.moments.length - 1) context.lineTo((this.x(view.extent()) - this.left) * ratio, y);
    }
    context.strokeStyle = color(overlay.color);
    context.lineWidth = 2 * ratio;
    context.setLineDash([7 * ratio, 3 * ratio]);
    context.stroke();
    context.setLineDash([]);
  }

  drawAxes() {
    const {view, run} = this;
    const [low, high] = this.y.domain();
    let step = 1;
    while ((high - low) / step > 6) step *= 2;
    this.axisY.attr("transform", `translate(${this.left},0)`)
        .call(d3.axisLeft(this.y)
                  .tickValues(d3.range(Math.ceil(low / step) * step, high, step))
                  .tickFormat(formatSize)
                  .tickSize(-this.plotWidth)
                  .tickPadding(8));
    const count = Math.max(2, this.plotWidth / 110);
    let ticks = [];
    let format = formatCount;
    if (view.state.axis === "time") {
      ticks = this.x.ticks(count);
      format = (/** @type {number} */ time) => formatTime(time, this.x.domain()[1] - this.x.domain()[0]);
    } else {
      const first = run.positionOf(view.momentAt(view.state.from));
      const last = run.positionOf(view.momentAt(view.state.to));
      ticks = d3.scaleLinear()
                  .domain([first, last])
                  .ticks(count)
                  .filter((/** @type {number} */ position) => Number.isInteger(position) && position >= 0)
                  .map((/** @type {number} */ position) => run.momentAt(position));
      format = (/** @type {number} */ moment) => formatCount(run.positionOf(moment));
    }
    const room = this.width - 4;
    ticks =
        ticks.filter((/** @type {number} */ at) => at >= view.state.from && this.x(at) + 4 * format(at).length < room);
    this.axisX.attr("transform", `translate(0,${MARGIN.top + this.plotHeight})`)
        .call(d3.axisBottom(this.x).tickValues(ticks).tickFormat(format).tickPadding(6));
  }

  /**
   * The stretches that are wide enough to be seen, with their edges on the screen.
   * @returns {{name: string, isOdd: boolean, begin: number, end: number}[]}
   */
  visibleStretches() {
    if (!this.shown.has("marks")) return [];
    const {view, stretches} = this;
    const [left, right] = this.x.range();
    const from = view.momentAt(view.state.from);
    const to = view.momentAt(view.state.to);
    const found = [];
    for (let i = Math.max(0, d3.bisector((/** @type {Stretch} */ each) => each.from).right(stretches, from) - 1);
         i < stretches.length && stretches[i].from <= to; ++i) {
      const begin = Math.max(this.x(view.xOf(stretches[i].from)), left);
      const end = Math.min(this.x(view.xOf(stretches[i].to)), right);
      if (end - begin >= 3) found.push({name: stretches[i].name, isOdd: i % 2 === 1, begin, end});
    }
    return found;
  }

  /**
   * Every other stretch a little darker.
   * @param {CanvasRenderingContext2D} context
   */
  drawStretches(context) {
    context.fillStyle = color("band");
    for (const {isOdd, begin, end} of this.visibleStretches()) {
      if (isOdd) context.fillRect((begin - this.left) * this.ratio, 0, (end - begin) * this.ratio, this.canvas.height);
    }
  }

  /** Where phases or steps begin, their names where there is room; out of memory. Few elements: they change in every frame. */
  drawMarks() {
    const {view} = this;
    const bottom = MARGIN.top + this.plotHeight;
    const stretches = this.visibleStretches();
    this.bounds.attr("d", stretches.map(({begin}) => `M${begin.toFixed(1)},6V${MARGIN.top - 2}`).join("") || null);
    this.names.selectAll("text")
        .data(stretches.filter(({name, begin, end}) => end - begin > 6.5 * name.length + 12))
        .join("text")
        .attr("y", 16)
        .attr("x", (/** @type {any} */ stretch) => stretch.begin + 5)
        .text((/** @type {any} */ stretch) => stretch.name);
    let path = "";
    let before = -9;
    const end = d3.bisectRight(this.ooms, view.momentAt(view.state.to));
    for (let i = d3.bisectLeft(this.ooms, view.momentAt(view.state.from)); i < end; ++i) {
      const at = this.x(view.xOf(this.ooms[i]));
      if (at - before < 3) continue;
      before = at;
      path += `M${at - 6},${MARGIN.top - 14}h12l-6,11zM${at},${MARGIN.top - 4}V${bottom}`;
    }
    this.marks.attr("d", path || null);
  }

  /** Around the block under the pointer, else around the selected one. */
  drawOutline() {
    const {bands, ratio} = this;
    const {picture} = bands;
    const {hovered, selected} = this.view.state;
    const block = hovered >= 0 ? hovered : selected;
    if (block < 0 || picture === null) {
      this.outline.attr("d", null);
      return;
    }
    const first = d3.bisectLeft(picture.moments, this.run.start[block]);
    const end = d3.bisectLeft(picture.moments, this.run.end[block]);
    const x = d3.scaleLinear().domain([0, picture.width]).range([this.x(picture.from), this.x(picture.to)]);
    const y = (/** @type {number} */ row) => this.y(picture.low + row / picture.height * (picture.high - picture.low));
    let top = "";
    let below = "";
    let path = "";
    const close = () => {
      if (top !== "") path += `M${top.slice(1)}${below}Z`;
      top = below = "";
    };
    for (let column = first; column < end; ++column) {
      const rows = bands.rowsOf(column, block);
      if (rows === null) {
        close();
        continue;
      }
      top += `L${x(column)},${y(rows.to)}L${x(column + 1)},${y(rows.to)}`;
      below = `L${x(column + 1)},${y(rows.from)}L${x(column)},${y(rows.from)}` + below;
    }
    close();
    this.outline.attr("d", path || null).attr("stroke-width", 2 / Math.sqrt(ratio));
  }

  drawCursors() {
    const {view} = this;
    const {moment, mark} = view.state;
    const [left, right] = this.x.range();
    const place = (/** @type {any} */ line, /** @type {number} */ at) => {
      if (at < 0) {
        line.attr("visibility", "hidden");
        return left;
      }
      const x = this.x(
          view.xOf(at) +
          (view.state.axis === "event" ? Math.min(0.5, (view.state.to - view.state.from) / this.plotWidth / 2) : 0));
      line.attr("x1", x)
          .attr("x2", x)
          .attr("y1", MARGIN.top - 8)
          .attr("y2", MARGIN.top + this.plotHeight)
          .attr("visibility", x >= left - 1 && x <= right + 1 ? "visible" : "hidden");
      return Math.max(left, Math.min(x, right));
    };
    const a = place(this.cursorLine, moment);
    const b = place(this.markLine, mark);
    this.between.attr("x", Math.min(a, b))
        .attr("y", MARGIN.top)
        .attr("width", Math.abs(a - b))
        .attr("height", this.plotHeight)
        .attr("visibility", mark >= 0 ? "visible" : "hidden");
  }

  /** Another range is shown. */
  onRange() {}
}
