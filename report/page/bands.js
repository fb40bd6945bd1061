// Draws active memory: blocks piled up in the order in which they were allocated, each as high as it is large. A column
// of pixels shows one true state with an exact top: the moment, among those it represents, at which most memory was
// active.

const NOTHING = 0x1fffffff;
const SMALLER = 0x1ffffffe;  // all blocks below the least size together
const BLOCK_MASK = 0x1fffffff;
const EDGE_BIT = 0x20000000;     // lowest row of a band that has room for a line
const PENDING_BIT = 0x40000000;  // freed, but not yet back with the allocator

/**
 * The block at each place: columns of rows, the lowest row first.
 * @typedef {{
 *   from: number, to: number, low: number, high: number, axis: string, least: number,
 *   isSegments: boolean, only: string,
 *   width: number, height: number,
 *   moments: Uint32Array, blocks: Uint32Array,
 * }} Picture
 */

class Bands {
  /** @param {Run} run @param {View} view */
  constructor(run, view) {
    this.run = run;
    this.view = view;
    /** @type {Map<IntervalTree, LiveList>} */
    this.live = new Map();
    /** @type {Picture | null} the last that was finished */
    this.picture = null;
    /** @type {Picture | null} */
    this.begun = null;
    this.column = 0;
    this.canvas = document.createElement("canvas");
  }

  /**
   * Returns whether the finished picture is `wanted`.
   * @param {Omit<Picture, "moments" | "blocks">} wanted
   */
  shows(wanted) {
    const picture = /** @type {any} */ (this.picture);
    return picture !== null && Object.entries(wanted).every(([name, value]) => picture[name] === value);
  }

  /**
   * Works on the picture for at most `milliseconds`. One that was begun is finished before the next one, so that
   * something new appears while the view moves.
   * @param {Omit<Picture, "moments" | "blocks">} wanted @param {Coloring} coloring
   * @param {number} milliseconds
   * @returns whether `wanted` is finished
   */
  work(wanted, coloring, milliseconds) {
    if (this.shows(wanted)) return true;
    const until = performance.now() + milliseconds;
    if (this.begun === null) {
      this.begun = {
        ...wanted,
        moments: new Uint32Array(wanted.width),
        blocks: new Uint32Array(wanted.width * wanted.height)
      };
      this.column = 0;
    }
    const {begun} = this;
    while (this.column < begun.width) {
      this.layColumn(begun, this.column++, coloring);
      if (performance.now() > until) return false;
    }
    this.picture = begun;
    this.begun = null;
    this.paint(coloring);
    return this.shows(wanted);
  }

  /** Discards what was drawn for other entries or other groups. */
  drop() { this.picture = this.begun = null; }

  /**
   * Returns the moment that a column shows.
   * @param {Picture} picture @param {number} column
   */
  momentOf(picture, column) {
    const step = (picture.to - picture.from) / picture.width;
    const x = picture.from + column * step;
    const first = this.view.momentAt(x);
    const next = this.view.momentAt(x + step);
    if (next <= first) return this.view.momentAt(x + step / 2);
    return (picture.isSegments ? this.run.reservedTree : this.run.activeTree).find(first, next);
  }

  /** @param {Picture} picture @param {number} column @param {Coloring} coloring */
  layColumn(picture, column, coloring) {
    const {run} = this;
    const {height, low, high, least} = picture;
    const {group, sizes, lives} = coloring;
    const {only} = this.view.state;
    const live = this.live.get(lives) ?? new LiveList(lives);
    this.live.set(lives, live);
    const moment = this.momentOf(picture, column);
    picture.moments[column] = moment;
    const count = live.moveTo(moment);
    const {list} = live;
    const {blocks} = picture;
    const {freed} = run;
    const first = column * height;
    const scale = height / (high - low);
    let bytes = 0;
    let row = 0;
    if (least > 0) {
      for (let i = 0; i < count; ++i)
        if (sizes[list[i]] < least && (only < 0 || group[list[i]] === only)) bytes += sizes[list[i]];
      const top = Math.min(height, Math.round((bytes - low) * scale));
      while (row < top) blocks[first + row++] = SMALLER;
    }
    for (let i = 0; i < count && row < height; ++i) {
      const entry = list[i];
      if (sizes[entry] < least || (only >= 0 && group[entry] !== only)) continue;
      bytes += sizes[entry];
      let top = Math.round((bytes - low) * scale);
      if (top <= row) continue;
      if (top > height) top = height;
      const mark = !picture.isSegments && freed[entry] <= moment ? entry | PENDING_BIT : entry;
      if (top - row >= 4) blocks[first + row++] = mark | EDGE_BIT;
      while (row < top) blocks[first + row++] = mark;
    }
    while (row < height) blocks[first + row++] = NOTHING;
  }

  /**
   * Draws the finished picture in the colours of `coloring`.
   * @param {Coloring} coloring
   */
  paint(coloring) {
    const {picture, canvas} = this;
    if (picture === null || picture.isSegments !== coloring.isSegments) return;
    const {width, height, blocks} = picture;
    canvas.width = width;
    canvas.height = height;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const {group, pixels: colors} = coloring;
    const {lit} = this.view.state;
    const smaller = themePixel("smaller");
    const back = themePixel("back");
    for (let column = 0; column < width; ++column) {
      const first = column * height;
      let before = -1;
      let pixel = 0;
      for (let row = 0, at = (height - 1) * width + column; row < height; ++row, at -= width) {
        const mark = blocks[first + row];
        if (mark !== before) {
          before = mark;
          const entry = mark & BLOCK_MASK;
          if (entry === NOTHING) break;  // nothing is above the topmost entry
          pixel = entry === SMALLER ? smaller : colors[group[entry]];
          if (mark & PENDING_BIT) pixel = mix(pixel, back, 0.55);
          if (lit >= 0 && (entry === SMALLER || group[entry] !== lit)) pixel = mix(pixel, back, FADED);
          if (mark & EDGE_BIT) pixel = mix(pixel, back, 0.28);
        }
        pixels[at] = pixel;
      }
    }
    context.putImageData(image, 0, 0);
  }

  /**
   * Returns the rows that a block has in a column; null if none. Blocks ascend with the rows.
   * @param {number} column @param {number} wanted
   */
  rowsOf(column, wanted) {
    const picture = /** @type {Picture} */ (this.picture);
    const {height, blocks} = picture;
    const first = column * height;
    const at = (/** @type {number} */ row) => {
      const entry = blocks[first + row] & BLOCK_MASK;
      return entry === SMALLER ? -1 : entry;
    };
    let low = 0;
    let high = height;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(middle) < wanted) low = middle + 1;
      else high = middle;
    }
    if (low >= height || at(low) !== wanted) return null;
    let end = low + 1;
    while (end < height && at(end) === wanted) ++end;
    return {from: low, to: end};
  }

  /**
   * Returns the block at a pixel, counted from the lower left; -1 if none.
   * @param {number} column @param {number} row
   */
  blockAt(column, row) {
    const {picture} = this;
    if (picture === null || column < 0 || row < 0 || column >= picture.width || row >= picture.height) return -1;
    const entry = picture.blocks[column * picture.height + row] & BLOCK_MASK;
    return entry >= SMALLER ? -1 : entry;
  }
}

/**
 * Returns a pixel mixed from `share` of `other` and the rest of `pixel`.
 * @param {number} pixel @param {number} other @param {number} share
 */
function mix(pixel, other, share) {
  let result = 0xff000000;
  for (let shift = 0; shift < 24; shift += 8) {
    const a = pixel >> shift & 255;
    const b = other >> shift & 255;
    result |= Math.round(a + (b - a) * share) << shift;
  }
  return result >>> 0;
}
