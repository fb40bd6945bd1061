// Draws the chart repeatedly; a call stays within one frame.

/**
 * Returns as much of a name as there is room for: "forward" for "forward, step 3", "attn" for "h.3.attn".
 * @param {string} name @param {number} room characters
 */
function fitName(name, room) {
  if (name.length <= room) return name;
  let text = name.replace(/, .*/, "");
  while (text.length > room && text.includes(".")) text = text.slice(text.indexOf(".") + 1);
  return text.length <= room ? text : "";
}

/**
 * Returns the beginning of a name, with an ellipsis if it is cut.
 * @param {string} name @param {number} room characters
 */
function cutName(name, room) {
  if (name.length <= room) return name;
  // A character may be two units, of which the first is not cut off from the second.
  return room < 4 ? "" : name.slice(0, room - 1).replace(/[\ud800-\udbff]$/, "") + "\u2026";
}

/** Reserved memory of another run, drawn over this one. */
class Overlay {
  /** @param {string} name @param {any} curve of the report @param {Run} run @param {string} color */
  constructor(name, curve, run, color) {
    this.name = name;
    this.color = color;
    const column = (/** @type {string} */ name) => (curve[name] || []).map(Number);
    this.reserved = column("reserved_bytes");
    /** @type {number[]} */
    this.moments = column("position").map((/** @type {number} */ position) => run.momentAt(position));
    this.complete = curve.complete;
    this.most = Math.max(0, ...this.reserved);
  }

  /**
   * Returns the index of its last point at a moment.
   * @param {number} moment
   */
  at(moment) { return Math.max(0, d3.bisectRight(this.moments, moment) - 1); }
}

const MARGIN = {
  right: 14,
  bottom: 26
};
const RIBBON_HEIGHT = 18;   // of a row of names above the plot
const STRETCH_PIXELS = 20;  // average width that stretches need for their row to be drawn
const OOM_WIDTH = 12;
const FIGURES = /** @type {const} */ (["reserved", "active", "allocated", "requested"]);
const FRAME_MILLISECONDS = 2;  // for bands; the browser needs the rest of a frame's 16

/**
 * A stretch of moments. Ribbons are rows of stretches, each in levels from the finest to the coarsest that may be
 * drawn.
 * @typedef {{from: number, to: number, name: string}} Stretch
 * @typedef {Stretch[][][]} Ribbons
 */

/** @typedef {{bytes: number, text: string, at: number, by: string}} Limit of the card; the OOM at a moment, -1: none */

class ChartPicture {
  /** @param {Run} run @param {View} view @param {Ribbons} ribbons @param {Overlay[]} overlays @param {Limit} limit */
  constructor(run, view, ribbons, overlays, limit) {
    this.run = run;
    this.view = view;
    this.ribbons = ribbons;
    this.limit = limit;
    this.top = 8 + RIBBON_HEIGHT * Math.max(1, ribbons.length);
    this.overlays = overlays;
    this.bands = new Bands(run, view);
    this.coloring = new Coloring(run, view.state.color);
    if (view.state.only >= this.coloring.names.length) view.state.only = -1;  // of another page's address
    const highest = (/** @type {MaxTree} */ tree) => tree.values[tree.find(0, run.last + 1)];
    this.most =
        Math.max(1, highest(run.reservedTree), highest(run.activeTree), ...overlays.map((overlay) => overlay.most));
    // The request that ran out of memory is drawn on top of what was there.
    const tried =
        run.last > 0 ? this.momentsOf([run.oomKind]).map((/** @type {number} */ moment) => this.triedTop(moment)) : [];
    const ceiling = 1.5 * this.most;
    this.most = Math.min(ceiling, Math.max(this.most, ...tried));
    if (limit.bytes <= (tried.length > 0 ? ceiling : 1.15 * this.most)) this.most = Math.max(this.most, limit.bytes);
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
    this.limitLine = clipped("line").attr("class", "limit");
    this.limitText = clipped("text").attr("class", "limit");
    this.tried = clipped("path").attr("class", "tried");
    this.triedText = clipped("text").attr("class", "tried");
    this.marks = clipped("path").attr("class", "oom");
    this.dragged = clipped("rect").attr("class", "dragged").attr("visibility", "hidden");
    this.between = clipped("rect").attr("class", "between");
    this.markLine = this.svg.append("line").attr("class", "cursor mark");
    this.cursorLine = this.svg.append("line").attr("class", "cursor");
    this.target = this.svg.append("rect").attr("class", "target");
    this.x = d3.scaleLinear();
    this.y = d3.scaleLinear();
  }

  /**
   * Returns where the request that ran out of memory would have ended.
   * @param {number} moment
   */
  triedTop(moment) { return this.run.reserved[moment] + this.run.otherSize[this.run.subject[moment - 1]]; }

  /** @param {number[]} kinds of events that are not of allocations */
  momentsOf(kinds) {
    const {run} = this;
    return run.otherEvent.filter((event) => kinds.includes(run.kind[event])).map((event) => event + 1);
  }

  /** @param {keyof typeof COLORINGS} by */
  setColoring(by) {
    const {isSegments} = this.coloring;
    if (this.coloring.by === by) this.coloring.paint();
    else this.coloring = new Coloring(this.run, by);
    if (this.coloring.isSegments !== isSegments) this.bands.drop();
  }

  /** @param {number} width of everything, in CSS pixels */
  setWidth(width) {
    this.width = width;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.left = width < 600 ? 64 : 70;
    this.plotWidth = width - this.left - MARGIN.right;
    this.plotHeight = width < 600 ? 240 : width < 1800 ? 340 : 480;
  }

  /** Returns bytes at the lower and the upper edge. */
  heights() {
    const {low, high} = this.view.state;
    return high > low ? {low, high} : {low: 0, high: this.most * 1.06};
  }

  draw() {
    const {from, to, axis, least, only} = this.view.state;
    const {low, high} = this.heights();
    this.x.domain([from, to]);
    this.y.domain([low, high]);
    const {canvas} = this;
    const done = this.bands.work(
        {
          from,
          to,
          low,
          high,
          axis,
          least,
          isSegments: this.coloring.isSegments,
          only: only < 0 ? "" : this.coloring.by + only,
          width: canvas.width,
          height: canvas.height
        },
        this.coloring, FRAME_MILLISECONDS);
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
   * Draws the finished part of the bands, and the lines.
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
      const y = (/** @type {number} */ bytes) => (this.y(bytes) - this.top) * ratio;
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
   * Draws a tick for each segment that was requested from the driver (tall) or released.
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
   * Returns the highest value that each column of pixels represents.
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
   * Draws the line of a figure, or the area under it.
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
      const y = (this.y(overlay.reserved[i]) - this.top) * ratio;
      if (i > first) context.lineTo(x, (this.y(overlay.reserved[i - 1]) - this.top) * ratio);
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
    this.axisX.attr("transform", `translate(0,${this.top + this.plotHeight})`)
        .call(d3.axisBottom(this.x).tickValues(ticks).tickFormat(format).tickPadding(6));
  }

  /**
   * Returns the stretches of a row that are wide enough to be seen, with their edges on the screen.
   * @param {Stretch[][]} row @returns {{name: string, isOdd: boolean, begin: number, end: number}[]}
   */
  visibleStretches(row) {
    if (!this.shown.has("marks")) return [];
    const {view} = this;
    const [left, right] = this.x.range();
    const from = view.momentAt(view.state.from);
    const to = view.momentAt(view.state.to);
    const {left: indexAt} = d3.bisector((/** @type {Stretch} */ each) => each.from);
    const stretches = row.find(
                          (each, i) => i + 1 === row.length ||
                              (indexAt(each, to) - indexAt(each, from)) * STRETCH_PIXELS <= this.plotWidth) ??
        [];
    const found = [];
    for (let i = Math.max(0, indexAt(stretches, from + 1) - 1); i < stretches.length && stretches[i].from <= to; ++i) {
      const begin = Math.max(this.x(view.xOf(stretches[i].from)), left);
      const end = Math.min(this.x(view.xOf(stretches[i].to)), right);
      if (end - begin >= 3) found.push({name: stretches[i].name, isOdd: i % 2 === 1, begin, end});
    }
    return found;
  }

  /**
   * Draws every other stretch a little darker.
   * @param {CanvasRenderingContext2D} context
   */
  drawStretches(context) {
    context.fillStyle = color("band");
    for (const {isOdd, begin, end} of this.visibleStretches(this.ribbons[0] ?? [])) {
      if (isOdd) context.fillRect((begin - this.left) * this.ratio, 0, (end - begin) * this.ratio, this.canvas.height);
    }
  }

  /**
   * Draws the names of phases and modules where there is room, and out of memory. There are few elements, because they
   * change in every frame.
   */
  drawMarks() {
    const {view} = this;
    const bottom = this.top + this.plotHeight;
    let bounds = "";
    /** @type {{text: string, x: number, y: number}[]} */
    const names = [];
    this.ribbons.forEach((row, i) => {
      const y = 4 + RIBBON_HEIGHT * i;
      for (const {name, begin, end} of this.visibleStretches(row)) {
        bounds += `M${begin.toFixed(1)},${y}v${RIBBON_HEIGHT - 2}`;
        const text = fitName(name, Math.floor((end - begin - 8) / 6.6));
        if (text) names.push({text, x: begin + 4, y: y + 13});
      }
    });
    this.bounds.attr("d", bounds || null);
    this.names.selectAll("text")
        .data(names)
        .join("text")
        .attr("y", (/** @type {any} */ name) => name.y)
        .attr("x", (/** @type {any} */ name) => name.x)
        .text((/** @type {any} */ name) => name.text);
    let path = "";
    let tried = "";
    let before = -9;
    const end = d3.bisectRight(this.ooms, view.momentAt(view.state.to));
    for (let i = d3.bisectLeft(this.ooms, view.momentAt(view.state.from)); i < end; ++i) {
      const at = this.x(view.xOf(this.ooms[i]));
      if (at - before < 3) continue;
      before = at;
      path += `M${at - 6},${this.top - 12}h12l-6,11zM${at},${this.top - 4}V${bottom}`;
      const base = this.y(this.run.reserved[this.ooms[i]]);
      tried += `M${at - OOM_WIDTH / 2},${base}h${OOM_WIDTH}V${Math.max(0, this.y(this.triedTop(this.ooms[i])))}h${
          - OOM_WIDTH}Z`;
    }
    this.marks.attr("d", path || null);
    this.tried.attr("d", tried || null);
    this.drawLimit();
  }

  /** Draws the card's limit, and says what was requested beyond it. */
  drawLimit() {
    const {limit, view, run} = this;
    const [left, right] = this.x.range();
    const y = this.y(limit.bytes);
    const isSeen = limit.bytes > 0 && y > this.top - 1 && y < this.top + this.plotHeight;
    this.limitLine.attr("x1", left).attr("x2", right).attr("y1", y).attr("y2", y);
    this.limitText.attr("x", left + 6).attr("y", y < this.top + 16 ? y + 14 : y - 4).text(limit.text);
    for (const each of [this.limitLine, this.limitText]) each.attr("visibility", isSeen ? "visible" : "hidden");
    const x = limit.at < 0 ? -1 : this.x(view.xOf(limit.at));
    const isTried = x >= left && x <= right;
    this.triedText.attr("visibility", isTried ? "visible" : "hidden");
    if (!isTried) return;
    const isRight = x > (left + right) / 2;
    const room = Math.floor((isRight ? x - left : right - x) / 7.8) - 3;
    const size = formatSize(run.otherSize[run.subject[limit.at - 1]]);
    const text = `${size} requested by ${limit.by}`;
    const top = Math.max(this.top, this.y(this.triedTop(limit.at)));
    this.triedText.attr("x", isRight ? x - 10 : x + 10)
        .attr("y", Math.abs(top - y) < 18 ? Math.max(top, y) + 30 : top + 12)
        .attr("text-anchor", isRight ? "end" : "start")
        .text(cutName(text, room));
  }

  /** Draws an outline around the block under the pointer, else around the selected one. */
  drawOutline() {
    const {bands, ratio} = this;
    const {picture} = bands;
    const {hovered, selected} = this.view.state;
    const block = hovered >= 0 ? hovered : selected;
    if (block < 0 || picture === null || picture.isSegments) {
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
          .attr("y1", this.top - 8)
          .attr("y2", this.top + this.plotHeight)
          .attr("visibility", x >= left - 1 && x <= right + 1 ? "visible" : "hidden");
      return Math.max(left, Math.min(x, right));
    };
    const a = place(this.cursorLine, moment);
    const b = place(this.markLine, mark);
    this.between.attr("x", Math.min(a, b))
        .attr("y", this.top)
        .attr("width", Math.abs(a - b))
        .attr("height", this.plotHeight)
        .attr("visibility", mark >= 0 ? "visible" : "hidden");
  }

  /** Called when another range is shown. */
  onRange() {}
}
