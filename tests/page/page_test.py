"""Pages of memreplay report in a browser: page_test.py PROGRAM FOLDER FILE...

What a page draws and says is held against the report's JSON, which the program
prints separately; console errors and anything fetched are failures.
"""

import json
import pathlib
import subprocess
import sys
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PROGRAM, FOLDER, *FILES = sys.argv[1:]
HOSTILE = "</script><img src=x onerror=document.title='owned'><!--\u2028"
CONF = "expandable_segments:True"
FIGURES = ["reserved", "active", "allocated", "requested"]


def browser():
    options = Options()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--force-device-scale-factor=1", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def hostile_program():
    """A program whose tags and phases are markup."""
    lines = [{"k": "h", "format": "memsched-flat", "version": 1, "unit": "B", "streams": 1,
              "devices": 1, "total": 1 << 30},
             {"k": "p", "n": HOSTILE},
             {"k": "a", "id": 1, "b": 30 << 20, "t": HOSTILE},
             {"k": "a", "id": 2, "b": 2 << 20, "t": "plain"},
             {"k": "f", "id": 1}]
    path = pathlib.Path(FOLDER, "hostile.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = browser()

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()

    def open(self, file, *flags):
        """Opens the page of a file; returns its first device's report."""
        page = pathlib.Path(FOLDER, "page.html")
        page.unlink(missing_ok=True)
        subprocess.run([PROGRAM, "report", file, *flags, "-o", str(page)], check=False,
                       stdout=subprocess.DEVNULL)
        printed = subprocess.run([PROGRAM, "report", file, *flags, "--json"], check=False,
                                 stdout=subprocess.PIPE)
        self.driver.get(page.as_uri())
        return json.loads(printed.stdout)["devices"][0]

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
        """What the readout says: position, and bytes by series."""
        position = int(self.find(".readout .where").get_attribute("data-position"))
        series = {item.get_attribute("data-series"): int(item.get_attribute("data-bytes"))
                  for item in self.driver.find_elements(By.CSS_SELECTOR, ".readout [data-bytes]")}
        return position, series

    def hover(self, share):
        """Points at a share of the timeline's width."""
        target = self.find(".chart .target")
        width = target.rect["width"]
        ActionChains(self.driver, duration=0).move_to_element_with_offset(
            target, int((share - 0.5) * width), 0).perform()

    def check_readout(self, curve):
        """The readout is one of the curve's points, with all its figures."""
        position, series = self.shown()
        points = [{figure: int(curve[figure + "_bytes"][i]) for figure in FIGURES}
                  for i, text in enumerate(curve["position"]) if int(text) == position]
        self.assertIn({figure: series[figure] for figure in FIGURES}, points)
        return position, series

    def test_every_file_draws(self):
        for file in FILES:
            with self.subTest(file=file):
                device = self.open(file)
                has_events = bool(device["page"]["curve"]["position"])
                self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "svg.chart")),
                                 int(has_events))
                self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "canvas.map")),
                                 2 * bool(device["page"]["maps"]))
                self.tearDown()

    def test_hover_tells_exact_figures(self):
        device = self.open(FILES[0], "--conf", CONF)
        curve = device["page"]["curve"]
        positions = set()
        for share in (0.02, 0.3, 0.5, 0.77, 0.99):
            self.hover(share)
            position, series = self.check_readout(curve)
            positions.add(position)
            self.assertAlmostEqual(position / int(device["page"]["positions"]), share, delta=0.01)
            other = device["page"]["others"][0]["curve"]
            before = [i for i, text in enumerate(other["position"]) if int(text) <= position]
            self.assertEqual(series["reserved under " + CONF],
                             int(other["reserved_bytes"][before[-1]]))
        self.assertEqual(len(positions), 5)

    def test_keys_find_the_peak(self):
        device = self.open(FILES[0])
        chart = self.find("svg.chart")
        chart.send_keys(Keys.HOME)
        self.assertEqual(self.shown()[0], 0)
        chart.send_keys(Keys.ARROW_RIGHT)
        chart.send_keys("p")
        self.assertEqual(self.shown()[1]["reserved"], int(device["peak_reserved_bytes"]))
        self.check_readout(device["page"]["curve"])

    def test_brush_zooms(self):
        device = self.open(FILES[0])
        labels = lambda: [text.text for text in self.driver.find_elements(  # noqa: E731
            By.CSS_SELECTOR, "svg.chart .axis:nth-of-type(2) text")]
        whole = labels()
        self.assertIn("1,000", whole)
        overlay = self.find(".brush .overlay")
        width = overlay.rect["width"]
        (ActionChains(self.driver, duration=50)
         .move_to_element_with_offset(overlay, int(-0.2 * width), 0).click_and_hold()
         .move_by_offset(int(0.1 * width), 0).release().perform())
        self.assertNotEqual(labels(), whole)
        end = int(device["page"]["positions"])
        for share in (0.05, 0.95):
            self.hover(share)
            position, _ = self.check_readout(device["page"]["curve"])
            self.assertAlmostEqual(position / end, 0.3 + 0.1 * share, delta=0.01)
        self.find("svg.chart").send_keys(Keys.ESCAPE)
        self.assertEqual(labels(), whole)

    def test_map_tells_of_blocks(self):
        device = self.open(FILES[2])
        page = device["page"]
        canvas = self.find("canvas.map")
        canvas.send_keys(Keys.HOME)
        shown = []
        blocks = sum(len(segment["sizes"]) for segment in page["maps"][0]["segments"])
        for _ in range(blocks):
            details = self.find(".details dl")
            shown.append((int(details.get_attribute("data-address"), 16),
                          int(details.get_attribute("data-size"))))
            canvas.send_keys(Keys.ARROW_RIGHT)
        expected = []
        for segment in page["maps"][0]["segments"]:
            address = int(segment["address"])
            for size in map(int, segment["sizes"]):
                expected.append((address, size))
                address += size
        self.assertEqual(sorted(shown), sorted(expected))
        # The pointer finds what it is over.
        canvas.send_keys(Keys.HOME)
        first = self.find(".details dl").get_attribute("data-address")
        canvas.send_keys(Keys.END)
        self.assertNotEqual(self.find(".details dl").get_attribute("data-address"), first)
        ActionChains(self.driver, duration=0).move_to_element_with_offset(
            canvas, -canvas.size["width"] // 2 + 2, -canvas.size["height"] // 2 + 30).perform()
        self.assertEqual(self.find(".details dl").get_attribute("data-address"), first)

    def test_hostile_names_stay_text(self):
        self.open(hostile_program())
        self.find("canvas.map").send_keys(Keys.HOME)
        self.hover(0.5)
        self.assertEqual(self.driver.find_elements(By.TAG_NAME, "img"), [])
        self.assertNotEqual(self.driver.title, "owned")
        self.assertIn("<img src=x", self.find("main").text)
        self.assertIn("<img src=x", self.find(".readout").text)

    def test_fits_the_screen(self):
        for width in (1280, 400):
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
            self.open(FILES[0], "--conf", CONF)
            wide = self.driver.execute_script("return document.documentElement.scrollWidth")
            self.assertLessEqual(wide, width)
            overlapping = self.driver.execute_script("""
              const boxes = [...document.querySelectorAll("svg.chart text")]
                  .filter((text) => text.textContent && text.getBoundingClientRect().width > 0)
                  .map((text) => [text.textContent, text.getBoundingClientRect()]);
              return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
                  p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom)
                  .map(([b]) => a + " over " + b));""")
            self.assertEqual(overlapping, [])
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_without_scripts(self):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.open(FILES[0])
            text = self.find("body").text
        finally:
            self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        for part in ("peak reserved 6.73 GiB", "need JavaScript", "kv_cache", "inactive split"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
