// Keys and their actions: one table for both the handler and the help.

/** @type {[string, string][]} */
const KEYS_TOLD = [
  ["left, right", "previous or next event; with Shift, 20 at a time"],
  ["Home, End", "before the first event, after the last"],
  ["p", "the peak of reserved memory"],
  ["o, O", "next or previous out-of-memory event"],
  ["s, S", "next or previous event of a segment"],
  ["drag", "zoom to what is dragged over"],
  ["Ctrl and wheel", "zoom around the pointer; with Shift, vertically"],
  ["+, -", "zoom in or out around the cursor"],
  ["[, ]", "move the view left or right"],
  ["m, M", "mark this moment for comparison; remove the mark"],
  ["n, N", "next or previous moment of the selected block"],
  ["/", "search the events"],
  ["Escape", "show the whole run and everything in it"],
  ["?", "list the keys"],
];

/**
 * Returns the actions of the keys for one device.
 * @param {View} view @param {{search: () => void}} actions
 * @returns {Record<string, (event: KeyboardEvent) => void>}
 */
function keysOf(view, actions) {
  const {run} = view;
  const go = (/** @type {number} */ moment) => {
    if (moment < 0) return;
    view.moveTo(moment);
    view.follow();
  };
  const jump = (/** @type {number[]} */ kinds, /** @type {number} */ step) =>
      go(run.nextOf(view.state.moment, kinds, step));
  const pan = (/** @type {number} */ share) => {
    const {from, to} = view.state;
    view.show(from + (to - from) * share, to + (to - from) * share);
  };
  const along = (/** @type {number} */ step) => {
    const block = view.state.selected;
    if (block < 0) return;
    const moments = [run.start[block], run.freed[block], run.end[block]].filter((moment) => moment <= run.last);
    const next = step > 0 ? moments.find((moment) => moment > view.state.moment) :
                            moments.reverse().find((moment) => moment < view.state.moment);
    if (next !== undefined) go(next);
  };
  return {
    ArrowLeft: (event) => go(Math.max(0, view.state.moment - (event.shiftKey ? 20 : 1))),
    ArrowRight: (event) => go(Math.min(run.last, view.state.moment + (event.shiftKey ? 20 : 1))),
    Home: () => go(0),
    End: () => go(run.last),
    p: () => go(run.peak),
    o: () => jump([run.oomKind], 1),
    O: () => jump([run.oomKind], -1),
    s: () => jump(run.segmentKinds, 1),
    S: () => jump(run.segmentKinds, -1),
    "+": () => view.zoom(0.5),
    "=": () => view.zoom(0.5),
    "-": () => view.zoom(2),
    "[": () => pan(-0.5),
    "]": () => pan(0.5),
    m: () => view.set({mark: view.state.moment}),
    M: () => view.set({mark: -1}),
    n: () => along(1),
    N: () => along(-1),
    "/": () => actions.search(),
    Escape: () => {
      view.select(-1);
      view.set({only: -1});
      view.showAll();
    },
  };
}

/** Shows the list of keys over the page, or closes it. */
function toggleHelp() {
  let dialog = /** @type {any} */ (document.querySelector("dialog.keys"));
  if (dialog === null) {
    const rows =
        KEYS_TOLD.map(([key, what]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)));
    const close = make("button", {type: "button"}, "close");
    dialog = make("dialog", {class: "keys"}, make("h3", {}, "Pointer and keys"), make("dl", {}, ...rows), close);
    close.addEventListener("click", () => dialog.close());
    document.body.append(dialog);
  }
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

/** Listens to keys anywhere. They apply to the device that has the focus, else to the first that is on the screen. */
function listenToKeys() {
  const sections = /** @type {any[]} */ ([...document.querySelectorAll("section.device")]);
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (["INPUT", "SELECT", "TEXTAREA", "SUMMARY"].includes(target.tagName)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isScrolled = target.closest(".scroll") !== null || target === document.body;
    if (event.key === "?") {
      event.preventDefault();
      toggleHelp();
      return;
    }
    if (document.querySelector("dialog[open]") !== null || (isScrolled && ["Home", "End"].includes(event.key))) return;
    if (target.closest(".scroll") !== null && event.key.startsWith("Arrow")) return;
    const section = target.closest("section.device") ??
        sections.find((each) => each.workbench && each.getBoundingClientRect().bottom > innerHeight / 3);
    const keys = section && /** @type {any} */ (section).workbench?.keys;
    if (!keys || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key](event);
  });
}
