// Two trees over long columns with sixteen children per node. They find the largest value of a range, and the intervals
// that hold a moment.

const FANOUT = 16;
const FANOUT_BITS = 4;

/** Finds the largest value of any range in O(log values). */
class MaxTree {
  /** @param {Float64Array} values */
  constructor(values) {
    this.values = values;
    /** @type {Uint32Array[]} levels[k][i]: place of the largest of 16^(k+1) values from i * 16^(k+1) */
    this.levels = [];
    for (let below = values.length; below > FANOUT;) {
      const count = Math.ceil(below / FANOUT);
      const children = this.levels[this.levels.length - 1];
      const level = new Uint32Array(count);
      for (let i = 0; i < count; ++i) {
        const end = Math.min(below, (i + 1) * FANOUT);
        let best = children ? children[i * FANOUT] : i * FANOUT;
        for (let j = i * FANOUT + 1; j < end; ++j) {
          const place = children ? children[j] : j;
          if (values[place] > values[best]) best = place;
        }
        level[i] = best;
      }
      this.levels.push(level);
      below = count;
    }
  }

  /**
   * Returns the position of the first of the largest values in [from, to), which is not empty.
   * @param {number} from @param {number} to
   */
  find(from, to) {
    const {values, levels} = this;
    let best = from;
    let i = from;
    while (i < to) {
      // This is the largest node that begins here and ends in time.
      let level = 0;
      let size = 1;
      while (level < levels.length && (i & (size * FANOUT - 1)) === 0 && i + size * FANOUT <= to) {
        ++level;
        size *= FANOUT;
      }
      const place = level === 0 ? i : levels[level - 1][i >>> (FANOUT_BITS * level)];
      if (values[place] > values[best]) best = place;
      i += size;
    }
    return best;
  }
}

/** Intervals [start, end) by ascending start. It finds those that hold a moment without visiting the others. */
class IntervalTree {
  /** @param {Uint32Array} starts ascending @param {Uint32Array} ends */
  constructor(starts, ends) {
    this.starts = starts;
    this.ends = ends;
    /** @type {Uint32Array[]} levels[k][i]: the last end of 16^(k+1) intervals */
    this.levels = [];
    for (let below = ends; below.length > 1;) {
      const level = new Uint32Array(Math.ceil(below.length / FANOUT));
      for (let i = 0; i < below.length; ++i) {
        const parent = i >> FANOUT_BITS;
        if (below[i] > level[parent]) level[parent] = below[i];
      }
      this.levels.push(level);
      below = level;
    }
  }

  /**
   * Returns how many begin at `moment` or before.
   * @param {number} moment
   */
  begun(moment) {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Appends to `list`, which has `count` entries, the intervals from `from` to before `to` that do not end by `moment`,
   * ascending. Returns the new number of entries.
   * @param {number} from @param {number} to @param {number} moment
   * @param {Uint32Array} list @param {number} count
   */
  append(from, to, moment, list, count) {
    const {ends, levels} = this;
    let i = from;
    while (i < to) {
      if (ends[i] > moment) {
        list[count++] = i++;
        continue;
      }
      let node = i;
      let level = 0;
      while (level < levels.length && (node & (FANOUT - 1)) === 0 && levels[level][node >> FANOUT_BITS] <= moment) {
        node >>= FANOUT_BITS;
        ++level;
      }
      i = (node + 1) << (FANOUT_BITS * level);
    }
    return count;
  }
}

/** The intervals that hold a moment that moves, mostly forwards. */
class LiveList {
  /** @param {IntervalTree} tree */
  constructor(tree) {
    this.tree = tree;
    this.list = new Uint32Array(tree.starts.length);
    this.count = 0;
    this.begun = 0;
    this.moment = -1;
  }

  /**
   * Fills list[0 .. count), ascending.
   * @param {number} moment
   */
  moveTo(moment) {
    const {tree, list} = this;
    const begun = tree.begun(moment);
    if (moment < this.moment) {
      this.count = tree.append(0, begun, moment, list, 0);
    } else if (moment > this.moment) {
      const {ends} = tree;
      let kept = 0;
      for (let i = 0; i < this.count; ++i) {
        const entry = list[i];
        list[kept] = entry;
        if (ends[entry] > moment) ++kept;
      }
      this.count = tree.append(this.begun, begun, moment, list, kept);
    }
    this.begun = begun;
    this.moment = moment;
    return this.count;
  }
}
