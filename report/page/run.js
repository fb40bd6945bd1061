// A run with all its events. A moment is the number of preceding events: state and figures "at moment m" are those
// after the first m events.

/**
 * What exists at one moment, each ascending by address.
 * @typedef {{moment: number, blocks: Uint32Array, ranges: Uint32Array}} State
 */

const NO_STACK = -1;

class Run {
  /** @param {{start_allocations: number, start_ranges: number, columns: ColumnHead[]}} head @param {string} base64 */
  static async read(head, base64) { return new Run(head, await Columns.read(head.columns, base64)); }

  /** @param {{start_allocations: number, start_ranges: number}} head @param {Columns} columns */
  constructor(head, columns) {
    const texts = columns.json("texts");
    this.frames = /** @type {string[]} */ (texts.frames || []);
    this.labels = /** @type {string[]} */ (texts.labels || []);  // of stacks, no two alike
    this.lines = /** @type {string[]} */ (texts.lines || []);    // of stacks: the line of code
    this.isOwn = new Uint8Array(this.frames.length);             // frames of the user's own code
    for (const frame of texts.own || []) this.isOwn[frame] = 1;
    this.tags = /** @type {string[]} */ (texts.tags || []);
    this.texts = /** @type {string[]} */ (texts.texts || []);
    this.streams = /** @type {string[]} */ (texts.streams || []);
    this.pools = /** @type {string[]} */ (texts.pools || []);
    this.kindNames = /** @type {string[]} */ (texts.kinds || []);
    this.categoryNames = /** @type {string[]} */ (texts.categories || []);
    this.modules = /** @type {string[]} */ (texts.modules || []);
    this.phaseNames = /** @type {string[]} */ (texts.phases || []);

    this.kind = columns.bytes("kind");
    this.events = this.kind.length;
    this.last = this.events;  // the last moment
    this.position = columns.words("position");
    const times = columns.doubles("time");
    /** @type {Float64Array | null} microseconds since the first event, never descending */
    this.time = times.length === this.events && times.length > 0 ? times : null;

    this.startAllocations = head.start_allocations;
    this.address = columns.doubles("address");
    this.size = columns.doubles("size");
    this.block = columns.doubles("block");
    this.stack = columns.words("stack");
    this.stream = columns.words("stream");
    this.pool = columns.words("pool");
    this.category = columns.words("category");
    this.module = columns.words("module");
    this.phaseBegin = columns.words("phase_begin");  // a position
    this.phase = columns.words("phase");
    this.step = columns.words("step");
    for (let i = 0; i < this.block.length; ++i) {
      if (this.block[i] === 0) this.block[i] = Math.max(512, Math.ceil(this.size[i] / 512) * 512);
    }
    this.stackFrames = columns.words("stack_frames");
    this.stackBegin = Run.sumsOf(columns.words("stack_depth"));
    const count = this.size.length;
    const never = this.last + 1;
    this.start = new Uint32Array(count);                    // moment from which on it exists
    this.freed = new Uint32Array(count).fill(never);        // moment from which on the script has freed it
    this.end = new Uint32Array(count).fill(never);          // moment from which on its block is free
    this.freeStack = new Int32Array(count).fill(NO_STACK);  // the stack that freed it
    this.subject = new Uint32Array(this.events);            // allocation, or row of others
    this.otherEvent = columns.words("other_event");
    this.otherAddress = columns.doubles("other_address");
    this.otherSize = columns.doubles("other_size");
    this.otherStream = columns.words("other_stream");
    this.otherText = columns.words("other_text");
    this.otherStack = columns.words("other_stack");
    const number = (/** @type {string} */ name) => this.kindNames.indexOf(name);
    this.allocKind = number("alloc");
    this.freeKind = number("free_requested");
    this.completedKind = number("free_completed");
    this.oomKind = number("oom");
    this.segmentKinds = ["segment_alloc", "segment_free", "segment_map", "segment_unmap"].map(number);
    this.readEvents(columns);
    // These are the four figures at every moment.
    this.active = new Float64Array(this.last + 1);
    this.allocated = new Float64Array(this.last + 1);
    this.requested = new Float64Array(this.last + 1);
    this.reserved = new Float64Array(this.last + 1);
    this.ranges = new Ranges(columns);
    this.lives = new IntervalTree(this.start, this.end);
    this.sumUp();
    this.activeTree = new MaxTree(this.active);
    this.reservedTree = new MaxTree(this.reserved);
    this.peak = this.findPeak();
    this.liveList = new LiveList(this.lives);
    this.liveRanges = new LiveList(this.ranges.tree);
  }

  /**
   * Returns where each of some lists begins, one after the other, and where the last ends.
   * @param {Uint32Array} lengths
   */
  static sumsOf(lengths) {
    const sums = new Uint32Array(lengths.length + 1);
    for (let i = 0; i < lengths.length; ++i) sums[i + 1] = sums[i] + lengths[i];
    return sums;
  }

  /**
   * Returns the frames of a stack, innermost first.
   * @param {number} stack @returns {string[]}
   */
  framesOf(stack) {
    const frames = this.stackFrames.subarray(this.stackBegin[stack], this.stackBegin[stack + 1]);
    return Array.from(frames, (frame) => this.frames[frame]);
  }

  /**
   * Returns which stacks have a text in a frame, their label or their tag, ignoring case.
   * @param {string} text @returns {boolean[]}
   */
  stacksWith(text) {
    const wanted = text.toLowerCase();
    const has = (/** @type {string} */ name) => name.toLowerCase().includes(wanted);
    const frames = this.frames.map(has);
    return this.labels.map(
        (label, stack) => has(label) || has(this.tags[stack]) ||
            this.stackFrames.subarray(this.stackBegin[stack], this.stackBegin[stack + 1])
                .some((frame) => frames[frame]));
  }

  /**
   * Finds which event began and ended each thing.
   * @param {Columns} columns
   */
  readEvents(columns) {
    const freed = columns.words("freed");
    const freeStack = columns.words("free_stack");
    for (const allocation of columns.words("start_pending")) this.freed[allocation] = 0;
    let allocations = this.startAllocations;
    let frees = 0;
    let requests = 0;
    let others = 0;
    const {kind, subject, allocKind, freeKind, completedKind} = this;
    for (let event = 0; event < this.events; ++event) {
      if (kind[event] === allocKind) {
        this.start[allocations] = event + 1;
        subject[event] = allocations++;
      } else if (kind[event] === freeKind) {
        const allocation = freed[frees++];
        this.freed[allocation] = event + 1;
        this.freeStack[allocation] = freeStack[requests++];
        subject[event] = allocation;
      } else if (kind[event] === completedKind) {
        const allocation = freed[frees++];
        this.end[allocation] = event + 1;
        subject[event] = allocation;
      } else {
        subject[event] = others++;
      }
    }
  }

  /** Computes the four figures at every moment. */
  sumUp() {
    const moments = this.last + 1;
    let active = 0;
    let allocated = 0;
    let requested = 0;
    for (let i = 0; i < this.startAllocations; ++i) {
      active += this.block[i];
      requested += this.size[i];
      if (this.freed[i] > 0) allocated += this.block[i];
    }
    const {ranges} = this;
    for (let i = 0; i < ranges.begin.length; ++i) {
      this.reserved[ranges.begin[i]] += ranges.size[i];
      if (ranges.end[i] < moments) this.reserved[ranges.end[i]] -= ranges.size[i];
    }
    let reserved = this.reserved[0];
    const {kind, subject, allocKind, freeKind, completedKind} = this;
    for (let moment = 0; moment < moments; ++moment) {
      if (moment > 0) {
        const event = moment - 1;
        if (kind[event] === allocKind) {
          active += this.block[subject[event]];
          allocated += this.block[subject[event]];
          requested += this.size[subject[event]];
        } else if (kind[event] === freeKind) {
          allocated -= this.block[subject[event]];
        } else if (kind[event] === completedKind) {
          active -= this.block[subject[event]];
          requested -= this.size[subject[event]];
        }
        reserved += this.reserved[moment];
      }
      this.active[moment] = active;
      this.allocated[moment] = allocated;
      this.requested[moment] = requested;
      this.reserved[moment] = reserved;
    }
  }

  /**
   * Finds the moment of the report's figures of the peak: among the start and the moments after an allocation or an
   * OOM, the first of those with the most active memory among those with the most reserved memory.
   */
  findPeak() {
    let peak = 0;
    for (let moment = 1; moment <= this.last; ++moment) {
      if (this.kind[moment - 1] !== this.allocKind && this.kind[moment - 1] !== this.oomKind) continue;
      const more = this.reserved[moment] - this.reserved[peak] || this.active[moment] - this.active[peak];
      if (more > 0) peak = moment;
    }
    return peak;
  }

  /**
   * Returns the blocks in use and the ranges at a moment.
   * @param {number} moment @returns {State}
   */
  stateAt(moment) {
    const blocks = this.liveList.list.slice(0, this.liveList.moveTo(moment));
    const ranges = this.liveRanges.list.slice(0, this.liveRanges.moveTo(moment));
    return {moment, blocks: sortBy(blocks, this.address), ranges: sortBy(ranges, this.ranges.address)};
  }

  /** @param {number} allocation @param {number} moment */
  isPending(allocation, moment) { return this.freed[allocation] <= moment && moment < this.end[allocation]; }

  /**
   * Returns the position of an event in the file; -1: before the first.
   * @param {number} moment
   */
  positionOf(moment) { return moment === 0 ? -1 : this.position[moment - 1]; }

  /**
   * Returns the last moment whose event is at `position` or before.
   * @param {number} position
   */
  momentAt(position) {
    let low = 0;
    let high = this.events;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.position[middle] <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Counts what happens from the moment `from` to `to`, without the events before `from`.
   * @param {number} from @param {number} to
   */
  statisticsOf(from, to) {
    const {kind, subject} = this;
    const sums = {allocations: 0, allocated: 0, frees: 0, freed: 0, segments: 0, obtained: 0};
    for (let event = from; event < to; ++event) {
      const at = kind[event];
      if (at === this.allocKind) {
        ++sums.allocations;
        sums.allocated += this.block[subject[event]];
      } else if (at === this.freeKind) {
        ++sums.frees;
        sums.freed += this.block[subject[event]];
      } else if (at === this.segmentKinds[0] || at === this.segmentKinds[2]) {
        ++sums.segments;
        sums.obtained += this.otherSize[subject[event]];
      }
    }
    const peak = this.activeTree.find(from, to + 1);
    return {...sums, peak, active: this.active[peak]};
  }

  /**
   * Returns the next moment at which an event of one of `kinds` has happened; -1: none.
   * @param {number} moment @param {number[]} kinds @param {number} step 1 or -1
   */
  nextOf(moment, kinds, step) {
    for (let at = moment + step; at >= 1 && at <= this.last; at += step) {
      if (kinds.includes(this.kind[at - 1])) return at;
    }
    return -1;
  }
}

/** Reserved memory: segments, and mapped ranges of expandable ones. */
class Ranges {
  /** @param {Columns} columns */
  constructor(columns) {
    this.address = columns.doubles("range_address");
    this.size = columns.doubles("range_size");
    this.begin = columns.words("range_begin");
    this.end = columns.words("range_end");
    this.stream = columns.words("range_stream");
    this.pool = columns.words("range_pool");
    this.flags = columns.bytes("range_flags");
    this.tree = new IntervalTree(this.begin, this.end);
  }

  /** @param {number} range */
  isLarge(range) { return (this.flags[range] & 1) !== 0; }

  /** @param {number} range */
  isExpandable(range) { return (this.flags[range] & 2) !== 0; }

  /** @param {Run} run @param {number} range */
  groupName(run, range) {
    const pool = run.pools[this.pool[range]];
    return `${pool ? "pool " + pool : "default pool"}, ${this.isLarge(range) ? "large" : "small"}` +
        `${this.isExpandable(range) ? ", expandable" : ""}, stream ${run.streams[this.stream[range]] || "?"}`;
  }
}

/**
 * Returns `list`, ascending by the key of each entry.
 * @param {Uint32Array} list @param {Float64Array} keys
 */
function sortBy(list, keys) {
  let sorted = true;
  for (let i = 1; i < list.length && sorted; ++i) sorted = keys[list[i - 1]] <= keys[list[i]];
  return sorted ? list : list.sort((a, b) => keys[a] - keys[b]);
}
