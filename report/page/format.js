"use strict";
// Formats numbers as the text reports show them, and makes elements with text.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/**
 * Returns "6.73 GiB", with three or four digits as in report/words/sizes.h.
 * @param {number} bytes
 */
function formatSize(bytes) {
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1024 && unit + 1 < UNITS.length) {
    value /= 1024;
    ++unit;
  }
  // A value that rounds up to 1024 belongs to the next unit.
  if (unit > 0 && value >= 1023.5 && unit + 1 < UNITS.length) {
    value /= 1024;
    ++unit;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  // toFixed() rounds half away from zero, the others to even. Only eighths can lie halfway.
  const scaled = value * 10 ** digits;
  if (Number.isInteger(8 * value) && scaled % 2 === 0.5) value = Math.floor(scaled) / 10 ** digits;
  return (bytes < 0 ? "-" : "") + value.toFixed(digits) + " " + UNITS[unit];
}

/**
 * Returns "7,226,785,792".
 * @param {number} count
 */
function formatCount(count) { return String(count).replace(/\B(?=(\d{3})+$)/g, ","); }

/** @param {number} address */
function formatHex(address) { return "0x" + address.toString(16); }

/**
 * Returns "+1.00 GiB".
 * @param {number} bytes
 */
function formatChange(bytes) { return (bytes > 0 ? "+" : "") + formatSize(bytes); }

/**
 * Returns microseconds as exactly as a range of `span` of them requires; 0 means four digits.
 * @param {number} time @param {number} span
 */
function formatTime(time, span) {
  if (span === 0) {
    const digits = (/** @type {number} */ value) => value.toFixed(
        value < 9.9995     ? 3 :
            value < 99.995 ? 2 :
            value < 999.95 ? 1 :
                             0);
    return time < 1e3 ? `${Math.round(time)} us` : time < 1e6 ? `${digits(time / 1e3)} ms` : `${digits(time / 1e6)} s`;
  }
  if (span < 5e3) return `${formatCount(Math.round(time))} us`;
  if (span < 5e6) return `${(time / 1e3).toFixed(span < 5e4 ? 2 : span < 5e5 ? 1 : 0)} ms`;
  return `${(time / 1e6).toFixed(span < 5e7 ? 2 : span < 5e8 ? 1 : 0)} s`;
}

/**
 * Returns an element with text and children; text never becomes markup.
 * @param {string} tag @param {Record<string, string | number>} attributes @param {(Node | string)[]} children
 */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}
