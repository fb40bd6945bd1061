"""Tests pages of public recordings."""

import os

from browser import PageTest


class RealTest(PageTest):
    def test_every_page_is_its_report(self):
        if not os.environ["PAGES"]:
            self.skipTest("no public recordings: MEMREPLAY_SHARED was not set")
        for name in os.environ["PAGES"].split():
            with self.subTest(page=name):
                device = self.open(name)
                self.check_curve(device)
                self.check_maps(device)
                self.assertLess(self.slowest_state(), 50, "milliseconds to rebuild a state")
                self.tearDown()
