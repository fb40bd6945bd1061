// Opens each device's run when its section comes near the window.

/** @param {string} id */
function partOf(id) {
  const element = document.getElementById(id);
  return element ? element.textContent || "" : "";
}

/** @param {HTMLElement} section @param {any} device @param {number} index */
async function openDevice(section, device, index) {
  const host = /** @type {HTMLElement} */ (section.querySelector(".workbench"));
  const head = partOf(`run-${index}-head`);
  if (head === "" || typeof DecompressionStream === "undefined") {
    section.dataset.ready = "true";
    host.append(make(
        "p", {class: "note"},
        head === "" ? "There are no events and no blocks to draw." :
                      "This browser is too old to draw the charts: it has no DecompressionStream."));
    return;
  }
  const run = await Run.read(JSON.parse(head), partOf(`run-${index}`));
  /** @type {any} */ (section).workbench = new Workbench(section, device, index, run);
  section.dataset.ready = "true";
}

/** @param {HTMLElement} lines to paste */
function addCopyButton(lines) {
  const text = lines.textContent || "";
  const button = make("button", {type: "button", class: "copy"}, "copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {  // not allowed: select it, so that Ctrl+C copies it
      getSelection()?.selectAllChildren(lines);
      button.textContent = "selected: press Ctrl+C";
    }
  });
  lines.before(button);
}

function openPage() {
  const report = JSON.parse(partOf("report"));
  const sections = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("section.device"));
  const wanted = new URLSearchParams(location.hash.slice(1)).get("device");
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      near.unobserve(entry.target);
      const section = /** @type {HTMLElement} */ (entry.target);
      const index = Number(section.dataset.index);
      openDevice(section, report.devices[index], index);
    }
  }, {rootMargin: "600px"});
  for (const section of sections) near.observe(section);
  const sectionOf = (/** @type {string} */ index) => [...sections].find((each) => each.dataset.index === index);
  if (wanted !== null && sections.length > 1) sectionOf(wanted)?.scrollIntoView();
  document.addEventListener("click", (event) => {
    const {section} = /** @type {HTMLElement} */ (event.target).dataset;
    if (section !== undefined) sectionOf(section)?.scrollIntoView({behavior: "smooth"});
  });
  listenToKeys();
  for (const lines of document.querySelectorAll("pre.paste")) addCopyButton(/** @type {HTMLElement} */ (lines));
}

openPage();
