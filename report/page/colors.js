// Colours: of the page's theme, and of as many stacks as there are.

/** @type {Map<string, string>} since the theme last changed */
const themeColors = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themeColors.clear());

/**
 * A colour of page.css.
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
 * A colour by lightness, colourfulness and hue as eyes see them (Oklch), as ImageData
 * holds it: 0xAABBGGRR.
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
 * As CSS writes it.
 * @param {number} pixel
 */
function cssOf(pixel) { return `rgb(${pixel & 255} ${pixel >> 8 & 255} ${pixel >> 16 & 255})`; }

/**
 * A pixel of one of the theme's colours.
 * @param {string} name
 */
function themePixel(name) {
  const text = color(name);
  const value = parseInt(text.slice(1), 16);
  return (0xff000000 | (value & 255) << 16 | (value & 0xff00) | value >> 16) >>> 0;
}

/**
 * The colour of the group that is `rank`-th in size: neighbours far apart in hue, and
 * three tones, so that some thirty can be told apart.
 * @param {number} rank
 */
function rankPixel(rank) {
  const hue = (255 + rank * 137.508) % 360;
  const tone = Math.floor(rank / 9) % 3;
  return isDark() ? pixelOf([0.66, 0.53, 0.76][tone], 0.115, hue) : pixelOf([0.68, 0.56, 0.79][tone], 0.125, hue);
}

/**
 * From short lives, light, to long ones, deep.
 * @param {number} share 0 to 1
 */
function agePixel(share) {
  return isDark() ? pixelOf(0.88 - 0.5 * share, 0.06 + 0.08 * share, 95 + 175 * share) :
                    pixelOf(0.9 - 0.5 * share, 0.06 + 0.08 * share, 95 + 175 * share);
}

// What allocations can be coloured by.
const COLORINGS = /** @type {const} */ ({
  line: "line of code",
  stack: "stack",
  category: "category",
  age: "lifetime",
  stream: "stream",
});

/** Gives every allocation a group, and every group a colour. */
class Coloring {
  /** @param {Run} run @param {keyof typeof COLORINGS} by */
  constructor(run, by) {
    this.run = run;
    this.by = by;
    /** @type {string[]} */
    this.names = [];
    this.group = new Uint32Array(run.size.length);
    if (by === "age") this.groupByAge();
    else this.groupByName();
    this.weight = this.weigh();                        // of each group
    this.pixels = new Uint32Array(this.names.length);  // likewise
    /** Groups, the largest first. */
    this.order = Array.from(this.names.keys()).sort((a, b) => this.weight[b] - this.weight[a] || a - b);
    this.paint();
  }

  groupByName() {
    const {run, by} = this;
    const numbers = new Map();
    const numberOf = (/** @type {string} */ name) => {
      if (!numbers.has(name)) {
        numbers.set(name, this.names.length);
        this.names.push(name);
      }
      return numbers.get(name);
    };
    if (by === "stream") {
      for (let i = 0; i < this.group.length; ++i) {
        this.group[i] = numberOf("stream " + (run.streams[run.stream[i]] || "?"));
      }
      return;
    }
    const names = by === "category" ? run.tags : by === "line" ? run.lines : run.labels;
    const ofStack = by === "stack" ? names.map((_, i) => i) : names.map((name) => numberOf(name || "unnamed"));
    if (by === "stack") this.names = names;
    for (let i = 0; i < this.group.length; ++i) this.group[i] = ofStack[run.stack[i]];
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

  /** How much of the picture each group takes: bytes times moments. */
  weigh() {
    const {run, group} = this;
    const weight = new Float64Array(this.names.length);
    for (let i = 0; i < group.length; ++i) weight[group[i]] += run.block[i] * (run.end[i] - run.start[i]);
    return weight;
  }

  /** Gives colours, the largest group first. Again when the theme has changed. */
  paint() {
    const {names} = this;
    let ranked = 0;
    const neutral = pixelOf(isDark() ? 0.5 : 0.76, 0.02, 250);
    this.order.forEach((entry) => {
      this.pixels[entry] = names[entry] === "no stack recorded" || names[entry] === "" ? neutral :
          this.by === "age" ? (entry + 1 === names.length ? neutral : agePixel(entry / (names.length - 2))) :
                              rankPixel(ranked++);
    });
  }

  /** @param {number} allocation */
  pixelOf(allocation) { return this.pixels[this.group[allocation]]; }
}
