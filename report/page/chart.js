// Memory over the run, with everything that a user does to it: wheel, drag, brush and pointer.

const OVERVIEW_HEIGHT = 40;

class Chart extends ChartPicture {
  /**
   * @param {HTMLElement} host @param {Run} run @param {View} view
   * @param {Ribbons} ribbons @param {Overlay[]} overlays @param {Limit} limit
   */
  constructor(host, run, view, ribbons, overlays, limit) {
    super(run, view, ribbons, overlays, limit);
    this.host = host;
    this.stage = make("div", {class: "stage"}, this.canvas, this.svg.node());
    this.overview = d3.create("svg").attr("class", "overview").attr("aria-hidden", "true");
    this.overviewPaths =
        ["reserved", "active"].map((name) => this.overview.append("path").attr("class", "area " + name));
    this.whole = d3.scaleLinear();
    this.brush = d3.brushX().on("brush end", () => this.onBrush());
    this.brushGroup = this.overview.append("g").attr("class", "brush");
    host.append(this.stage, this.overview.node());
    /** @type {(place: Place | null, event?: MouseEvent) => void} */
    this.onHover = () => {};
    /** @type {() => void} */
    this.onColors = () => {};
    this.listen();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(host);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor());
    view.listen((_, changed) => {
      if (changed.has("color")) {
        this.recolor();
      } else if (changed.has("lit")) {
        this.bands.paint(this.coloring);
        this.drawn = false;
      }
      if (changed.has("axis")) this.drawOverview();
      this.draw();
    });
  }

  onBrush() {
    if (!d3.event.sourceEvent) return;  // moved by onRange()
    const range = d3.event.selection;
    if (range !== null) this.view.show(this.whole.invert(range[0]), this.whole.invert(range[1]));
    else if (d3.event.type === "end") this.view.showAll();
  }

  onRange() {
    const {from, to} = this.view.state;
    const whole = to - from >= this.view.extent() - 1e-9;
    this.brushGroup.call(this.brush.move, whole ? null : [from, to].map(this.whole));
  }

  listen() {
    const {view} = this;
    const node = /** @type {SVGElement} */ (this.target.node());
    const place = (/** @type {MouseEvent} */ event) => {
      const box = node.getBoundingClientRect();
      return {
        x: this.x.invert(event.clientX - box.left + this.left),
        column: (event.clientX - box.left) * this.ratio,
        row: (box.bottom - event.clientY) * this.ratio,
        y: this.y.invert(event.clientY - box.top + this.top)
      };
    };
    /** @type {{x: number, at: number, moved: boolean} | null} */
    let drag = null;
    const hoverAt = (/** @type {PointerEvent} */ event) => {
      const at = place(event);
      this.hover(this.bands.blockAt(Math.floor(at.column), Math.floor(at.row)), event);
      return at;
    };
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      node.setPointerCapture(event.pointerId);
      drag = {x: event.clientX, at: place(event).x, moved: false};
    });
    node.addEventListener("pointermove", (event) => {
      if (drag !== null && (drag.moved || Math.abs(event.clientX - drag.x) > 4)) {
        drag.moved = true;
        const edges = [this.x(drag.at), this.x(place(event).x)].sort((a, b) => a - b);
        this.dragged.attr("visibility", "visible")
            .attr("x", edges[0])
            .attr("width", edges[1] - edges[0])
            .attr("y", this.top)
            .attr("height", this.plotHeight);
        return;
      }
      const at = hoverAt(event);
      if (drag === null && !view.frozen) view.moveTo(this.momentNear(at.x));
    });
    node.addEventListener("pointerup", (event) => {
      if (drag !== null && drag.moved) {
        const {x} = place(event);
        view.show(Math.min(x, drag.at), Math.max(x, drag.at));
      } else if (drag !== null) {
        const at = hoverAt(event);
        view.moveTo(this.momentNear(at.x));
        view.select(view.state.hovered);
      }
      this.dragged.attr("visibility", "hidden");
      drag = null;
    });
    node.addEventListener("pointerleave", () => this.hover(-1));
    // The page scrolls unless Ctrl is held.
    this.svg.node().addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      const at = place(event);
      if (event.shiftKey) this.zoomHeight(1.0015 ** (event.deltaY || event.deltaX), at.y);
      else view.zoom(1.0015 ** event.deltaY, at.x);
      event.preventDefault();
    }, {passive: false});
  }

  /**
   * Returns the moment that a column at `x` shows, which is the one that the user sees.
   * @param {number} x
   */
  momentNear(x) {
    const {picture} = this.bands;
    const {from, to, axis} = this.view.state;
    if (picture === null || picture.from !== from || picture.to !== to || picture.axis !== axis) {
      return this.view.momentAt(x);
    }
    const column = Math.floor((x - from) / (to - from) * picture.width);
    return picture.moments[Math.max(0, Math.min(column, picture.width - 1))];
  }

  /** @param {number} factor @param {number} around bytes */
  zoomHeight(factor, around) {
    const {low, high} = this.heights();
    const newLow = Math.max(0, around - (around - low) * factor);
    const newHigh = around + (high - around) * factor;
    if (newHigh - newLow >= this.most * 1.06) this.view.set({low: 0, high: 0});
    else if (newHigh - newLow > 1024) this.view.set({low: newLow, high: newHigh});
  }

  /** @param {number} entry a block, or, where segments are shown, a range @param {MouseEvent} [event] */
  hover(entry, event) {
    const {run} = this;
    const {isSegments} = this.coloring;
    this.view.set({hovered: isSegments ? -1 : entry});
    if (entry < 0) this.onHover(null);
    else if (isSegments)
      this.onHover({range: entry, address: run.ranges.address[entry], size: run.ranges.size[entry], block: -1}, event);
    else this.onHover({range: -1, address: run.address[entry], size: run.block[entry], block: entry}, event);
  }

  recolor() {
    const {view} = this;
    this.setColoring(view.state.color);
    this.bands.paint(this.coloring);
    this.drawn = false;
    this.onColors();
    this.draw();
  }

  resize() {
    const width = Math.max(280, this.host.clientWidth);
    if (width === this.width) return;
    this.setWidth(width);
    const bottom = this.top + this.plotHeight;
    const height = bottom + MARGIN.bottom;
    this.svg.attr("width", width).attr("height", height);
    this.stage.style.height = height + "px";
    const {canvas} = this;
    canvas.width = Math.round(this.plotWidth * this.ratio);
    canvas.height = Math.round(this.plotHeight * this.ratio);
    Object.assign(
        canvas.style,
        {left: this.left + "px", top: this.top + "px", width: this.plotWidth + "px", height: this.plotHeight + "px"});
    for (const rect of [this.clip, this.target]) {
      rect.attr("x", this.left)
          .attr("y", rect === this.clip ? 0 : this.top)
          .attr("width", this.plotWidth)
          .attr("height", rect === this.clip ? bottom : this.plotHeight);
    }
    this.x = d3.scaleLinear().range([this.left, width - MARGIN.right]);
    this.y = d3.scaleLinear().range([bottom, this.top]);
    this.overview.attr("width", width).attr("height", OVERVIEW_HEIGHT + 4);
    this.drawOverview();
    this.draw();
  }

  drawOverview() {
    const {view} = this;
    const columns = Math.min(this.plotWidth, 1200);
    this.whole = d3.scaleLinear().domain([0, view.extent()]).range([this.left, this.width - MARGIN.right]);
    const y = d3.scaleLinear().domain([0, this.most]).range([OVERVIEW_HEIGHT, 2]);
    const step = view.extent() / columns;
    ["reserved", "active"].forEach((name, i) => {
      const tree = /** @type {MaxTree} */ (this.trees.get(name));
      const points = d3.range(columns).map((/** @type {number} */ column) => {
        const first = view.momentAt(column * step);
        return tree.values[tree.find(first, Math.max(first + 1, view.momentAt((column + 1) * step)))];
      });
      this.overviewPaths[i].attr(
          "d",
          d3.area()
              .curve(d3.curveStepAfter)
              .x((/** @type {number} */ _, /** @type {number} */ column) => this.whole(column * step))
              .y0(y(0))
              .y1(y)([...points, points[points.length - 1]]));
    });
    this.brush.extent([[this.left, 0], [this.width - MARGIN.right, OVERVIEW_HEIGHT]]);
    this.brushGroup.call(this.brush);
  }
}
