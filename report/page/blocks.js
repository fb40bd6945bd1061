// The block map: segments with their blocks at the cursor's moment, all on one scale. Bytes flow from left to right and
// on to the next row like words; a segment longer than a row continues in the next.

const ROW_HEIGHT = 15;
const ROW_GAP = 3;
const HEADING_HEIGHT = 22;
const SEGMENT_GAP = 3;
const FADED = 0.8;    // how far blocks that are not in focus fade into the background
const MAP_ROWS = 20;  // approximate number at the peak of reserved memory

/**
 * The content of a place on the map.
 * @typedef {{range: number, address: number, size: number, block: number}} Place  block -1: free
 */

class BlockMap {
  /** @param {HTMLElement} host @param {Run} run @param {View} view @param {() => Coloring} coloring */
  constructor(host, run, view, coloring) {
    this.host = host;
    this.run = run;
    this.view = view;
    this.coloring = coloring;
    this.width = 0;
    this.ratio = 1;
    this.minHeight = 0;  // of the canvas, whose memory is kept while its size stays the same
    /** @type {State} */
    this.state = {moment: -1, blocks: new Uint32Array(0), ranges: new Uint32Array(0)};
    /** @type {Float64Array} where on the tape of rows each of state.ranges begins */
    this.tape = new Float64Array(0);
    /** @type {{y: number, text: string}[]} */
    this.headings = [];
    /** @type {number[]} */
    this.rowTops = [];
    this.rowBytes = 1;
    /** @type {{from: number, to: number}[]} on the tape: unmapped, between mapped ranges */
    this.holes = [];
    this.canvas = /** @type {HTMLCanvasElement} */ (make("canvas", {
      class: "map",
      tabindex: 0,
      role: "img",
      "aria-label": "Segments and blocks at the cursor. Arrow keys go from block to block."
    }));
    this.rows = document.createElement("canvas");  // has one line of pixels for each row
    this.outline = d3.create("svg").attr("class", "map-outline");
    this.outlinePath = this.outline.append("path").attr("class", "outline");
    this.title = make("h3", {});
    this.stage = make("div", {class: "map-stage"}, this.canvas, this.outline.node());
    host.append(this.title, this.stage);
    /** @type {(place: Place | null, event?: MouseEvent) => void} */
    this.onHover = () => {};
    /** @type {Coloring | undefined} where the chart shows segments */
    this.plain = undefined;
    this.listen();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(host);
    view.listen((_, changed) => {
      if (["moment", "color", "only", "lit"].some((name) => changed.has(name))) this.draw();
      else if (changed.has("hovered") || changed.has("selected")) this.drawOutline();
    });
  }

  listen() {
    const {canvas, view} = this;
    const find = (/** @type {MouseEvent} */ event) => {
      const box = canvas.getBoundingClientRect();
      return this.placeAt(event.clientX - box.left, event.clientY - box.top);
    };
    canvas.addEventListener("pointermove", (event) => {
      const place = find(event);
      view.set({hovered: place ? place.block : -1});
      this.onHover(place, event);
    });
    canvas.addEventListener("pointerleave", () => {
      view.set({hovered: -1});
      this.onHover(null);
    });
    canvas.addEventListener("click", (event) => {
      const place = find(event);
      if (place && place.block >= 0) view.select(place.block);
      else view.select(-1);
    });
    canvas.addEventListener("keydown", (event) => {
      const {blocks} = this.state;
      const moves = /** @type {Record<string, number>} */ ({ArrowLeft: -1, ArrowRight: 1, ArrowUp: -20, ArrowDown: 20});
      const now = blocks.indexOf(view.state.selected);
      const target = event.key === "Home" ? 0 :
          event.key === "End"             ? blocks.length - 1 :
          event.key in moves              ? now + moves[event.key] :
                                            null;
      if (target === null || blocks.length === 0) return;
      event.preventDefault();
      event.stopPropagation();
      view.select(blocks[Math.max(0, Math.min(target, blocks.length - 1))]);
    });
  }

  resize() {
    const width = Math.max(240, this.host.clientWidth);
    if (width === this.width) return;
    this.width = width;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    const {run} = this;
    this.rowBytes = Math.max(512, Math.ceil(run.reserved[run.peak] / MAP_ROWS / 512) * 512);
    this.state = run.stateAt(run.peak);
    const height = Math.max(160, Math.min(this.layOut() + 4, 560));
    this.stage.style.height = height + "px";
    this.minHeight = height - 4;
    this.draw();
  }

  /** Puts state.ranges on the tape. @returns the height */
  layOut() {
    const {run, rowBytes, state} = this;
    const {ranges} = run;
    const gap = SEGMENT_GAP / this.width * rowBytes;
    /** @type {Map<string, number[]>} */
    const groups = new Map();
    state.ranges.forEach((range, i) => {
      const name = ranges.groupName(run, range);
      const group = groups.get(name);
      if (group) group.push(i);
      else groups.set(name, [i]);
    });
    this.tape = new Float64Array(state.ranges.length);
    this.headings = [];
    this.rowTops = [];
    this.holes = [];
    let y = 0;
    const newRow = () => {
      this.rowTops.push(y);
      y += ROW_HEIGHT + ROW_GAP;
    };
    for (const [name, members] of groups) {
      const bytes = members.reduce((sum, i) => sum + ranges.size[state.ranges[i]], 0);
      this.headings.push({
        y: y + 15,
        text: `${name}: ${formatSize(bytes)} in ${formatCount(members.length)} ` +
            (ranges.isExpandable(state.ranges[members[0]]) ? "mapped range" : "segment") +
            (members.length === 1 ? "" : "s")
      });
      y += HEADING_HEIGHT;
      newRow();
      let at = (this.rowTops.length - 1) * rowBytes;
      let end = NaN;  // address after the range before
      for (const i of members) {
        const range = state.ranges[i];
        const size = ranges.size[range];
        const distance = ranges.address[range] - end;
        if (distance !== 0 && at % rowBytes !== 0) {
          if (ranges.isExpandable(range) && distance > 0 && distance < rowBytes * 4) {
            this.holes.push({from: at, to: at + distance});
            at += distance;
          } else {
            at += gap;
          }
          const rowEnd = Math.ceil(at / rowBytes) * rowBytes;
          if (!ranges.isExpandable(range) && at + size > rowEnd + 1 && size <= rowBytes) at = rowEnd;
        }
        this.tape[i] = at;
        at += size;
        while (this.rowTops.length * rowBytes < at - 1e-6) newRow();
        end = ranges.address[range] + size;
      }
      y += ROW_GAP;
    }
    return y;
  }

  draw() {
    const {run, view, canvas, ratio, width} = this;
    if (width === 0) return;
    this.state = run.stateAt(view.state.moment);
    const height = Math.max(this.layOut(), this.minHeight);
    const size = {width: Math.round(width * ratio), height: Math.round(height * ratio)};
    if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    this.outline.attr("width", width).attr("height", height);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const image = context.createImageData(canvas.width, Math.max(1, this.rowTops.length));
    const pixels = new Uint32Array(image.data.buffer);
    const {state} = this;
    const free = themePixel("free");
    const hole = themePixel("hole");
    const pending = themePixel("pending");
    const back = themePixel("back");
    let coloring = this.coloring();
    if (coloring.isSegments) coloring = this.plain ??= new Coloring(run, "category");
    const focus = coloring === this.plain ? -1 : view.focus();
    for (const {from, to} of this.holes) this.fill(pixels, from, to, hole, back);
    state.ranges.forEach(
        (range, i) => this.fill(pixels, this.tape[i], this.tape[i] + run.ranges.size[range], free, free));
    // A block may continue in the mapped range after its own, which follows on the tape.
    let next = 0;
    const {blocks} = state;
    state.ranges.forEach((range, i) => {
      const start = run.ranges.address[range];
      const end = start + run.ranges.size[range];
      while (next < blocks.length && run.address[blocks[next]] < start) ++next;
      for (; next < blocks.length && run.address[blocks[next]] < end; ++next) {
        const block = blocks[next];
        const at = this.tape[i] + run.address[block] - start;
        let pixel = run.freed[block] <= state.moment ? pending : coloring.pixelOf(block);
        if (focus >= 0 && coloring.group[block] !== focus) pixel = mix(pixel, back, FADED);
        this.fill(pixels, at, at + run.block[block], pixel, mix(pixel, back, 0.45));
      }
    });
    this.rows.width = image.width;
    this.rows.height = image.height;
    const rows = /** @type {CanvasRenderingContext2D} */ (this.rows.getContext("2d"));
    rows.putImageData(image, 0, 0);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingEnabled = false;
    this.rowTops.forEach(
        (top, row) => context.drawImage(
            this.rows, 0, row, canvas.width, 1, 0, Math.round(top * ratio), canvas.width,
            Math.round(ROW_HEIGHT * ratio)));
    context.scale(ratio, ratio);
    context.fillStyle = color("text");
    context.font = "13px system-ui, sans-serif";
    for (const heading of this.headings) context.fillText(heading.text, 0, heading.y, width);
    const moment = state.moment;
    this.title.textContent = `Segments and blocks ${view.momentName(moment)}: ` +
        `${formatSize(run.reserved[moment])} reserved, ${
                                 formatSize(run.reserved[moment] - run.active[moment])} of it free`;
    this.drawOutline();
  }

  /**
   * Colours a stretch of the tape, with a line at its end if there is room.
   * @param {Uint32Array} pixels one line for each row
   * @param {number} from @param {number} to @param {number} pixel @param {number} edge
   */
  fill(pixels, from, to, pixel, edge) {
    const {canvas, rowBytes} = this;
    const scale = canvas.width / rowBytes;
    for (let row = Math.floor(from / rowBytes); row * rowBytes < to && row < this.rowTops.length; ++row) {
      const start = Math.round(Math.max(0, from - row * rowBytes) * scale);
      const end = Math.min(canvas.width, Math.round((to - row * rowBytes) * scale));
      if (end <= start) continue;
      const last = end - start >= 4 ? end - 1 : end;
      const first = row * canvas.width;
      pixels.fill(pixel, first + start, first + last);
      if (last < end) pixels[first + last] = edge;
    }
  }

  /** @param {number} x @param {number} y @returns {Place | null} */
  placeAt(x, y) {
    const {run, state} = this;
    const row = d3.bisectRight(this.rowTops, y) - 1;
    if (row < 0 || y > this.rowTops[row] + ROW_HEIGHT) return null;
    const at = (row + x / this.width) * this.rowBytes;
    let found = -1;
    for (let i = 0; i < this.tape.length; ++i) {
      if (this.tape[i] <= at && at < this.tape[i] + run.ranges.size[state.ranges[i]]) found = i;
    }
    if (found < 0) return null;
    const range = state.ranges[found];
    const start = run.ranges.address[range];
    const address = start + at - this.tape[found];
    const {blocks} = state;
    const after = d3.bisector((/** @type {number} */ block) => run.address[block]).right(blocks, address);
    const before = blocks[after - 1];
    if (after > 0 && address < run.address[before] + run.block[before]) {
      return {range, address: run.address[before], size: run.block[before], block: before};
    }
    const from = Math.max(start, after > 0 ? run.address[before] + run.block[before] : start);
    const to = Math.min(start + run.ranges.size[range], after < blocks.length ? run.address[blocks[after]] : Infinity);
    return {range, address: from, size: to - from, block: -1};
  }

  drawOutline() {
    const {run, view, state, rowBytes} = this;
    const block = view.state.hovered >= 0 ? view.state.hovered : view.state.selected;
    let path = "";
    const isThere = block >= 0 && run.start[block] <= state.moment && state.moment < run.end[block];
    state.ranges.forEach((range, i) => {
      if (!isThere) return;
      const offset = run.address[block] - run.ranges.address[range];
      if (offset < 0 || offset >= run.ranges.size[range]) return;
      const from = this.tape[i] + offset;
      const to = from + run.block[block];
      for (let row = Math.floor(from / rowBytes); row * rowBytes < to && row < this.rowTops.length; ++row) {
        const start = Math.max(0, from - row * rowBytes) / rowBytes * this.width;
        const end = Math.min(this.width, (to - row * rowBytes) / rowBytes * this.width);
        path +=
            `M${start},${this.rowTops[row]}h${Math.max(2, end - start)}v${ROW_HEIGHT}h${- Math.max(2, end - start)}Z`;
      }
    });
    this.outlinePath.attr("d", path || null);
  }
}
