// Colours of the page's theme, and colours for any number of stacks.

/** @type {Map<string, string>} since the theme last changed */
const themeColors = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themeColors.clear());

/**
 * Returns a colour of page.css.
 * @param {string} name
 */
function color(name) {
  let value = themeColors.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    themeColors.set(name, value);
  }
  return value;
}

function isDark() { return matchMedia("(prefers-color-scheme: dark)").matches; }

/**
 * Returns a colour given by perceived lightness, colourfulness and hue (Oklch), in the format of ImageData: 0xAABBGGRR.
 * @param {number} lightness 0 to 1 @param {number} chroma @param {number} hue degrees
 */
function pixelOf(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue * Math.PI / 180);
  const b = chroma * Math.sin(hue * Math.PI / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
  const channel = (/** @type {number} */ linear) => {
    const light = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.max(0, Math.min(1, light)));
  };
  const red = channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
  const green = channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
  const blue = channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
  return (0xff000000 | blue << 16 | green << 8 | red) >>> 0;
}

/**
 * Returns a pixel's colour in the syntax of CSS.
 * @param {number} pixel
 */
function cssOf(pixel) { return `rgb(${pixel & 255} ${pixel >> 8 & 255} ${pixel >> 16 & 255})`; }

/**
 * Returns the pixel for one of the theme's colours.
 * @param {string} name
 */
function themePixel(name) {
  const text = color(name);
  const value = parseInt(text.slice(1), 16);
  return (0xff000000 | (value & 255) << 16 | (value & 0xff00) | value >> 16) >>> 0;
}

/**
 * Returns the colour of the group that is `rank`-th in size. Neighbours are far apart in hue and there are three tones,
 * so that some thirty groups are distinguishable.
 * @param {number} rank
 */
function rankPixel(rank) {
  const hue = (255 + rank * 137.508) % 360;
  const tone = Math.floor(rank / 9) % 3;
  return isDark() ? pixelOf([0.66, 0.53, 0.76][tone], 0.115, hue) : pixelOf([0.68, 0.56, 0.79][tone], 0.125, hue);
}

/**
 * Returns a colour by age, from light for short lives to deep for long ones.
 * @param {number} share 0 to 1
 */
function agePixel(share) {
  return pixelOf((isDark() ? 0.88 : 0.9) - 0.5 * share, 0.06 + 0.08 * share, 95 + 175 * share);
}

// Lightness, colourfulness and hue of the categories, the same on every page, for the theme's light side.
const CATEGORY_TONES = /** @type {Record<string, [number, number, number]>} */ ({
  "parameters": [0.62, 0.14, 255],
  "buffers": [0.78, 0.07, 240],
  "gradients": [0.63, 0.17, 30],
  "optimizer state": [0.55, 0.15, 300],
  "activations": [0.72, 0.14, 155],
  "logits and loss": [0.66, 0.17, 350],
  "temporaries": [0.82, 0.12, 90],
  "inputs": [0.72, 0.1, 205],
  "KV cache": [0.66, 0.13, 120],
  "copies of weights in another type": [0.74, 0.1, 275],
  "workspaces": [0.52, 0.09, 60],
  "communication": [0.58, 0.13, 190],
});

// The choices of colouring. The last one shows segments instead of blocks.
const COLORINGS = /** @type {const} */ ({
  category: "category",
  module: "module",
  line: "line of code",
  stack: "stack",
  age: "age",
  stream: "stream",
  segment: "segments",
});
const MODULE_GROUPS = 40;

/** Gives every allocation, or every range of reserved memory, a group, and every group a colour. */
class Coloring {
  /** @param {Run} run @param {keyof typeof COLORINGS} by */
  constructor(run, by) {
    this.run = run;
    this.by = by;
    this.isSegments = by === "segment";
    // The tree of what is drawn.
    this.lives = this.isSegments ? run.ranges.tree : run.lives;
    this.sizes = this.isSegments ? run.ranges.size : run.block;
    /** @type {string[]} */
    this.names = [];
    this.group = new Uint32Array(this.sizes.length);
    this.groupAll();
    this.weight = this.weigh();                        // of each group
    this.pixels = new Uint32Array(this.names.length);  // likewise
    /** Groups, the largest first. */
    this.order = Array.from(this.names.keys()).sort((a, b) => this.weight[b] - this.weight[a] || a - b);
    this.paint();
  }

  groupAll() {
    const {run, by} = this;
    const {ranges} = run;
    if (by === "age") this.groupByAge();
    else if (by === "segment") this.groupBy((i) => ranges.groupName(run, i));
    else if (by === "stream") this.groupBy((i) => "stream " + (run.streams[run.stream[i]] || "?"));
    else if (by === "category") this.groupByNumber(run.category, run.categoryNames);
    else if (by === "module") this.groupByNumber(run.module, this.modulePrefixes());
    else this.groupByNumber(run.stack, by === "line" ? run.lines : run.labels);
  }

  /** @param {(entry: number) => string} nameOf */
  groupBy(nameOf) {
    /** @type {Map<string, number>} */
    const numbers = new Map();
    for (let i = 0; i < this.group.length; ++i) {
      const name = nameOf(i);
      let number = numbers.get(name);
      if (number === undefined) {
        numbers.set(name, number = this.names.length);
        this.names.push(name);
      }
      this.group[i] = number;
    }
  }

  /**
   * Puts entries whose numbers have the same name into one group.
   * @param {Uint32Array} numbers @param {string[]} names
   */
  groupByNumber(numbers, names) {
    /** @type {Map<string, number>} */
    const groups = new Map();
    const groupOf = names.map((name) => {
      if (!groups.has(name)) groups.set(name, this.names.push(name || "unnamed") - 1);
      return /** @type {number} */ (groups.get(name));
    });
    for (let i = 0; i < this.group.length; ++i) this.group[i] = groupOf[numbers[i]];
  }

  /** Groups by modules, as deep as colours are distinguishable. */
  modulePrefixes() {
    const parts = this.run.modules.map((path) => path.split("."));
    let names = this.run.modules.map((path) => path || "no module known");
    for (let depth = Math.max(...parts.map((each) => each.length)); depth >= 1; --depth) {
      if (new Set(names).size <= MODULE_GROUPS) break;
      names = parts.map((each) => each.slice(0, depth).join(".") || "no module known");
    }
    return names;
  }

  groupByAge() {
    const {run} = this;
    const steps = 16;
    const scale = steps / Math.log2(run.last + 2);
    for (let i = 0; i < steps; ++i) {
      const least = Math.max(1, Math.round(2 ** (i / scale)));
      this.names.push(`lives ${formatCount(least)} events or more`);
    }
    this.names.push("never freed");
    for (let i = 0; i < this.group.length; ++i) {
      const life = run.end[i] - run.start[i];
      this.group[i] = run.end[i] > run.last ? steps : Math.min(steps - 1, Math.floor(Math.log2(life + 1) * scale));
    }
  }

  /** Returns how much of the picture each group takes: bytes times moments. */
  weigh() {
    const {lives, sizes, group} = this;
    const {starts, ends} = lives;
    const weight = new Float64Array(this.names.length);
    for (let i = 0; i < group.length; ++i) weight[group[i]] += sizes[i] * (ends[i] - starts[i]);
    return weight;
  }

  /** Gives colours, the largest group first; called again when the theme changes. */
  paint() {
    const {names} = this;
    let ranked = 0;
    const neutral = pixelOf(isDark() ? 0.5 : 0.76, 0.02, 250);
    const isNeutral =
        (/** @type {string} */ name) => ["no stack recorded", "", "unknown", "no module known"].includes(name);
    this.order.forEach((entry) => {
      const tone = this.by === "category" ? CATEGORY_TONES[names[entry]] : undefined;
      this.pixels[entry] = isNeutral(names[entry]) ? neutral :
          this.by === "age" ? (entry + 1 === names.length ? neutral : agePixel(entry / (names.length - 2))) :
          tone              ? pixelOf(tone[0] - (isDark() ? 0.06 : 0), tone[1], tone[2]) :
                              rankPixel(ranked++);
    });
  }

  /** @param {number} entry */
  pixelOf(entry) { return this.pixels[this.group[entry]]; }

  /**
   * Returns the entries that exist at a moment.
   * @param {number} moment
   */
  entriesAt(moment) {
    const state = this.run.stateAt(moment);
    return this.isSegments ? state.ranges : state.blocks;
  }
}
