"""Presses every key and uses every control of every kind of page, in both orders."""

import os

from browser import PageTest, page

# Defines use(backwards), which resolves to what went wrong.
_USE = """
    const section = document.querySelector("section.device");
    const bench = section.workbench;
    const PLACES = "button, summary, input, select, .flame g, tr[data-moment], canvas.map, .chart .target";

    // Names a kind of control so that its elements are found again when they were made anew.
    const kindOf = (element) => {
      const classOf = (each) => String(each.className.baseVal ?? each.className).split(" ").slice(0, 1);
      return [element.localName, element.type, classOf(element), element.parentElement.localName,
              classOf(element.parentElement), element.closest("section, header, dialog")?.className].join();
    };
    const controls = () => {
      const kinds = new Map();
      for (const element of document.querySelectorAll(PLACES)) {
        const kind = kindOf(element);
        if (!kinds.has(kind)) kinds.set(kind, []);
        kinds.get(kind).push(element);
      }
      return kinds;
    };
    const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const pointer = (element, type, x, y, more) => {
      const box = element.getBoundingClientRect();
      element.dispatchEvent(new PointerEvent(type, {bubbles: true, button: 0, pointerId: 1, ...more,
          clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
    };

    // Uses an element in each way that a user may.
    const touch = async (element) => {
      const tell = (...types) => types.forEach((type) => element.dispatchEvent(new Event(type, {bubbles: true})));
      tell("pointerenter");
      if (element.localName === "select") {
        for (const {value} of [...element.options].reverse()) {
          element.value = value;
          tell("change");
          await frame();
        }
      } else if (element.type === "range") {
        for (const value of [element.max, "20", element.min]) {
          element.value = value;
          tell("input");
          await frame();
        }
      } else if (element.type === "search") {
        for (const text of ["a", "no such thing", "0x10", ""]) {
          element.value = text;
          tell("input");
          for (const shiftKey of [false, true])
            element.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", shiftKey, bubbles: true}));
          await frame();
        }
      } else if (element.matches(".target")) {
        element.setPointerCapture = () => {};  // there is no such pointer
        for (const [x, y] of [[0.02, 0.9], [0.98, 0.5], [0.5, 0.99]]) {
          pointer(element, "pointermove", x, y);
          pointer(element, "pointerdown", x, y);
          pointer(element, "pointerup", x, y);
          element.dispatchEvent(new WheelEvent("wheel", {bubbles: true, ctrlKey: true, shiftKey: x > 0.5,
                                                        deltaY: x < 0.9 ? -300 : 300, cancelable: true}));
          await frame();
        }
        pointer(element, "pointerdown", 0.6, 0.5);
        pointer(element, "pointermove", 0.99, 0.5);
        pointer(element, "pointerup", 0.99, 0.5);
      } else if (element.matches("canvas")) {
        for (const [x, y] of [[0.01, 0.2], [0.5, 0.3], [0.99, 0.99]]) {
          pointer(element, "pointermove", x, y);
          pointer(element, "click", x, y);
          await frame();
        }
        for (const key of ["ArrowLeft", "ArrowDown", "End", "Home"])
          element.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
      } else {
        pointer(element, "mousemove", 0.5, 0.5);
        pointer(element, "click", 0.5, 0.5);
        if (element.localName === "summary") await frame();
      }
      tell("pointerleave");
    };

    const use = async (backwards) => {
      const wrong = [];
      let what = "";
      const note = (text) => wrong.push(`${what}: ${text}`);
      addEventListener("error", (event) => {
        if (!event.message.startsWith("ResizeObserver loop")) note(event.message);  // the browser's own
      });
      addEventListener("unhandledrejection", (event) => note(event.reason));
      console.error = (...all) => note(all.join(" "));
      // Keys are for the first device on the screen.
      const keys = bench ? [...Object.keys(bench.keys), "?", "?"] : ["?", "?"];
      const press = (key, shiftKey) =>
          document.body.dispatchEvent(new KeyboardEvent("keydown", {key, shiftKey, bubbles: true}));
      const steps = keys.map((key) => [`key ${key}`, () => press(key, false)]);
      steps.push(["key Shift+ArrowLeft", () => press("ArrowLeft", true)]);
      for (const [kind, elements] of controls()) {
        const most = elements[0].matches("table *, .flame *") ? 3 : 8;
        for (let i = 0; i < Math.min(elements.length, most); ++i) {
          const name = `${kind} ${i} ${(elements[i].textContent || "").trim().slice(0, 30)}`;
          steps.push([name, async () => {
            const element = controls().get(kind)?.[i];
            if (element) await touch(element);
          }]);
        }
      }
      if (backwards) steps.reverse();
      for (const [name, action] of steps) {
        what = name;
        scrollTo(0, 0);
        await action();
        await frame();
        if (!bench) continue;
        const {view, run} = bench;
        const where = section.querySelector(".readout .where");
        if (where && Number(where.dataset.moment) !== view.state.moment)
          note(`the readout is at ${where.dataset.moment}, the cursor at ${view.state.moment}`);
        for (const text of document.querySelectorAll(".readout, .statistics, svg.chart text, svg.chart path, .who td"))
          if (/NaN|undefined|Infinity/.test(text.textContent + text.getAttribute("d")))
            note(`${text.localName} has ${text.textContent}${text.getAttribute("d")}`);
        view.writeHash();
        const again = new View(run, view.device, view.noun).state;
        for (const [field, value] of Object.entries(view.state)) {
          if (field === "hovered" || field === "lit") continue;
          if (typeof value === "number" ? !(Math.abs(value - again[field]) <= 0.51) : value !== again[field])
            note(`${field} is ${value}, by the address ${again[field]}`);
        }
      }
      what = "the end";
      await new Promise((done) => setTimeout(done, 400));  // for errors of what is done later, which nothing announces
      return [steps.length, wrong];
    };"""


class ControlsTest(PageTest):
    def use(self, backwards=False):
        self.driver.set_script_timeout(120)
        steps, wrong = self.driver.execute_async_script(
            _USE + "use(arguments[0]).then(arguments[1]);", backwards)
        self.assertGreater(steps, 1)
        self.assertEqual(wrong, [])

    def test_every_control_in_both_orders(self):
        """Nothing throws, the readout follows the cursor, and the address has the state, after each key and click."""
        for name in os.environ["PAGES"].split():
            with self.subTest(page=name):
                self.visit(page(name).as_uri())
                self.use()
                self.visit(self.driver.current_url)
                self.use(backwards=True)
                self.tearDown()

    def visit(self, address):
        self.driver.get("about:blank")  # else an address that differs after # opens nothing
        self.driver.get(address)
        self.wait_until_drawn()

    def test_a_wrong_address_does_no_harm(self):
        """A page opens whatever is in its address."""
        for fields in ("only=999999", "tab=toString", "tab=", "block=1e9", "from=5&to=5", "mark=-7", "mark=", "at=1e99",
                       "least=3&low=1&high=1.0001", "color=module&only=40", "axis=time&from=1e300&to=0",
                       "color=toString"):
            with self.subTest(fields=fields):
                self.visit(page("serving_expandable").as_uri() + "#device=0&" + fields)
                self.settle()
                self.key("m", "p")
                self.assertGreater(self.shown()[1]["reserved"], 0)
                self.tearDown()
