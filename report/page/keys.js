// Keys, and what they do: one table for both the handler and the help.

/** @type {[string, string][]} */
const KEYS_TOLD = [
  ["left, right", "previous or next event; with Shift, 20 at a time"],
  ["Home, End", "before the first event, after the last"],
  ["p", "peak of reserved memory"],
  ["a", "peak of active memory"],
  ["o, O", "next or previous out-of-memory event"],
  ["s, S", "next or previous event of a segment"],
  ["+, -", "zoom in or out around the cursor; Shift and the wheel zoom vertically"],
  ["[, ]", "move the view left or right"],
  ["m, M", "mark this moment for comparison; remove the mark"],
  ["n, N", "next or previous moment of the selected block"],
  ["/", "search the events"],
  ["Escape", "show the whole run and clear the selection"],
  ["?", "list the keys"],
];

/**
 * Puts the keys on a device's section.
 * @param {HTMLElement} section @param {View} view
 * @param {{search: () => void, help: () => void}} actions
 */
function listenToKeys(section, view, actions) {
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
  /** @type {Record<string, (event: KeyboardEvent) => void>} */
  const keys = {
    ArrowLeft: (event) => go(Math.max(0, view.state.moment - (event.shiftKey ? 20 : 1))),
    ArrowRight: (event) => go(Math.min(run.last, view.state.moment + (event.shiftKey ? 20 : 1))),
    Home: () => go(0),
    End: () => go(run.last),
    p: () => go(run.peak),
    a: () => go(run.activeTree.find(0, run.last + 1)),
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
    "?": () => actions.help(),
    Escape: () => {
      view.select(-1);
      view.showAll();
    },
  };
  section.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (["INPUT", "SELECT", "TEXTAREA", "SUMMARY"].includes(target.tagName)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key](event);
  });
}
