// page.js: the table, the filters, the details, and how they, the ladder and the plots follow each other. Whatever comes from
// the capture becomes text by textContent.
const make = (name, text = "", className = "") => {
  const element = document.createElement(name);
  if (text !== "") element.textContent = text;
  if (className) element.className = className;
  return element;
};

// Head -------------------------------------------------------------------------------------------------------------------
document.title = `${capture.name} \u2013 iwarp-dump`;
$("name").textContent = capture.name;
function headCount(n, word, bad = false) {
  const item = make("li", "", bad && n > 0 ? "bad" : "");
  item.append(make("b", count(n)), ` ${word}${n === 1 || word.endsWith("lost") ? "" : "s"}`);
  $("counts").append(item);
}
headCount(summary.streamCount, "iWARP connection");
headCount(summary.messages, "message");
headCount(summary.fpdus, "FPDU");
headCount(summary.problems, "problem", true);
headCount(summary.crcBad, "bad CRC", true);
headCount(summary.lost, "octets lost", true);
headCount(summary.frames, "frame");
if (rows.count) $("counts").append(make("li", `begins ${new Date(summary.origin).toISOString().replace("T", " ").replace("Z", " UTC")}, ${span(ending - beginning)}`));

const left = summary.left;
const missing = [
  left.streams && `${plural(left.streams, "connection")} behind the first ${count(summary.streamCount - left.streams)}, with all they said`,
  left.messages && `${plural(left.messages, "message")} behind the first ${count(messageCount)}`,
  left.fpdus && `the fields of ${plural(left.fpdus, "FPDU")} behind the first ${count(fpduCount)}`,
  left.problems && `${plural(left.problems, "problem")} behind the first ${count(problemCount)}`,
].filter(Boolean);
if (missing.length) {
  $("notice").textContent = `This page does not hold all of the capture. Left out: ${missing.join("; ")}. The counts above and in the table are of all.`;
  $("notice").hidden = false;
}

// Table ------------------------------------------------------------------------------------------------------------------
let chosenStream = -1;
function markersOf(s) {
  if (!s.agreed) return s.startup ? "" : "?";
  const a = s.agreed;
  return a.markersFromInitiator && a.markersFromResponder ? "both ways" : a.markersFromInitiator ? "from initiator" : a.markersFromResponder ? "from responder" : "off";
}
function octetsOf(s, side) {
  return s.octets.filter((o) => o[1 + side] > 0).map((o) => `${kindNames[o[0]]} ${octets(o[1 + side])}`).join(", ") || "\u2013";
}
function streamRow(cells, number) {
  const tr = make("tr");
  tr.tabIndex = 0;
  tr.dataset.stream = number;
  for (const [text, className] of cells) tr.append(make("td", String(text), className));
  tr.addEventListener("click", () => chooseStream(number));
  tr.addEventListener("keydown", (event) => {
    const next = event.key === "ArrowDown" ? tr.nextElementSibling : event.key === "ArrowUp" ? tr.previousElementSibling : null;
    if (next) next.focus();
    else if (event.key === "Enter" || event.key === " ") chooseStream(number);
    else return;
    event.preventDefault();
  });
  $("streams").append(tr);
}
const sum = (f) => summary.streams.reduce((n, s) => n + f(s), 0);
if (summary.streams.length > 1) {
  const both = (side) => {
    const by = new Map();
    for (const s of summary.streams) for (const o of s.octets) by.set(o[0], (by.get(o[0]) ?? 0) + o[1 + side]);
    return octetsOf({ octets: [...by].sort((a, b) => a[0] - b[0]).map(([op, n]) => [op, n, n]) }, side);
  };
  streamRow([["all", "number"], ["all connections", ""], ["", ""], ["", ""], ["", ""], ["", ""], ["", ""], [count(sum((s) => s.fpdus)), "number"],
    [count(sum((s) => s.messages)), "number"], [both(0), "octets"], [both(1), "octets"],
    [count(sum((s) => s.problems)), sum((s) => s.problems) ? "number bad" : "number"], [octets(sum((s) => s.lost)), "number"], [span(ending - beginning), "number"]], -1);
}
const SHOWN_STREAMS = 1000;
for (const s of summary.streams.slice(0, SHOWN_STREAMS)) {
  const a = s.agreed, depth = (n) => n ?? "\u2013";
  streamRow([[s.number, "number"], [s.client, ""], [s.server, ""],
    [s.rejected ? "rejected" : a ? a.revision : s.startup ? "no Reply" : "began before", s.rejected ? "bad" : ""],
    [a ? (a.crc ? "on" : "off") : s.fpdus === 0 ? "" : s.crcUsed ? "on" : "off", ""], [markersOf(s), ""],
    [a ? `${depth(a.initiatorReads)} / ${depth(a.responderReads)}` : "", ""], [count(s.fpdus), "number"], [count(s.messages), "number"],
    [octetsOf(s, 0), "octets"], [octetsOf(s, 1), "octets"], [count(s.problems), s.problems ? "number bad" : "number"],
    [octets(s.lost), s.lost ? "number bad" : "number"], [span(s.last - s.first), "number"]], s.number);
}
if (summary.streams.length > SHOWN_STREAMS) {
  const tr = make("tr"), td = make("td", `${count(summary.streams.length - SHOWN_STREAMS)} more connections are in the diagram, not in this table.`);
  td.colSpan = 14;
  tr.append(td);
  $("streams").append(tr);
}

function chooseStream(number) {
  chosenStream = number;
  for (const tr of $("streams").children) tr.setAttribute("aria-selected", String(Number(tr.dataset.stream) === number));
  const s = streamsByNumber.get(number);
  ladder.setHeading(s ? s.client : "clients", s ? s.server : "servers");
  countKinds();
  filter();
  plots.setStream(number);
}

// Filters ----------------------------------------------------------------------------------------------------------------
const hidden = new Set();
const chips = new Map();
for (const kind of new Set([...ordered].map((row) => rows.kind[row]).sort((a, b) => a - b))) {
  const chip = make("label", "", "chip"), box = make("input"), swatch = make("span", "", "swatch"), number = make("small");
  box.type = "checkbox";
  box.checked = true;
  box.addEventListener("change", () => { if (box.checked) hidden.delete(kind); else hidden.add(kind); filter(); });
  chip.append(box, swatch, kindNames[kind], number);
  chip.title = "Click to show or hide; double click for this one alone";
  chip.addEventListener("dblclick", (event) => {
    event.preventDefault();
    const alone = hidden.size === chips.size - 1 && !hidden.has(kind);
    hidden.clear();
    for (const [other, parts] of chips) {
      if (!alone && other !== kind) hidden.add(other);
      parts.box.checked = !hidden.has(other);
    }
    filter();
  });
  $("legend").append(chip);
  chips.set(kind, { box, swatch, number });
}
function paintChips() { for (const [kind, { swatch }] of chips) swatch.style.background = colourOf(kind); }
function countKinds() {
  const numbers = new Array(kindNames.length).fill(0);
  for (let row = 0; row < rows.count; ++row) if (chosenStream < 0 || rows.stream[row] === chosenStream) ++numbers[rows.kind[row]];
  for (const [kind, { number }] of chips) number.textContent = count(numbers[kind]);
}
function filter() {
  const text = $("search").value.trim().toLowerCase(), only = $("onlyProblems").checked;
  const exact = /^#\d+$/.test(text) ? Number(text.slice(1)) : -1;
  const passes = (row) =>
    (chosenStream < 0 || rows.stream[row] === chosenStream) && !hidden.has(rows.kind[row]) && (!only || rows.bad[row] === 1) &&
    (text === "" || (exact >= 0 ? rows.kind[row] < 16 && rows.number[row] === exact : label(row).toLowerCase().includes(text)));
  const everything = chosenStream < 0 && hidden.size === 0 && !only && text === "";
  ladder.setView(everything ? ordered : ordered.filter(passes));
  showRange();
}
let typing = 0;
$("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(filter, 150); });
$("onlyProblems").addEventListener("change", filter);
$("scaleRows").addEventListener("change", () => ladder.setScale(false));
$("scaleTime").addEventListener("change", () => ladder.setScale(true));
$("zoomIn").addEventListener("click", () => ladder.zoom(0.5));
$("zoomOut").addEventListener("click", () => ladder.zoom(2));
$("fit").addEventListener("click", () => ladder.fit());
$("nextProblem").addEventListener("click", () => ladder.nextProblem());
$("nextProblem").disabled = !problems.some((p) => !p.note);
function showRange() {
  const [first, last, visible, all] = ladder.shown();
  const [a, b] = ladder.timeWindow();
  $("range").textContent = all === 0 ? "" : ladder.isRealTime()
    ? `${seconds(a)} to ${seconds(b)} s: ${count(visible)} of ${count(all)} rows` : `rows ${count(Math.min(first + 1, all))} to ${count(last)} of ${count(all)}`;
}

// Details ----------------------------------------------------------------------------------------------------------------
const FPDUS_SHOWN = 400;
function details(row) {
  const box = $("details");
  box.replaceChildren();
  if (row < 0) {
    box.append(make("p", "Click an arrow, or press Up and Down in the diagram: all fields of a message are shown here."));
    return;
  }
  const kind = rows.kind[row];
  const title = make("h2", kind < 16 ? `${kindNames[kind]} #${rows.number[row]}` : kindNames[kind]);
  title.style.color = colourOf(kind);
  box.append(title);
  for (const p of problemsOf.get(row) ?? []) {
    box.append(make("p", `${p.note ? "note" : "Problem"} ${p.rule}, frame ${p.frame}, at ${p.offset}: ${p.text}`, p.note ? "" : "badText"));
  }
  const table = make("table"), body = make("tbody");
  const field = (name, value, more) => {
    const tr = make("tr"), td = make("td", value);
    if (more) td.append(" ", more);
    tr.append(make("th", name), td);
    body.append(tr);
  };
  const jump = (other) => {
    const button = make("button", "show");
    button.type = "button";
    button.addEventListener("click", () => ladder.select(other));
    return button;
  };
  const stream = rows.stream[row], side = rows.side[row];
  field("from", `${endpointOf(stream, side)} (${side === 0 ? "client" : "server"})`);
  field("to", endpointOf(stream, 1 - side));
  field("connection", String(stream));
  const several = rows.firstFrame[row] !== rows.frame[row];
  field(several ? "frames" : "frame", several ? `${rows.firstFrame[row]} to ${rows.frame[row]}` : String(rows.frame[row]));
  field("time", `${seconds(rows.first[row], 9)} s` + (several ? `, for ${span(rows.time[row] - rows.first[row])}` : ""));
  field("stream offset", count(rows.offset[row]));
  if (kind < 16) {
    field("payload", plural(rows.length[row], "octet"));
    field("FPDUs", count(rows.segments[row]));
    if (tagged(kind)) {
      field("STag", stag(rows.tag[row]));
      field("tagged offset", hex(rows.to[row]));
    } else {
      field("MSN", count(rows.msn[row]));
      if (invalidates(kind)) field("invalidates STag", stag(rows.tag[row]));
    }
    const r = rows.read[row];
    if (r >= 0) {
      field("Read size", plural(reads[r], "octet"));
      field("source", `STag ${stag(reads[r + 1])}, offset ${hex(reads[r + 2])}`);
      field("sink", `STag ${stag(reads[r + 3])}, offset ${hex(reads[r + 4])}`);
    }
    const pair = rows.pair[row];
    if (rows.request[row] !== 0) field("answers", `#${rows.request[row]}`, pair >= 0 ? jump(pair) : null);
    else if (kind === OP.ReadResp || kind === OP.AtomicResp) field("answers", "no request seen");
    else if (pair >= 0) field("answered by", `#${rows.number[pair]}, ${span(rows.time[pair] - rows.time[row])} later`, jump(pair));
    else if (kind === OP.ReadReq || kind === OP.AtomicReq) field("answered by", "nothing seen");
    const flags = rows.flags[row];
    field("CRC", flags & CRC_BAD ? "BAD" : rows.segments[row] === 1 ? CRC[rows.crc[row]] : flags & CUT ? "not known of all" : "no bad one");
    if (flags & CUT) field("capture", "octets of it are missing");
    if (flags & UNFINISHED) field("unfinished", "its last segment never came");
  } else if (kind !== PROBLEM) {
    field("size", plural(rows.length[row], "octet"));
  }
  if (texts.has(row)) field(kind >= 16 ? "says" : "fields", texts.get(row));
  table.append(body);
  box.append(table);
  if (kind < 16 && rows.segments[row] > 1) box.append(fpduTable(row));
}
function fpduTable(row) {
  const table = make("table", "", "fpdus"), head = make("thead"), body = make("tbody"), names = make("tr");
  for (const name of ["frame", "seconds", "offset", "octets", tagged(rows.kind[row]) ? "to" : "mo", "CRC", ""]) names.append(make("th", name, name && name !== "CRC" ? "number" : ""));
  head.append(names);
  let n = 0;
  for (let i = 0; i < fpduCount; ++i) {
    if (fpdus.number[i] !== rows.number[row] || fpdus.stream[i] !== rows.stream[row]) continue;
    if (++n > FPDUS_SHOWN) continue;
    const tr = make("tr"), k = fpdus.kind[i];
    for (const value of [fpdus.frame[i], seconds(fpdus.time[i]), fpdus.offset[i], fpdus.length[i], k & 4 ? hex(fpdus.position[i]) : fpdus.position[i]]) tr.append(make("td", String(value), "number"));
    tr.append(make("td", CRC[k >> 3], k >> 3 === 1 ? "badText" : ""), make("td", k & 2 ? "last" : ""));
    body.append(tr);
  }
  table.append(head, body);
  if (n === FPDUS_SHOWN + 1 || n > FPDUS_SHOWN) table.append(make("caption", `the first ${FPDUS_SHOWN} of ${count(n)} FPDUs`));
  else if (n < rows.segments[row]) table.append(make("caption", `${count(rows.segments[row] - n)} FPDUs are not kept in this page`));
  return table;
}

// Problems ---------------------------------------------------------------------------------------------------------------
const real = problems.filter((p) => !p.note);
let problemsShown = 0;
function moreProblems() {
  const until = Math.min(real.length, problemsShown + 200);
  for (; problemsShown < until; ++problemsShown) {
    const p = real[problemsShown], tr = make("tr");
    tr.tabIndex = 0;
    const show = () => {
      if (chosenStream >= 0 && chosenStream !== p.stream) chooseStream(p.stream);
      if (hidden.delete(rows.kind[p.row])) { chips.get(rows.kind[p.row]).box.checked = true; filter(); }
      if ($("search").value !== "") { $("search").value = ""; filter(); }
      ladder.select(p.row);
      $("ladder").scrollIntoView({ block: "nearest" });
    };
    tr.addEventListener("click", show);
    tr.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(); } });
    tr.append(make("td", p.rule, "badText"), make("td", String(p.stream), "number"), make("td", String(p.frame), "number"), make("td", count(p.offset), "number"),
      make("td", endpointOf(p.stream, p.side)), make("td", p.text));
    $("problemRows").append(tr);
  }
  $("moreProblems").hidden = problemsShown === real.length;
}
if (real.length) {
  $("problems").hidden = false;
  $("problemCount").textContent = count(real.length);
  $("moreProblems").addEventListener("click", moreProblems);
  moreProblems();
}

// All together -----------------------------------------------------------------------------------------------------------
ladder.listeners.select.push(details);
ladder.listeners.window.push(() => { showRange(); plots.redraw(); });
plots.listeners.push((a, b) => ladder.showTime(a, b));
dark.addEventListener("change", paintChips);
paintChips();
plots.build();
ladder.setView(ordered);
ladder.resize();
chooseStream(summary.streams.length === 1 ? summary.streams[0].number : -1);
details(-1);
new ResizeObserver(() => { ladder.resize(); plots.fitWidth(); }).observe($("ladder"));
ladder.draw();

// What the tests read; #measure draws many windows of both scales first, #scale=time and #row=N set the view.
const wish = new URLSearchParams(location.hash.slice(1));
const worst = { rows: 0, time: 0 };
if (wish.has("measure")) {
  for (const scale of ["rows", "time"]) {
    ladder.setScale(scale === "time");
    for (let i = 0; i < 60; ++i) {
      const [low, high] = ladder.limits(), size = (high - low) / 2 ** (i % 15), begin = low + (high - low - size) * (i / 60);
      ladder.setWindow(begin, begin + size);
      ladder.draw();
      worst[scale] = Math.max(worst[scale], ladder.lastDraw);
    }
  }
  ladder.setScale(false);
}
if (wish.get("scale") === "time") {
  $("scaleTime").checked = true;
  ladder.setScale(true);
}
if (wish.has("fit")) ladder.fit();
if (wish.has("row")) ladder.select(ordered[Number(wish.get("row"))] ?? -1);
ladder.draw();
Object.assign(document.documentElement.dataset, {
  ready: "yes", rows: rows.count, drawn: ladder.drawn, fpdus: fpduCount, problems: real.length, pairs: rows.pair.filter((p) => p >= 0).length / 2,
  milliseconds: Math.round(performance.now()), worstRows: worst.rows.toFixed(1), worstTime: worst.time.toFixed(1),
});
