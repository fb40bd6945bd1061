// Reads columns of numbers as report/run/run_data.h packs them.

/** @typedef {{name: string, count: number, unit: number, width: number, delta: boolean, bytes: number}} ColumnHead */

/** @param {string} text @returns {Uint8Array} */
function decodeBase64(text) {
  const fromBase64 = /** @type {any} */ (Uint8Array).fromBase64;
  if (fromBase64) return fromBase64.call(Uint8Array, text);
  const bytes = atob(text);
  const result = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; ++i) result[i] = bytes.charCodeAt(i);
  return result;
}

/** @param {Uint8Array} bytes in zlib's format */
async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Joins the planes of a column into `out`, an array of its length.
 * @template {Float64Array | Uint32Array | Uint8Array} T
 * @param {Uint8Array} planes @param {ColumnHead} head @param {T} out
 */
function joinPlanes(planes, head, out) {
  const {count, width, unit, delta} = head;
  if (width <= 3 && !delta) {
    const second = width > 1 ? count : -1;
    const third = width > 2 ? 2 * count : -1;
    for (let i = 0; i < count; ++i) {
      let value = planes[i];
      if (second > 0) value |= planes[second + i] << 8;
      if (third > 0) value |= planes[third + i] << 16;
      out[i] = value * unit;
    }
    return out;
  }
  let before = 0;
  for (let i = 0; i < count; ++i) {
    let value = 0;
    for (let plane = width - 1; plane >= 0; --plane) value = value * 256 + planes[plane * count + i];
    if (delta && i > 0) value = before + (value % 2 === 0 ? value / 2 : -(value + 1) / 2);
    before = value;
    out[i] = value * unit;
  }
  return out;
}

class Columns {
  /**
   * Unpacks all columns from the positions that `heads` gives.
   * @param {ColumnHead[]} heads @param {string} base64
   */
  static async read(heads, base64) {
    const bytes = decodeBase64(base64);
    let at = 0;
    const parts = heads.map((head) => {
      const part = bytes.subarray(at, at + head.bytes);
      at += head.bytes;
      return inflate(part);
    });
    const planes = await Promise.all(parts);
    return new Columns(heads, planes);
  }

  /** @param {ColumnHead[]} heads @param {Uint8Array[]} planes */
  constructor(heads, planes) { this.heads = new Map(heads.map((head, i) => [head.name, {head, planes: planes[i]}])); }

  /** @param {string} name */
  of(name) {
    const found = this.heads.get(name);
    if (!found) throw new Error(`the page has no column ${name}`);
    return found;
  }

  /** @param {string} name */
  doubles(name) {
    const {head, planes} = this.of(name);
    return joinPlanes(planes, head, new Float64Array(head.count));
  }

  /** @param {string} name for values below 2^32 */
  words(name) {
    const {head, planes} = this.of(name);
    return joinPlanes(planes, head, new Uint32Array(head.count));
  }

  /** @param {string} name for values below 256 */
  bytes(name) {
    const {head, planes} = this.of(name);
    return head.unit === 1 && head.width === 1 && !head.delta ? planes :
                                                                joinPlanes(planes, head, new Uint8Array(head.count));
  }

  /** @param {string} name of a JSON text */
  json(name) { return JSON.parse(new TextDecoder().decode(this.of(name).planes)); }
}
