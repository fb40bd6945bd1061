"""Compares what a page draws and says with the report's JSON."""

import re

from browser import FIGURES, HERE, PageTest, format_size, page, wait_until
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

CONF = "expandable_segments:True"
PAGES = ["serving", "pending_free", "streams", "expandable_oom", "no_history"]


class DrawingTest(PageTest):
    def check_readout(self, curve):
        """Checks that the readout is one of the curve's points, with all its figures."""
        position, series = self.shown()
        points = [{figure: int(curve[figure + "_bytes"][i]) for figure in FIGURES}
                  for i, text in enumerate(curve["position"]) if int(text) == position]
        self.assertIn({figure: series[figure] for figure in FIGURES}, points)
        return position, series

    def test_every_page_is_its_report(self):
        """There are charts where there are events, all figures of the curve, and segments and blocks where reserved
        peaks and at the end, rebuilt in the page."""
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

    def test_the_last_phase_along_time(self):
        """The last of a row of phases ends where the chart does, along either axis."""
        self.open("recorded")
        for axis in ("event", "time", "event"):
            self.run_script(f"view.setAxis('{axis}');")
            self.settle()
            ends = self.run_script("""
                const {chart, ribbons} = bench, right = chart.x.range()[1];
                return ribbons.map((row) => chart.visibleStretches(row).at(-1).end - right);""")
            self.assertGreater(len(ends), 0)
            self.assertLess(max(map(abs, ends)), 1)
        # What is shown up to the end stays so.
        last = self.run_script("view.show(run.last - 20, run.last + 1); return view.state.to;")
        for axis in ("time", "event"):
            self.run_script(f"view.setAxis('{axis}');")
        self.assertEqual(self.run_script("return view.state.to;"), last)

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
        self.find("[data-tab=allocation]").click()
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
        """No pixel of the bands shows a block that is not there then; heights add up to active."""
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
        wait_until(lambda: f"block={block}" in self.driver.current_url)
        address = self.driver.current_url
        self.driver.get("about:blank")
        self.driver.get(address)
        self.wait_until_drawn()
        self.assertEqual(self.run_script("return view.state.selected;"), block)

    def shown_range(self):
        return self.run_script("return [view.state.from, view.state.to];")

    def wheel(self, **keys):
        """Turns the wheel over the chart; whether the page was kept from scrolling."""
        return self.driver.execute_script("""
            const bench = document.querySelector("section.device").workbench;
            const event = new WheelEvent("wheel", {
                deltaY: -400, clientX: 700, clientY: 500, cancelable: true, ...arguments[0]});
            bench.chart.svg.node().dispatchEvent(event);
            return event.defaultPrevented;""", keys)

    def test_wheel_drag_and_brush(self):
        """The wheel scrolls the page; with Ctrl it zooms, and so does dragging."""
        self.open("serving")
        whole = self.shown_range()
        self.assertFalse(self.wheel())
        self.settle()
        self.assertEqual(self.shown_range(), whole)
        self.assertTrue(self.wheel(ctrlKey=True))
        self.settle()
        near = self.shown_range()
        self.assertLess(near[1] - near[0], (whole[1] - whole[0]) * 0.7)
        self.key(Keys.ESCAPE)
        self.assertEqual(self.shown_range(), whole)
        for selector in (".chart .target", ".brush .overlay"):
            overlay = self.find(selector)
            width = overlay.rect["width"]
            (ActionChains(self.driver, duration=50)
             .move_to_element_with_offset(overlay, int(-0.2 * width), 0).click_and_hold()
             .move_by_offset(int(0.1 * width), 0).release().perform())
            self.settle()
            low, high = self.shown_range()
            self.assertAlmostEqual(low / whole[1], 0.3, delta=0.01)
            self.assertAlmostEqual(high / whole[1], 0.4, delta=0.01)
            self.key(Keys.ESCAPE)

    def test_statistics_of_a_range(self):
        """Statistics are of what is shown, and from the mark to the cursor; they are counted again from the events."""
        self.open("serving")
        for script, begins in (("", "In the whole run"),
                               ("view.show(run.last * 0.3, run.last * 0.6);", "In this part"),
                               ("view.set({mark: 40}); view.moveTo(400);", "From mark to cursor")):
            self.run_script(script)
            wait_until(lambda begins=begins: begins in self.find(".statistics").text)
            text = self.find(".statistics").text
            allocations, size, active = self.run_script("""
                const [from, to] = document.querySelector(".statistics").dataset.range.split("-").map(Number);
                let count = 0, bytes = 0, active = 0;
                for (let i = 0; i < run.size.length; ++i) {
                  if (run.start[i] <= from || run.start[i] > to) continue;
                  ++count;
                  bytes += run.block[i];
                }
                for (let at = from; at <= to; ++at) active = Math.max(active, run.active[at]);
                return [formatCount(count), formatSize(bytes), formatSize(active)];""")
            self.assertIn(f"{allocations} allocations of {size}", text)
            self.assertIn(f"at most {active} active", text)

    def test_keys_without_a_click(self):
        self.open("serving")
        body = self.find("body")
        body.send_keys(Keys.ARROW_LEFT)
        self.settle()
        self.assertEqual(self.run_script("return view.state.moment - run.peak;"), -1)
        body.send_keys("p")
        self.settle()
        self.assertEqual(self.run_script("return view.state.moment - run.peak;"), 0)
        body.send_keys("?")
        dialog = self.find("dialog.keys")
        self.assertTrue(dialog.is_displayed())
        box = dialog.rect
        self.assertGreaterEqual(box["y"] - self.driver.execute_script("return scrollY"), 0)
        self.assertIn("zoom to what is dragged over", dialog.text)
        body.send_keys(Keys.ESCAPE)
        self.assertFalse(dialog.is_displayed())

    def test_groups(self):
        """The table, the legend and the picture have the same groups; one of them can be alone."""
        self.open("streams")
        for by in ("category", "line", "stack", "age", "stream", "segment"):
            with self.subTest(by=by):
                self.find(f"[data-color={by}]").click()
                self.settle()
                wanted = self.run_script("""
                    const {coloring} = bench.chart, bytes = {};
                    for (const entry of coloring.entriesAt(view.state.moment))
                      bytes[coloring.group[entry]] = (bytes[coloring.group[entry]] || 0) + coloring.sizes[entry];
                    return bytes;""")
                rows = self.driver.find_elements(By.CSS_SELECTOR, ".who tr[data-group]")
                told = {row.get_attribute("data-group"): int(row.get_attribute("data-bytes"))
                        for row in rows}
                self.assertEqual(told, wanted)
                total = self.run_script("return view.state.color === 'segment' ? "
                                        "run.reserved[view.state.moment] : run.active[view.state.moment];")
                self.assertEqual(sum(told.values()), total)

    def drawn_groups(self):
        return self.run_script("""
            const {bands, coloring} = bench.chart;
            return [...new Set(Array.from(bands.picture.blocks, (mark) => mark & BLOCK_MASK)
                .filter((entry) => entry < SMALLER).map((entry) => coloring.group[entry]))];""")

    def test_legend_isolates(self):
        self.open("serving")
        self.assertGreater(len(self.drawn_groups()), 1)
        item = self.find(".legend.colors button")
        group = int(item.get_attribute("data-group"))
        item.click()
        self.settle()
        self.assertEqual(self.drawn_groups(), [group])
        self.assertEqual(item.get_attribute("aria-pressed"), "true")
        heights = self.run_script("""
            const {picture} = bench.chart.bands, {group} = bench.chart.coloring, only = view.state.only;
            let wrong = 0;
            for (let column = 0; column < picture.width; column += 50) {
              let bytes = 0, rows = 0;
              for (const block of run.stateAt(picture.moments[column]).blocks)
                if (group[block] === only) bytes += run.block[block];
              while (rows < picture.height &&
                     (picture.blocks[column * picture.height + rows] & BLOCK_MASK) !== NOTHING) ++rows;
              wrong = Math.max(wrong, Math.abs(rows - bytes / picture.high * picture.height));
            }
            return wrong;""")
        self.assertLessEqual(heights, 0.51)
        item.click()
        self.settle()
        self.assertGreater(len(self.drawn_groups()), 1)

    def test_rows_and_bands_point_at_each_other(self):
        self.open("serving")
        rows = self.driver.find_elements(By.CSS_SELECTOR, ".who tr[data-group]")
        ActionChains(self.driver, duration=0).move_to_element(rows[-1]).perform()
        self.settle()
        group = int(rows[-1].get_attribute("data-group"))
        self.assertEqual(self.run_script("return view.state.lit;"), group)
        # In the picture and on the map, the others are paler than their colours.
        wrong = self.run_script("""
            const {bands, coloring} = bench.chart, {picture} = bands, {lit} = view.state;
            const {data} = bands.canvas.getContext("2d").getImageData(0, 0, picture.width, picture.height);
            let wrong = 0, seen = 0;
            for (let column = 0; column < picture.width; column += 7) {
              for (let row = 0; row < picture.height; ++row) {
                const mark = picture.blocks[column * picture.height + row];
                const entry = mark & BLOCK_MASK;
                if (entry >= SMALLER || mark !== entry) continue;
                const at = 4 * ((picture.height - 1 - row) * picture.width + column);
                const pixel = coloring.pixelOf(entry);
                const same = [0, 1, 2].every((i) => data[at + i] === (pixel >> 8 * i & 255));
                ++seen;
                if (same !== (coloring.group[entry] === lit)) ++wrong;
              }
            }
            return seen > 0 ? wrong : -1;""")
        self.assertEqual(wrong, 0)
        self.hover(0.5, 0.2)
        now = self.driver.find_elements(By.CSS_SELECTOR, ".who tr.now")
        self.assertEqual([int(row.get_attribute("data-group")) for row in now],
                         [self.run_script("return bench.chart.coloring.group[view.state.hovered];")])

    def test_several_devices(self):
        """The worst comes first; each row of the table leads to its part of the page."""
        self.driver.get(page("job").as_uri())
        self.wait_until_drawn()
        sections = self.driver.find_elements(By.CSS_SELECTOR, "section.device")
        names = [section.find_element(By.TAG_NAME, "h2").text for section in sections]
        self.assertEqual(names, ["pending_free.txtpb, device 0", "serving.jsonl, device 0"])
        links = self.driver.find_elements(By.CSS_SELECTOR, "header [data-section]")
        self.assertEqual([link.text for link in links], names)
        self.assertEqual([link.get_attribute("data-section") for link in links], ["1", "0"])
        links[1].click()
        wait_until(lambda: abs(sections[1].rect["y"] - self.driver.execute_script("return scrollY")) < 900)
        wait_until(lambda: sections[1].get_attribute("data-ready") == "true")
        ooms, peak = self.driver.execute_script("""
            return Array.from(document.querySelectorAll("section.device"), (section, i) => {
              const {chart, run} = section.workbench;
              return i === 0 ? chart.ooms.length : run.reserved[run.peak];
            });""")
        self.assertGreater(ooms, 0)
        self.assertAlmostEqual(peak / 2**30, 6.73, delta=0.01)

    def test_first_screen(self):
        """The file's name, a diagnosis, the chart and who holds it next to it are seen without scrolling."""
        device = self.open("streams")
        self.assertEqual(self.find("h1").text, "streams.pickle")
        self.assertEqual(self.driver.title, "streams.pickle - memreplay")
        self.assertNotEqual(self.find("p.answer").text, "")
        chart, who = self.find("svg.chart").rect, self.find(".panel.who").rect
        height = self.driver.execute_script("return innerHeight")
        self.assertLess(chart["y"] + chart["height"], height)
        self.assertGreater(who["x"], chart["x"] + chart["width"] - 1)
        self.assertLess(who["y"], chart["y"] + 60)
        self.assertEqual(self.run_script("return view.state.moment - run.peak;"), 0)
        self.assertIn(format_size(int(device["peak_reserved_bytes"])), self.find(".figures").text)
        self.assertNotIn("/", self.find("header").text)

    def test_phases_have_names(self):
        device = self.open("hostile")
        names = [text.text for text in self.driver.find_elements(By.CSS_SELECTOR, ".chart g text")]
        phases = [phase["name"] for phase in device["page"]["phases"]]
        self.assertEqual(self.run_script("return bench.ribbons[0][0].map(({name}) => name);"), phases)
        self.assertTrue(any(phase.startswith(name) for phase in phases for name in names if name))

    def test_who_adds_up(self):
        self.open("serving")
        rows = [int(float(row.get_attribute("data-bytes"))) for row in
                self.driver.find_elements(By.CSS_SELECTOR, ".panel.who tbody tr[data-bytes]")]
        active = self.shown()[1]["active"]
        self.assertEqual(rows[0], active)
        self.assertEqual(sum(rows[1:]), active)
        self.assertIn("the peak", self.find(".panel.who .note").text)
        # Compared with another moment: what came less what went.
        self.key("m", Keys.HOME)
        rows = [int(float(row.get_attribute("data-bytes"))) for row in
                self.driver.find_elements(By.CSS_SELECTOR, ".panel.who tbody tr[data-bytes]")]
        self.assertEqual(rows[0], -active)
        self.assertEqual(int(float(self.find(".flame rect").get_attribute("data-bytes"))), -active)

    def test_flame_adds_up(self):
        """The callers hold together what all hold, with frames of libraries and without."""
        for name in ("serving", "streams", "no_history"):
            self.open(name)
            for _ in range(2):
                everything, *boxes = self.run_script("""
                    return Array.from(document.querySelectorAll(".flame g"), (box) => [
                      Number(/,(.*)\\)/.exec(box.getAttribute("transform"))[1]),
                      Number(box.querySelector("rect").dataset.bytes)]);""")
                self.assertEqual(everything[1], self.run_script("return run.active[view.state.moment];"))
                held = sum(each for top, each in boxes if top == 18)
                self.assertLessEqual(held, everything[1])
                self.assertGreater(held, 0.98 * everything[1])  # what is below two pixels is left out
                width, page = self.run_script("""
                    return [document.querySelector(".flame").getBoundingClientRect().width,
                            document.querySelector("section.device").getBoundingClientRect().width];""")
                self.assertAlmostEqual(width, page, delta=2)
                cut = self.run_script("""
                    return Array.from(document.querySelectorAll(".flame g"), (box) => {
                      const text = box.querySelector("text").getComputedTextLength();
                      return text - box.querySelector("rect").getBoundingClientRect().width;});""")
                self.assertLessEqual(max(cut), 0)
                self.find("[data-choice=frames]").click()

    def test_events_are_found(self):
        """While typing, there is a list of hits and their number; Enter goes round."""
        self.open("streams")
        self.key(Keys.HOME, "/")
        search = self.find(".panel.events input")
        search.send_keys("segment_alloc")
        count = self.run_script("""
            return Array.from(run.kind).filter((kind) => run.kindNames[kind] === "segment_alloc").length;""")
        self.assertGreater(count, 1)
        self.assertEqual(self.find(".panel.events .note").text, f"{count} matches")
        rows = [row.text for row in self.driver.find_elements(By.CSS_SELECTOR, ".events tbody tr")]
        self.assertEqual(len(rows), min(count, 15))
        self.assertTrue(all("segment_alloc" in row for row in rows))
        seen = []
        for number in [*range(1, count + 1), 1]:
            search.send_keys(Keys.ENTER)
            self.settle()
            self.assertEqual(self.find(".panel.events .note").text, f"{number} of {count} matches")
            seen.append(self.run_script("return view.state.moment;"))
        self.assertEqual(seen[0], seen[-1])
        search.send_keys(Keys.SHIFT, Keys.ENTER)
        self.settle()
        self.assertEqual(self.run_script("return view.state.moment;"), seen[-2])
        search.send_keys(Keys.NULL, "no such thing")
        self.assertEqual(self.find(".panel.events .note").text, "no match")

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
        copy = self.find("section.search .copy")
        self.driver.execute_cdp_cmd("Browser.grantPermissions", {
            "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        copy.click()
        wait_until(lambda: copy.text == "copied")
        copied = self.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        self.assertIn(best["conf"], copied)
        others = device["page"]["others"]
        self.assertEqual([other["report"]["conf"] for other in others], [best["conf"]])
        self.assertTrue(others[0]["found"])
        self.assertEqual(int(others[0]["report"]["peak_reserved_bytes"]),
                         int(best["peak_reserved_bytes"]))
        self.key("p")
        self.assertIn("reserved under " + best["conf"], self.shown()[1])
        self.assertNotIn("whether settings help", self.find("main").text)

    def test_settings_that_were_given_and_found(self):
        """What was given and is also the best is one run: in the table, on the chart and with one count of calls."""
        device = self.open("serving_both")
        best = device["sweep"]["rows"][0]
        confs = [CONF, "max_split_size_mb:64"]
        others = device["page"]["others"]
        self.assertEqual(best["conf"], CONF)
        self.assertEqual([(other["report"]["conf"], other["found"]) for other in others],
                         [(CONF, True), (confs[1], False)])
        overlays = [series for series in self.shown()[1] if series.startswith("reserved under ")]
        self.assertEqual(overlays, ["reserved under " + conf for conf in confs])
        calls = {row["conf"]: int(row["device_calls"]) for row in device["sweep"]["rows"]}
        self.assertEqual(int(others[0]["report"]["device_calls"]), calls[CONF])
        self.assertEqual(int(device["device_calls"]), int(device["sweep"]["current"]["device_calls"]))
        text = self.find("main").text
        self.assertIn("driver calls", text)
        self.assertNotIn("driver allocs", text)

    def test_where_memory_ran_out(self):
        """The verdict leads, what-ifs are a table, pins lead into the map."""
        device = self.open("expandable_oom")
        oom = device["oom"]
        headline = self.driver.find_elements(By.CSS_SELECTOR, "p.answer")[0].text
        self.assertIn(oom["sentence"], headline)
        answers = " ".join(each.text for each in self.driver.find_elements(By.CSS_SELECTOR, "p.answer"))
        self.assertEqual(answers.count(oom["sentence"]), 1)
        section = self.find("section.device").text
        for change in oom["counterfactuals"]:
            self.assertIn(change["change"], section)
        self.check_picture_of_the_oom(oom)
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

    def test_changes_of_the_script_have_curves(self):
        """Each row of the table has the colour of its curve, which reaches the peak of the row."""
        device = self.open("leaking")
        page, advice = device["page"], device["advice"]
        rows = [advice["rows"][index] for index in advice["serving_rows"]]
        self.assertGreater(len(rows), 0)
        self.assertEqual(len(page["serving"]), len(rows))
        details = [each for each in self.driver.find_elements(By.CSS_SELECTOR, "summary") if each.text]
        self.run_script("view.moveTo(run.last);")
        self.settle()
        _, series = self.shown()
        for i, (row, curve) in enumerate(zip(rows, page["serving"])):
            reserved = [int(value) for value in curve["reserved_bytes"]]
            self.assertEqual(max(reserved), int(row["peak_reserved_bytes"]))
            self.assertEqual(series["reserved with " + row["change"]], reserved[-1])
            self.assertLessEqual(max(map(int, curve["position"])), int(device["oom"]["event_index"]))
            summary, = (each for each in details if each.text == row["change"])
            self.assertIn(f"other-{i}", summary.find_element(By.CSS_SELECTOR, ".swatch").get_attribute("class"))

    def check_picture_of_the_oom(self, oom):
        """Checks that the limit is at its height, and what was requested is on top of what was reserved."""
        limit = int(oom["use"]["capacity_bytes"]) - int(oom["use"].get("outside_bytes", 0))
        self.assertIn("limit", self.find("text.limit").text)
        self.assertIn("requested by", self.find("text.tried").text)
        line, path, scale = self.run_script("""
            const {chart} = bench;
            chart.drawMarks();
            return [bench.chart.limit.bytes, chart.tried.attr("d"),
                    [chart.y(run.reserved[chart.ooms[0]]), chart.y(chart.triedTop(chart.ooms[0]))]];""")
        self.assertEqual(line, limit)
        base, top = re.match(r"M[\d.]+,([\d.]+)h\d+V([\d.]+)h", path).groups()
        self.assertAlmostEqual(float(base), scale[0], places=3)
        self.assertAlmostEqual(float(top), max(0, scale[1]), places=3)

    def test_stacks_can_be_told_apart(self):
        """No two of those that hold most read the same; the program's own frames come first."""
        self.open("streams")
        self.find("[data-color=stack]").click()
        self.settle()
        labels = [label.text for label in
                  self.driver.find_elements(By.CSS_SELECTOR, ".panel.who .label .link")]
        self.assertGreater(len(labels), 1)
        self.assertEqual(len(set(labels)), len(labels))
        search = self.find(".panel.who input")
        search.send_keys("no such frame")
        self.settle()
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, ".panel.who .label"), [])

    def test_hostile_names_stay_text(self):
        self.open("hostile")
        self.find("canvas.map").send_keys(Keys.END)
        self.hover(0.5)
        for tab in ("events", "who", "allocation"):
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
              const all = document.querySelectorAll("summary, .legend button, .figures *, .tabs button, td button");
              return [...all].filter((each) => each.getBoundingClientRect().right > innerWidth)
                  .map((each) => each.textContent);""")
            self.assertEqual(cut, [], f"cut off where the page is {width} pixels wide")
            outside = self.driver.execute_script("""
              const chart = document.querySelector("svg.chart").getBoundingClientRect();
              return [...document.querySelectorAll("svg.chart .axis text")]
                  .filter((text) => text.getBoundingClientRect().left < chart.left - 0.5)
                  .map((text) => text.textContent);""")
            self.assertEqual(outside, [], f"labels cut off where the page is {width} pixels wide")
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_running_text_uses_the_width(self):
        """No paragraph is squeezed into a column: at 420 pixels a full line of long text has ten words."""
        for name in ("serving_expandable", "expandable_oom", "no_history", "hostile"):
            for width in (420, 1280):
                with self.subTest(page=name, width=width):
                    self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                        "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
                    self.open(name)
                    self.driver.execute_script(
                        "document.querySelectorAll('details').forEach((each) => { each.open = true; });")
                    narrow = self.driver.execute_script("""
                      const lines = (node) => {  // words of each line of a text
                        const range = document.createRange();
                        const found = new Map();
                        for (const word of node.textContent.matchAll(/\\S+/g)) {
                          range.setStart(node, word.index);
                          range.setEnd(node, word.index + 1);
                          const top = Math.round(range.getBoundingClientRect().top);
                          found.set(top, (found.get(top) || 0) + 1);
                        }
                        return [...found.values()];
                      };
                      const squeezed = [];
                      for (const box of document.querySelectorAll(
                               "main p, main li, main td, main dd, main figcaption")) {
                        const style = getComputedStyle(box);
                        if (box.offsetParent === null || style.whiteSpace.startsWith("pre")) continue;
                        const texts = [...box.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
                        for (const text of texts) {
                          const words = lines(text);
                          // Long words of paths leave short lines: the fullest line counts.
                          const total = words.reduce((sum, each) => sum + each, 0);
                          if (words.length > 2 && total >= 12 && Math.max(...words) < arguments[0]) {
                            squeezed.push([box.tagName, Math.max(...words), text.textContent.trim().slice(0, 80)]);
                          }
                        }
                      }
                      return squeezed;""", 6 if width == 420 else 10)
                    self.assertEqual(narrow, [])
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_sizes_are_those_of_the_program(self):
        self.open("serving")
        rows = [line.split("\t") for line in (HERE.parent / "data/words.tsv").read_text(encoding="utf-8").splitlines()]
        sizes = [(int(size), words) for kind, size, words in rows if kind == "size"]
        self.assertGreater(len(sizes), 15)
        shown = self.driver.execute_script("return arguments[0].map(formatSize);", [size for size, _ in sizes])
        self.assertEqual(shown, [words for _, words in sizes])

    def test_without_scripts(self):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.wait_until_drawn = lambda: None
            self.open("serving")
            text = self.find("body").text
        finally:
            self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        for part in ("peak reserved", "6.73 GiB", "need JavaScript", "KV cache", "inactive split"):
            self.assertIn(part, text)
