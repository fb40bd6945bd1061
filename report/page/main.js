// Puts the charts into the sections that the page has for them.

function drawDevice(section, device) {
  const page = device.page || {};
  const timeline = section.querySelector(".timeline");
  if (page.curve && (page.curve.position || []).length > 0) {
    new Timeline(timeline, device);
  } else {
    timeline.append(make("p", {class: "note"}, "No events: there is no timeline."));
  }
  if ((page.maps || []).length > 0) new BlockMap(section.querySelector(".blocks"), device);
}

const report = JSON.parse(document.getElementById("report").textContent);
for (const section of document.querySelectorAll("section.device")) {
  drawDevice(section, report.devices[Number(section.dataset.index)]);
}
