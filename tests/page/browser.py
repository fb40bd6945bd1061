"""Opens pages of memreplay report in a browser, for the tests of this folder.

Bazel makes the pages and what they are made from, as JSON, next to this file. Console errors and anything fetched are
failures.
"""

import json
import pathlib
import sys
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

HERE = pathlib.Path(__file__).absolute().parent
sys.path.append(str(HERE.parent))
from waiting import wait_until  # noqa: E402

FIGURES = ["reserved", "active", "allocated", "requested"]


def page(name):
    return HERE / f"{name}.html"


def format_size(size):
    """Returns "6.73 GiB", as the page has it."""
    value, units = float(size), ["B", "KiB", "MiB", "GiB"]
    while value >= 1023.5 and len(units) > 1:
        value /= 1024
        units.pop(0)
    digits = 0 if units[0] == "B" or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {units[0]}"


def browser():
    options = Options()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--force-device-scale-factor=1", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def joined(ranges):
    """Returns pairs of address and size, those side by side taken together."""
    result = []
    for address, size in sorted(ranges):
        if result and result[-1][0] + result[-1][1] == address:
            result[-1][1] += size
        else:
            result.append([address, size])
    return result


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = browser()

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()

    def open(self, name):
        """Opens a page; returns the report of its first device."""
        self.driver.get(page(name).as_uri())
        self.wait_until_drawn()
        return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))["devices"][0]

    def wait_until_drawn(self):
        """Waits until the first device's run is unpacked and its charts stand."""
        wait_until(lambda: self.driver.execute_script("""
            const host = document.querySelector("section.device");
            return !host || host.dataset.ready === "true";"""))

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def tearDown(self):
        errors = [entry for entry in self.driver.get_log("browser")
                  if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(errors, [])
        fetched = self.driver.execute_script(
            "return performance.getEntriesByType('resource').map((entry) => entry.name)")
        self.assertEqual([name for name in fetched if not name.startswith("data:")], [])

    def shown(self):
        """Returns what the readout says: position, and bytes by series."""
        position = int(self.find(".readout .where").get_attribute("data-position"))
        series = {item.get_attribute("data-series"): int(item.get_attribute("data-bytes"))
                  for item in self.driver.find_elements(By.CSS_SELECTOR, ".readout [data-bytes]")}
        return position, series

    def settle(self):
        """Waits until what was requested is drawn, and for what comes 60 ms after the last change (listenAtRest)."""
        self.driver.execute_async_script("""
            const done = arguments[0];
            const {chart} = document.querySelector("section.device").workbench;
            const look = () => requestAnimationFrame(() => chart.drawn ? setTimeout(done, 100) : look());
            requestAnimationFrame(look);""")

    def run_script(self, script):
        """Runs a script that knows the first device's `bench`, `run` and `view`."""
        return self.driver.execute_script(
            "const bench = document.querySelector('section.device').workbench, {run, view} = bench;"
            + script)

    def hover(self, share, height=0.5):
        """Points at a share of the timeline's width and height."""
        target = self.find(".chart .target")
        size = target.rect
        ActionChains(self.driver, duration=0).move_to_element_with_offset(
            target, int((share - 0.5) * size["width"]),
            int((0.5 - height) * size["height"])).perform()
        self.settle()

    def key(self, *keys):
        self.find("svg.chart").send_keys(*keys)
        self.settle()

    def check_curve(self, device):
        """Checks all figures at all positions of the report's curve, not just some."""
        curve = device["page"]["curve"]
        wanted = [[int(curve["position"][i])] + [int(curve[f + "_bytes"][i]) for f in FIGURES]
                  for i in range(len(curve["position"]))]
        wrong = self.driver.execute_script("""
            const {run} = document.querySelector("section.device").workbench;
            const figures = arguments[1];
            return arguments[0].filter(([position, ...bytes]) => {
              for (let at = run.momentAt(position);
                   at > 0 && run.positionOf(at) === position; --at) {
                if (figures.every((name, i) => run[name][at] === bytes[i])) return false;
              }
              return true;
            });""", wanted, FIGURES)
        self.assertEqual(wrong, [])

    def check_maps(self, device):
        """Checks the report's maps, and the peak where the page opens."""
        for map_ in device["page"]["maps"]:
            if not int(map_.get("left_out_segments", 0)):
                self.check_map(map_, "run.peak" if map_["moment"] == "peak" else "run.last")
        self.check_peak(device)
        self.check_pixels_of_blocks()

    def check_map(self, map_, moment):
        """Checks that blocks and ranges at a moment are those of the report's map."""
        blocks, ranges = self.run_script(f"const moment = {moment};" + """
            const state = run.stateAt(moment);
            return [
              Array.from(state.blocks, (block) => [run.address[block], run.block[block],
                                                  run.size[block], run.isPending(block, moment)]),
              Array.from(state.ranges, (range) => [run.ranges.address[range],
                                                  run.ranges.size[range]])];""")
        wanted = []
        for segment in map_["segments"]:
            address = int(segment["address"])
            live = 0
            for state, size in zip(segment["states"], map(int, segment["sizes"])):
                if state != "i":
                    wanted.append([address, size, int(segment["requested_sizes"][live]),
                                   state == "p"])
                    live += 1
                address += size
        self.assertEqual(blocks, sorted(wanted))
        # Ranges that one event mapped may lie side by side in one segment.
        self.assertEqual(joined(ranges),
                         joined([int(segment["address"]), int(segment["total_size"])]
                                for segment in map_["segments"]))

    def check_peak(self, device):
        """Checks that the page opens where the report's figures of the peak are taken."""
        event, reserved, unused, internal = self.run_script("""
            const moment = view.state.moment;
            return [run.positionOf(moment), run.reserved[moment],
                    run.reserved[moment] - run.active[moment],
                    run.active[moment] - run.requested[moment]];""")
        told = device["fragmentation"]
        self.assertEqual([reserved, unused, internal],
                         [int(device["peak_reserved_bytes"]),
                          int(told["reserved_minus_active_bytes"]), int(told["internal_bytes"])])
        if not device["inventory"].get("is_program"):
            self.assertGreaterEqual(event, int(told["at_event"]))

    def check_pixels_of_blocks(self):
        """Checks that on the map, the last of a block's bytes have its colour as the first have."""
        wrong = self.run_script("""
            const {map, chart} = bench;
            const {width, height} = map.canvas;
            const {data} = map.canvas.getContext("2d").getImageData(0, 0, width, height);
            return Array.from(map.state.blocks).filter((block) => {
              view.state.hovered = block;
              map.drawOutline();
              const path = map.outlinePath.attr("d") || "";
              const rows = [...path.matchAll(/M([\\d.]+),(\\d+)h([\\d.]+)/g)].map((row) => row.slice(1).map(Number));
              if (rows.length === 0) return true;
              const color = run.freed[block] <= map.state.moment ?
                  themePixel("pending") : chart.coloring.pixelOf(block);
              return rows.some(([x, y, width]) => {
                if (width < 4) return false;
                const at = 4 * (Math.floor((y + 5) * map.ratio) * map.canvas.width +
                                Math.floor((x + width / 2) * map.ratio));
                return [0, 1, 2].some((channel) => data[at + channel] !== (color >> 8 * channel & 255));
              });
            });""")
        self.assertEqual(wrong, [])

    def slowest_state(self):
        """Returns the milliseconds to rebuild the state at a moment: the slowest of moments far apart, in the best of
        three rounds."""
        return self.run_script("""
            const rounds = [0, 0, 0].map(() => {
              let slowest = 0;
              for (let i = 0; i < 40; ++i) {
                const begin = performance.now();
                run.stateAt(Math.floor(run.last * ((i * 17) % 40) / 39));
                slowest = Math.max(slowest, performance.now() - begin);
              }
              return slowest;
            });
            return Math.min(...rounds);""")
