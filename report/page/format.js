"use strict";
// Numbers as the text reports show them. 64-bit numbers are strings in the report's
// JSON; sizes and positions are exact as JavaScript numbers, addresses and stream
// handles need not be.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// "6.73 GiB"; three or four digits, as report/words/sizes.h.
function formatSize(bytes) {
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1024 && unit + 1 < UNITS.length) {
    value /= 1024;
    ++unit;
  }
  // What rounds up to 1024 belongs to the next unit.
  if (unit > 0 && value >= 1023.5 && unit + 1 < UNITS.length) {
    value /= 1024;
    ++unit;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return (bytes < 0 ? "-" : "") + value.toFixed(digits) + " " + UNITS[unit];
}

// "7,226,785,792"
function formatCount(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

function formatHex(text) {
  return "0x" + BigInt.asUintN(64, BigInt(text)).toString(16);
}

function streamName(stream) {
  return stream === "0" ? "stream 0" : "stream " + formatHex(stream);
}

function poolName(id) {
  return id[0] === "0" && id[1] === "0" ? "default pool" : `pool (${id[0]},${id[1]})`;
}

// An element with text and children; text never becomes markup.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A colour of page.css.
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// Far apart from its neighbours.
function hue(index) {
  return `hsl(${Math.round((index * 137.508 + 210) % 360)} 55% 55%)`;
}
