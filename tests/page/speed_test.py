"""Measures what large pages cost the browser."""

import functools
import os
import pathlib

from browser import PageTest, page


class SpeedTest(PageTest):
    def spent(self):
        """Returns the seconds of the processor, not of the clock, that the page's thread has taken."""
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return {each["name"]: each["value"] for each in metrics}["TaskDuration"]

    def paint(self, page):
        """Opens a page; what that takes the browser until its charts stand."""
        self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        self.driver.get("about:blank")
        before = self.spent()
        self.driver.get(page.as_uri())
        self.wait_until_drawn()
        self.settle()
        return self.spent() - before

    def check_frames(self):
        """Checks that a frame's work fits into a sixtieth of a second."""
        self.driver.set_script_timeout(120)
        for name, action in (("cursor", "view.moveTo(Math.floor(run.last * i / 40))"),
                             ("jumps", "view.moveTo(Math.floor(run.last * (i * 17 % 40) / 40))"),
                             ("zoom", "view.zoom(i < 20 ? 0.85 : 1 / 0.85, run.last * 0.4)"),
                             ("drag", "view.show(run.last * i / 80, run.last * (i + 20) / 80)"),
                             ("height", "bench.chart.zoomHeight(i < 20 ? 0.9 : 1 / 0.9, 1e9)")):
            with self.subTest(moved=name):
                each = self.best(functools.partial(self.frame_seconds, action), 1 / 60)
                print(f"    {name}: {1000 * each:.1f} ms a frame")

    def frame_seconds(self, action):
        """Returns the processor's seconds, on average of 40 frames in each of which `action` moves something."""
        before = self.spent()
        self.driver.execute_async_script("""
            const done = arguments[0];
            const bench = document.querySelector("section.device").workbench;
            const {run, view} = bench;
            (async () => {
              for (let i = 0; i < 40; ++i) {
                %s;
                await new Promise(requestAnimationFrame);
              }
              done();
            })();""" % action)
        seconds = (self.spent() - before) / 40
        self.settle()
        self.run_script("view.showAll();")
        self.settle()
        return seconds

    def best(self, measure, limit):
        """Returns the best of three, because others use the machine too; the first that is good enough will do."""
        least = measure()
        for _ in range(2):
            if least >= limit:
                least = min(least, measure())
        self.assertLess(least, limit)
        return least

    def check_page(self, file):
        """Checks that a page of a large recording is small and smooth, is painted, and rebuilds any state."""
        size = file.stat().st_size
        self.assertLess(size, 20e6)
        seconds = self.best(lambda: self.paint(file), 1.5)
        print(f"\n    {size / 1e6:.1f} MB, painted in {seconds:.2f} s")
        slowest = self.slowest_state()
        print(f"    the state at any event: {slowest:.1f} ms at most")
        self.assertLess(slowest, 50)
        self.check_frames()

    def test_a_long_run(self):
        """The run has 400,000 events."""
        file = page("long")
        self.assertLess(file.stat().st_size, 8 << 20)
        self.check_page(file)

    def test_a_training_run(self):
        """The run has 200,000 events with their stacks and times, made as tests/bench makes its own."""
        self.check_page(page("training"))

    def test_another(self):
        """MEMREPLAY_PAGE may name a page, for example of a recording that takes minutes to make."""
        file = os.environ.get("MEMREPLAY_PAGE", "")
        if not file:
            self.skipTest("MEMREPLAY_PAGE names no page")
        self.check_page(pathlib.Path(file))
