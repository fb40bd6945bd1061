// Segments with their blocks, all at one scale: bytes flow from left to right and on to
// the next row like words. A segment longer than a row goes on in the next.

const ROW_HEIGHT = 16;
const ROW_GAP = 4;
const HEADING_HEIGHT = 24;
const SEGMENT_GAP = 3;
const STATES = {
  a: {name: "allocated", color: "allocated"},
  p: {name: "freed, other streams may still use it", color: "pending"},
  i: {name: "free", color: "free"},
};

// Segments of a map with their blocks as objects, by pool, kind and stream.
function readMap(map) {
  const groups = new Map();
  for (const segment of map.segments || []) {
    let address = BigInt(segment.address);
    let live = 0;
    const blocks = Array.from(segment.states || "", (state, i) => {
      const block = {segment, state, address, size: Number(segment.sizes[i])};
      address += BigInt(segment.sizes[i]);
      if (state !== "i") {
        block.requested = Number(segment.requested_sizes[live]);
        block.stack = segment.stacks[live];
        block.position = Number(segment.positions[live]);
        ++live;
      }
      return block;
    });
    const name = `${poolName(segment.segment_pool_id)}, ${segment.segment_type}, ` +
        streamName(segment.stream);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push({segment, blocks, size: Number(segment.total_size)});
  }
  return groups;
}

class BlockMap {
  // `host` is empty; `page` of a device that has maps.
  constructor(host, device) {
    this.host = host;
    this.page = device.page;
    this.noun = device.inventory && device.inventory.is_program ? "request" : "event";
    this.maps = device.page.maps.map((map) => ({...map, groups: readMap(map)}));
    this.map = this.maps[0];
    this.colorBy = "state";
    this.pinned = false;
    this.build();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(host);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  build() {
    const choose = (label, options, action) => {
      const select = make("select", {});
      for (const [value, text] of options) select.append(make("option", {value}, text));
      select.addEventListener("change", () => action(select.value));
      return make("label", {}, label + " ", select);
    };
    const moments = {peak: "where reserved memory peaks", end: "at the end"};
    const controls = make("div", {class: "legend"},
        choose("show", this.maps.map((map, i) => [i, moments[map.moment] || map.moment]),
               (value) => {
                 this.map = this.maps[Number(value)];
                 this.pinned = false;
                 this.resize(true);
               }),
        choose("colour by", [["state", "state"], ["stack", "stack"]], (value) => {
          this.colorBy = value;
          this.draw();
        }));
    for (const state of Object.values(STATES)) {
      controls.append(make("span", {class: "item"},
                           make("span", {class: "swatch " + state.color}), state.name));
    }
    this.canvas = make("canvas", {class: "map", tabindex: 0, role: "img",
        "aria-label": "Map of segments and blocks. Arrow keys go from block to block."});
    this.outline = make("canvas", {class: "map outline", "aria-hidden": "true"});
    this.stage = make("div", {class: "stage"}, this.canvas, this.outline);
    this.note = make("p", {class: "note"});
    this.details = make("div", {class: "details", "aria-live": "polite"});
    this.host.append(make("h3", {}, "Segments and their blocks"), controls, this.note, this.stage,
                     this.details);
    const find = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return this.blockAt(event.clientX - box.left, event.clientY - box.top);
    };
    this.canvas.addEventListener("mousemove", (event) => {
      const index = find(event);
      if (!this.pinned && index >= 0) this.select(index);
    });
    this.canvas.addEventListener("click", (event) => {
      const index = find(event);
      this.pinned = index >= 0 && !(this.pinned && index === this.selected);
      if (index >= 0) this.select(index);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const moves = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -20, ArrowDown: 20};
      const target = event.key === "Home" ? 0
          : event.key === "End" ? this.blocks.length - 1
          : event.key in moves ? this.selected + moves[event.key] : null;
      if (target === null || this.blocks.length === 0) return;
      event.preventDefault();
      this.select(Math.max(0, Math.min(target, this.blocks.length - 1)));
    });
  }

  resize(force) {
    const width = Math.max(280, this.host.clientWidth);
    if (width === this.width && !force) return;
    this.width = width;
    this.layOut();
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.outline]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.style.width = width + "px";
      canvas.style.height = this.height + "px";
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.draw();
    this.selected = -1;
    this.details.replaceChildren(make("p", {class: "note"}, "Point at a block, or go from one to " +
        "the next with the arrow keys, to see its address, size, state and stack here. " +
        "A click keeps it."));
  }

  // How many bytes a row holds: of some lengths that make about 30 rows, or one row
  // of the largest segment, the one that wastes least room at the ends of rows and
  // breaks fewest segments.
  rowBytes() {
    const total = Number(this.map.reserved_bytes) - Number(this.map.left_out_bytes);
    const lengths = d3.range(18, 37).map((rows) => Math.ceil(total / rows / 1024) * 1024);
    const segments = [...this.map.groups.values()].flat();
    const largest = d3.max(segments, (segment) => segment.size);
    // Few enough blocks to be told apart in rows as long as that.
    const blocks = d3.sum(segments, (segment) => segment.blocks.length);
    if (blocks < 40 * total / largest) lengths.push(largest);
    return d3.least(lengths, (a, b) => this.roomLost(a) - this.roomLost(b));
  }

  roomLost(rowBytes) {
    const gap = SEGMENT_GAP / this.width * rowBytes;
    let lost = 0;
    for (const segments of this.map.groups.values()) {
      let used = 0;
      for (const {size} of segments) {
        if (used > 0 && used + size > rowBytes) {
          lost += Math.max(0, rowBytes - used);
          used = 0;
        }
        const breaks = Math.ceil((used + size) / rowBytes) - 1;
        lost += breaks * rowBytes / 2;
        used += size - breaks * rowBytes + gap;
      }
      lost += Math.max(0, rowBytes - used);
    }
    return lost;
  }

  // Fills this.blocks (a block with the pieces it is drawn in) and this.headings.
  layOut() {
    const rowBytes = this.rowBytes();
    const scale = this.width / rowBytes;
    this.blocks = [];
    this.headings = [];
    this.rows = new Map();  // y of a row -> its pieces
    let y = 0;
    for (const [name, segments] of this.map.groups) {
      const sum = d3.sum(segments, (entry) => entry.size);
      this.headings.push({y: y + 15, text: `${name}: ${formatCount(segments.length)} ` +
          `segment${segments.length === 1 ? "" : "s"}, ${formatSize(sum)}`});
      y += HEADING_HEIGHT;
      let x = 0;
      for (const {blocks, size} of segments) {
        if (x > 0 && x + size * scale > this.width + 0.5) {
          x = 0;
          y += ROW_HEIGHT + ROW_GAP;
        }
        for (const block of blocks) {
          const entry = {block, pieces: []};
          let left = block.size * scale;
          while (left > 0) {
            if (x >= this.width - 0.01) {
              x = 0;
              y += ROW_HEIGHT + ROW_GAP;
            }
            const piece = {x, y, width: Math.min(left, this.width - x), index: this.blocks.length};
            entry.pieces.push(piece);
            if (!this.rows.has(y)) this.rows.set(y, []);
            this.rows.get(y).push(piece);
            x += piece.width;
            left -= piece.width;
            if (left < 1e-6) left = 0;
          }
          this.blocks.push(entry);
        }
        x += SEGMENT_GAP;
      }
      y += ROW_HEIGHT + ROW_GAP;
    }
    this.height = y + 2;
    let note = `${formatSize(Number(this.map.reserved_bytes))} are reserved then; one row is ` +
        `${formatSize(rowBytes)}.`;
    if (Number(this.map.left_out_segments) > 0) {
      note += ` The largest segments; ${formatCount(this.map.left_out_segments)} more of ` +
          `${formatSize(Number(this.map.left_out_bytes))} in all are left out.`;
    }
    this.note.textContent = note;
  }

  draw() {
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.width, this.height);
    const fills = {};
    for (const [letter, state] of Object.entries(STATES)) fills[letter] = color(state.color);
    for (const {block, pieces} of this.blocks) {
      context.fillStyle = this.colorBy === "stack" && block.state === "a"
          ? hue(block.stack)
          : fills[block.state] || fills.i;
      for (const piece of pieces) {
        // A line between neighbours, where there is room for one.
        const width = piece.width > 4 ? piece.width - 1 : piece.width;
        context.fillRect(piece.x, piece.y, width, ROW_HEIGHT);
      }
    }
    context.fillStyle = color("text");
    context.font = "13px system-ui, sans-serif";
    for (const heading of this.headings) {
      context.fillText(heading.text, 0, heading.y, this.width);
    }
  }

  // Index of the block under a point; -1: none.
  blockAt(x, y) {
    for (const [top, pieces] of this.rows) {
      if (y < top || y > top + ROW_HEIGHT) continue;
      const at = d3.bisector((piece) => piece.x).right(pieces, x) - 1;
      if (at >= 0 && x <= pieces[at].x + Math.max(1, pieces[at].width)) return pieces[at].index;
    }
    return -1;
  }

  select(index) {
    this.selected = index;
    const {block, pieces} = this.blocks[index];
    const context = this.outline.getContext("2d");
    context.clearRect(0, 0, this.width, this.height);
    context.strokeStyle = color("text");
    context.lineWidth = 2;
    for (const piece of pieces) {
      context.strokeRect(piece.x, piece.y - 1, Math.max(piece.width, 2), ROW_HEIGHT + 2);
    }
    const rows = [
      ["block", formatHex(block.address)],
      ["size", `${formatSize(block.size)} (${formatCount(block.size)} bytes)`],
      ["state", STATES[block.state] ? STATES[block.state].name : block.state],
    ];
    if (block.state !== "i") {
      rows.push(["requested", `${formatSize(block.requested)} (${formatCount(block.requested)} bytes)`],
                ["allocated", block.position < 0 ? "before the recording"
                                                 : `at ${this.noun} ${formatCount(block.position)}`]);
    }
    const segment = block.segment;
    rows.push(["segment", `${formatHex(segment.address)}, ${formatSize(Number(segment.total_size))}` +
        `${segment.is_expandable ? ", expandable" : ""}`]);
    const list = make("dl", {"data-address": formatHex(block.address), "data-size": block.size});
    for (const [name, value] of rows) {
      list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    }
    this.details.replaceChildren(list);
    const stack = block.state === "i" ? undefined : this.page.stacks[block.stack];
    if (stack !== undefined) {
      const frames = make("ol", {class: "frames"});
      for (const frame of stack.frames || []) frames.append(make("li", {}, this.page.frames[frame]));
      this.details.append(make("p", {class: "stack"}, stack.summary),
                          frames.children.length > 1 ? frames : "");
    }
  }
}
