"""What a page draws and says is held against the report's JSON."""

from browser import FIGURES, PageTest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

CONF = "expandable_segments:True"
PAGES = ["serving", "pending_free", "streams", "expandable_oom", "no_history"]


class DrawingTest(PageTest):
    def check_readout(self, curve):
        """The readout is one of the curve's points, with all its figures."""
        position, series = self.shown()
        points = [{figure: int(curve[figure + "_bytes"][i]) for figure in FIGURES}
                  for i, text in enumerate(curve["position"]) if int(text) == position]
        self.assertIn({figure: series[figure] for figure in FIGURES}, points)
        return position, series

    def test_every_page_is_its_report(self):
        """Charts where there are events; all figures of the curve; segments and blocks where
        reserved peaks and at the end, rebuilt in the page."""
        for name in PAGES:
            with self.subTest(page=name):
                device = self.open(name)
                has_events = bool(device["page"]["curve"]["position"])
                self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "svg.chart")),
                                 int(has_events))
                self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "canvas.map")), 1)
                self.assertIn("end", [map_["moment"] for map_ in device["page"]["maps"]])
                self.check_curve(device)
                self.check_maps(device)
                self.tearDown()

    def test_along_time(self):
        """No moment is lost on the way to the axis of time and back."""
        for name in ("streams", "expandable_oom"):
            self.open(name)
            whole = self.run_script("return [view.state.from, view.state.to];")
            self.run_script("view.setAxis('time');")
            self.settle()
            self.hover(0.7)
            self.check_readout_is_of_cursor()
            self.run_script("view.setAxis('event');")
            self.settle()
            self.assertEqual(self.run_script("return [view.state.from, view.state.to];"), whole)
            self.tearDown()

    def check_readout_is_of_cursor(self):
        series = self.shown()[1]
        self.assertEqual([series[figure] for figure in FIGURES], self.run_script(
            f"return {FIGURES}.map((figure) => run[figure][view.state.moment]);"))

    def test_a_snapshot_without_events(self):
        """Nothing on the page speaks of events that are not there."""
        device = self.open("no_history")
        self.assertEqual(self.run_script("return run.last;"), 0)
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, "[data-tab=events]"), [])
        self.assertNotIn("first event", self.find(".workbench").text)
        self.assertGreater(len(self.driver.find_elements(By.CSS_SELECTOR, ".legend.colors .item")), 0)
        rows = self.driver.find_elements(By.CSS_SELECTOR, ".panel.who tbody tr[data-bytes]")
        held = sum(int(group["active_bytes"]) for map_ in device["page"]["maps"]
                   if map_["moment"] == "end" for group in map_["groups"])
        self.assertEqual(int(rows[0].get_attribute("data-bytes")), held)
        self.find("canvas.map").send_keys(Keys.HOME, "/")  # no events to search: no error
        self.assertIn("not recorded", self.find(".panel.allocation").text)

    def test_hover_tells_exact_figures(self):
        device = self.open("serving_expandable")
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
        device = self.open("serving")
        self.key(Keys.END)
        self.assertEqual(self.shown()[0], int(device["page"]["curve"]["position"][-1]))
        self.key(Keys.HOME, Keys.ARROW_RIGHT)
        self.assertEqual(self.shown()[0], 0)
        self.key("p")
        self.assertEqual(self.shown()[1]["reserved"], int(device["peak_reserved_bytes"]))
        self.check_readout(device["page"]["curve"])

    def test_every_pixel_is_a_block_that_is_there(self):
        """Bands: no pixel shows a block that is not there then; heights add up to active."""
        self.open("serving")
        self.settle()
        wrong, tops = self.run_script("""
            const {picture} = bench.chart.bands;
            let wrong = 0, tops = [];
            for (let column = 0; column < picture.width; ++column) {
              const moment = picture.moments[column];
              let top = 0;
              for (let row = 0; row < picture.height; ++row) {
                const block = picture.blocks[column * picture.height + row] & BLOCK_MASK;
                if (block === NOTHING) break;
                top = row + 1;
                if (run.start[block] > moment || run.end[block] <= moment) ++wrong;
              }
              tops.push(top - run.active[moment] / picture.high * picture.height);
            }
            return [wrong, tops];""")
        self.assertEqual(wrong, 0)
        self.assertLessEqual(max(map(abs, tops)), 0.51)

    def test_click_tells_of_a_block(self):
        self.open("serving")
        self.key("a")
        self.hover(0.5, 0.2)
        ActionChains(self.driver, duration=0).click().perform()
        self.settle()
        details = self.find(".panel.allocation dl")
        block, address, size = self.run_script("""
            const block = view.state.selected;
            return [block, "0x" + run.address[block].toString(16), run.block[block]];""")
        self.assertGreaterEqual(block, 0)
        self.assertEqual(details.get_attribute("data-address"), address)
        self.assertEqual(int(details.get_attribute("data-size")), size)
        self.assertIsNotNone(self.find(".chart .outline").get_attribute("d"))
        self.assertIsNotNone(self.find(".map-outline .outline").get_attribute("d"))
        # A view can be sent to somebody.
        self.driver.execute_async_script("setTimeout(arguments[0], 400)")
        address = self.driver.current_url
        self.assertIn(f"block={block}", address)
        self.driver.get("about:blank")
        self.driver.get(address)
        self.wait_until_drawn()
        self.assertEqual(self.run_script("return view.state.selected;"), block)

    def test_wheel_and_brush_zoom(self):
        self.open("serving")
        whole = self.run_script("return [view.state.from, view.state.to];")
        self.run_script("""bench.chart.svg.node().dispatchEvent(new WheelEvent("wheel", {
            deltaY: -400, clientX: 700, clientY: 500, cancelable: true}));""")
        self.settle()
        near = self.run_script("return [view.state.from, view.state.to];")
        self.assertLess(near[1] - near[0], (whole[1] - whole[0]) * 0.7)
        self.key(Keys.ESCAPE)
        self.assertEqual(self.run_script("return [view.state.from, view.state.to];"), whole)
        overlay = self.find(".brush .overlay")
        width = overlay.rect["width"]
        (ActionChains(self.driver, duration=50)
         .move_to_element_with_offset(overlay, int(-0.2 * width), 0).click_and_hold()
         .move_by_offset(int(0.1 * width), 0).release().perform())
        self.settle()
        low, high = self.run_script("return [view.state.from, view.state.to];")
        self.assertAlmostEqual(low / whole[1], 0.3, delta=0.01)
        self.assertAlmostEqual(high / whole[1], 0.4, delta=0.01)

    def test_who_adds_up(self):
        self.open("serving")
        self.key("p")
        self.find("[data-tab=who]").click()
        self.settle()
        rows = [int(float(row.get_attribute("data-bytes"))) for row in
                self.driver.find_elements(By.CSS_SELECTOR, ".panel.who tbody tr[data-bytes]")]
        active = self.shown()[1]["active"]
        self.assertEqual(rows[0], active)
        self.assertEqual(sum(rows[1:]), active)
        # Compared with another moment: what came less what went.
        self.key("m", Keys.HOME)
        rows = [int(float(row.get_attribute("data-bytes"))) for row in
                self.driver.find_elements(By.CSS_SELECTOR, ".panel.who tbody tr[data-bytes]")]
        self.assertEqual(rows[0], -active)
        self.find("[data-tab=flame]").click()
        self.settle()
        self.assertEqual(int(float(self.find(".flame rect").get_attribute("data-bytes"))), -active)

    def test_flame_adds_up(self):
        """The callers hold together what all hold, with frames of libraries and without."""
        for name in ("serving", "streams", "no_history"):
            self.open(name)
            self.find("[data-tab=flame]").click()
            self.settle()
            for _ in range(2):
                everything, *boxes = self.run_script("""
                    return Array.from(document.querySelectorAll(".flame g"), (box) => [
                      Number(/,(.*)\\)/.exec(box.getAttribute("transform"))[1]),
                      Number(box.querySelector("rect").dataset.bytes)]);""")
                self.assertEqual(everything[1], self.run_script("return run.active[view.state.moment];"))
                held = sum(each for top, each in boxes if top == 18)
                self.assertLessEqual(held, everything[1])
                self.assertGreater(held, 0.98 * everything[1])  # what is below two pixels is left out
                self.find("[data-choice=frames]").click()

    def test_events_are_found(self):
        self.open("streams")
        self.key(Keys.HOME, "/")
        search = self.find(".panel.events input")
        search.send_keys("segment_alloc", Keys.ENTER)
        self.settle()
        first = self.run_script("return run.kindNames[run.kind[view.state.moment - 1]];")
        self.assertEqual(first, "segment_alloc")
        self.assertIn("segment_alloc", self.find(".panel.events tr.now").text)
        search.send_keys(Keys.SHIFT, Keys.ENTER)
        self.settle()
        self.assertEqual(self.find(".panel.events .note").text, "no match before the cursor")

    def test_settings_that_were_searched(self):
        """The best stands in the headline, tops the ranking and is drawn over."""
        device = self.open("serving_search")
        rows = device["sweep"]["rows"]
        best = rows[0]
        self.assertLess(best["peak_reserved_bytes"], device["peak_reserved_bytes"])
        headline = [each.text for each in self.driver.find_elements(By.CSS_SELECTOR, "p.answer")]
        self.assertTrue(any(best["conf"] in text for text in headline), headline)
        self.assertIn(best["conf"], self.find("section.search tbody tr").text)
        self.assertIn(best["conf"], self.find("section.search pre").text)
        others = device["page"]["others"]
        self.assertEqual([other["report"]["conf"] for other in others], [best["conf"]])
        self.assertTrue(others[0]["found"])
        self.assertEqual(int(others[0]["report"]["peak_reserved_bytes"]),
                         int(best["peak_reserved_bytes"]))
        self.key("p")
        self.assertIn("reserved under " + best["conf"], self.shown()[1])

    def test_where_memory_ran_out(self):
        """The verdict leads, what-ifs are a table, pins lead into the map."""
        device = self.open("expandable_oom")
        oom = device["oom"]
        headline = self.driver.find_elements(By.CSS_SELECTOR, "header p.answer")[0].text
        self.assertIn(oom["sentence"], headline)
        section = self.find("section.device").text
        for change in oom["counterfactuals"]:
            self.assertIn(change["change"], section)
        pins = self.driver.find_elements(By.CSS_SELECTOR, "button[data-address]")
        pins = [pin for pin in pins if pin.get_attribute("data-address") not in ("0", "0x0")]
        self.assertGreater(len(pins), 0)
        address = int(pins[0].get_attribute("data-address"))
        pins[0].click()
        self.settle()
        begin, size, position = self.run_script("""
            const block = view.state.selected;
            return [run.address[block], run.block[block], run.positionOf(view.state.moment)];""")
        self.assertEqual(begin, address)
        self.assertGreater(size, 0)
        self.assertEqual(position, int(oom["event_index"]))
        self.assertIn(hex(address), self.find(".panel.allocation").text)

    def test_stacks_can_be_told_apart(self):
        """No two of those that hold most read the same; the program's own frames come first."""
        self.open("streams")
        self.key("p")
        self.find("[data-tab=who]").click()
        self.settle()
        labels = [label.text for label in
                  self.driver.find_elements(By.CSS_SELECTOR, ".panel.who summary")]
        self.assertGreater(len(labels), 1)
        self.assertEqual(len(set(labels)), len(labels))
        search = self.find(".panel.who input")
        search.send_keys("no such frame")
        self.settle()
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, ".panel.who summary"), [])

    def test_hostile_names_stay_text(self):
        self.open("hostile")
        self.find("canvas.map").send_keys(Keys.END)
        self.hover(0.5)
        for tab in ("events", "who", "flame", "allocation"):
            self.find(f"[data-tab={tab}]").click()
            self.settle()
        self.assertEqual(self.driver.find_elements(By.TAG_NAME, "img"), [])
        self.assertNotEqual(self.driver.title, "owned")
        self.assertIn("<img src=x", self.find("main").text)
        self.assertIn("<img src=x", self.find(".panel.allocation").text)

    def test_fits_the_screen(self):
        for width in (1280, 420, 3840):
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
            self.open("serving_expandable")
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
            self.open("expandable_oom")
            cut = self.driver.execute_script("""
              const all = document.querySelectorAll("summary, .legend .item, .card *, .tabs button, td button");
              return [...all].filter((each) => each.getBoundingClientRect().right > innerWidth)
                  .map((each) => each.textContent);""")
            self.assertEqual(cut, [], f"cut off where the page is {width} pixels wide")
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_without_scripts(self):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.wait_until_drawn = lambda: None
            self.open("serving")
            text = self.find("body").text
        finally:
            self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        for part in ("peak reserved 6.73 GiB", "need JavaScript", "kv_cache", "inactive split"):
            self.assertIn(part, text)
