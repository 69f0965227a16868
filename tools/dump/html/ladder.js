// ladder.js: the diagram. Down runs time, or the number of the row among those shown; a window of that is drawn.
const dark = matchMedia("(prefers-color-scheme: dark)");
const hues = {  // light, dark
  Send: ["#1f63c4", "#6fa8ff"], SendInv: ["#4a4fc9", "#9b9fff"], SendSE: ["#0c7fb0", "#5cc8f2"], SendSEInv: ["#6a3fb5", "#bd9bff"],
  Write: ["#1b8a4b", "#57d08c"], ReadReq: ["#c46a00", "#ffb04d"], ReadResp: ["#94700a", "#e3c84f"], Terminate: ["#b0157f", "#ff74cf"],
  Immediate: ["#0d8577", "#4fd6c6"], ImmSE: ["#2b7480", "#7cc9d6"], AtomicReq: ["#8a4b2a", "#d79a76"], AtomicResp: ["#6e5a48", "#c4ad97"],
};
const colourOf = (kind) => {
  const name = kindNames[kind];
  const pair = hues[name] ?? (kind === PROBLEM ? ["#c2182b", "#ff7380"] : ["#5b6675", "#a4afbe"]);
  return pair[dark.matches ? 1 : 0];
};
const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const ladder = (() => {
  const canvas = $("canvas"), context = canvas.getContext("2d"), tip = $("tip");
  const TOP = 22, STRIP = 12, ROW = 20, SKIP = 256;
  const small = '11px ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace';
  let width = 0, height = 0, ratio = 1;
  let view = ordered;           // rows shown, in order of time
  let placeOf = null;           // row: index in view
  let earliest = null;          // of each SKIP rows of the view, the least time of a first frame
  let realTime = false;
  let from = 0, to = 1;         // the window, in rows of the view or nanoseconds
  let selected = -1;
  let heading = ["", ""];
  let due = false, drawn = 0, dense = false, theme = null;
  const listeners = { select: [], window: [] };

  const low = () => (realTime ? beginning : 0);
  // One row per message: a short view does not stretch over the whole height.
  const high = () => (realTime ? Math.max(ending, beginning + 1000) : Math.max(view.length, (height - TOP) / ROW));
  const least = () => (realTime ? 1000 : 3);
  const y = (value) => TOP + (value - from) / (to - from) * (height - TOP);
  const valueAt = (py) => from + (py - TOP) / (height - TOP) * (to - from);
  const startOf = (i) => (realTime ? rows.first[view[i]] : i + 0.5);
  const endOf = (i) => (realTime ? rows.time[view[i]] : i + 0.5);

  // The first index whose time is not before `time`.
  function indexAt(time) {
    let a = 0, b = view.length;
    while (a < b) {
      const middle = (a + b) >> 1;
      if (rows.time[view[middle]] < time) a = middle + 1; else b = middle;
    }
    return a;
  }

  // Calls `f` with each index that may be seen. Messages that end below the window may have begun in it.
  function visible(f) {
    if (!realTime) {
      for (let i = Math.max(0, Math.floor(from)); i < Math.min(view.length, Math.ceil(to)); ++i) f(i);
      return;
    }
    let i = indexAt(from);
    for (; i < view.length && rows.time[view[i]] <= to; ++i) f(i);
    while (i < view.length) {
      if (i % SKIP === 0 && earliest[i / SKIP] > to) { i += SKIP; continue; }
      if (rows.first[view[i]] <= to) f(i);
      ++i;
    }
  }
  function visibleCount() {
    if (!realTime) return Math.max(0, Math.min(view.length, Math.ceil(to)) - Math.max(0, Math.floor(from)));
    return indexAt(to + 1) - indexAt(from);
  }

  function setView(next) {
    const anchor = selected >= 0 && placeOf && placeOf[selected] >= 0 ? selected : -1;
    view = next;
    placeOf = new Int32Array(rows.count).fill(-1);
    for (let i = 0; i < view.length; ++i) placeOf[view[i]] = i;
    earliest = new Float64Array(Math.ceil(view.length / SKIP)).fill(Infinity);
    for (let i = 0; i < view.length; ++i) earliest[Math.floor(i / SKIP)] = Math.min(earliest[Math.floor(i / SKIP)], rows.first[view[i]]);
    if (!realTime) {
      const size = to - from;
      const begin = anchor >= 0 && placeOf[anchor] >= 0 ? placeOf[anchor] - size / 2 : 0;
      setWindow(begin, begin + size);
    }
    request();
  }

  function setWindow(a, b) {
    const size = Math.min(Math.max(b - a, least()), high() - low());
    if (b - a !== size) { const middle = (a + b) / 2; a = middle - size / 2; }
    a = Math.max(low(), Math.min(a, high() - size));
    from = a;
    to = a + size;
    request();
    for (const f of listeners.window) f();
  }
  const zoom = (factor, at = (from + to) / 2) => setWindow(at - (at - from) * factor, at + (to - at) * factor);
  const pan = (part) => setWindow(from + part * (to - from), to + part * (to - from));
  const fit = () => setWindow(low(), high());
  const readable = (begin = 0) => setWindow(begin, begin + (height - TOP) / ROW);

  // What of the capture's time is in the window.
  function timeWindow() {
    if (realTime) return [from, to];
    if (view.length === 0) return [beginning, ending];
    const a = Math.min(view.length - 1, Math.max(0, Math.floor(from))), b = Math.min(view.length, Math.ceil(to)) - 1;
    return [rows.time[view[a]], rows.time[view[Math.max(a, b)]]];
  }
  function showTime(a, b) {
    if (realTime) setWindow(a, b);
    else { const i = indexAt(a); setWindow(i, Math.max(i + 1, indexAt(b + 1))); }
  }
  function setScale(real) {
    if (real === realTime) return;
    const [a, b] = timeWindow();
    realTime = real;
    if (real) setWindow(a, Math.max(b, a + 1000));
    else {
      const begin = indexAt(a);
      readable(begin);
    }
  }

  function request() {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; draw(); });
  }

  // Drawing ----------------------------------------------------------------------------------------------------------
  function geometry() {
    const gutter = width < 560 ? 74 : 150;
    return { gutter, left: gutter + 14, right: width - STRIP - (width < 560 ? 30 : 52) };
  }
  const colours = () => ({
    text: styleOf("--text"), dim: styleOf("--dim"), line: styleOf("--line"), panel: styleOf("--panel"), row: styleOf("--row"),
    bad: styleOf("--bad"), badBack: styleOf("--bad-back"), accent: styleOf("--accent"), kind: kindNames.map((_, i) => colourOf(i)),
  });

  function clip(text, room) {
    const letters = Math.floor(room / 6.62);
    return text.length <= letters ? text : letters < 2 ? "" : text.slice(0, letters - 1) + "\u2026";
  }

  // 1, 2 or 5 times a power of ten, so that lines are `room` pixels apart or more.
  function timeStep(room) {
    const atLeast = (to - from) * room / (height - TOP);
    const power = 10 ** Math.floor(Math.log10(atLeast));
    return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= atLeast);
  }

  function drawArrow(x1, y1, x2, y2, colour) {
    const c = context;
    c.strokeStyle = c.fillStyle = colour;
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.stroke();
    const angle = Math.atan2(y2 - y1, x2 - x1), size = 7;
    c.beginPath();
    c.moveTo(x2, y2);
    c.lineTo(x2 - size * Math.cos(angle - 0.4), y2 - size * Math.sin(angle - 0.4));
    c.lineTo(x2 - size * Math.cos(angle + 0.4), y2 - size * Math.sin(angle + 0.4));
    c.fill();
  }

  // A Read and its Response, joined beside the line of who answers.
  function drawPair(i, g) {
    const row = view[i], pair = rows.pair[row];
    if (pair < 0 || placeOf[pair] < 0) return;
    const asks = rows.request[row] === 0;
    // Once: by the request, or by the response when the request is above the window.
    if (!asks && endOf(placeOf[pair]) >= from) return;
    const asked = asks ? row : pair, answered = asks ? pair : row;
    const y1 = Math.max(TOP - 4, y(endOf(placeOf[asked]))), y2 = Math.min(height + 4, y(startOf(placeOf[answered])));
    const side = rows.side[asked] === 0 ? 1 : -1;
    const x = side > 0 ? g.right : g.left, lanes = side > 0 ? 7 : 2;
    const reach = x + side * (5 + (rows.number[asked] % lanes) * 5);
    const lit = selected === row || selected === pair;
    context.strokeStyle = lit ? theme.accent : theme.kind[OP.ReadReq];
    context.lineWidth = lit ? 2 : 1;
    context.globalAlpha = lit ? 1 : 0.6;
    context.beginPath();
    context.moveTo(x, y1);
    context.lineTo(reach, y1 + Math.min(3, Math.abs(y2 - y1) / 2));
    context.lineTo(reach, y2 - Math.min(3, Math.abs(y2 - y1) / 2));
    context.lineTo(x, y2);
    context.stroke();
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
  }

  function drawArrows(g) {
    const c = context, pixels = (height - TOP) / (to - from);
    const label11 = realTime || pixels >= 13;
    let lastLabel = -100, last = "";
    const labels = [];
    c.lineWidth = 1.5;
    visible((i) => {
      const row = view[i];
      const y1 = y(startOf(i)), y2 = y(endOf(i)), bad = rows.bad[row];
      const mark = row === selected;
      const key = `${Math.round(y1)} ${Math.round(y2)} ${rows.kind[row]} ${rows.side[row]}`;
      if (key === last && !mark && !bad) return;  // the same pixels
      last = key;
      ++drawn;
      if (!realTime && (mark || bad)) {
        c.fillStyle = mark ? theme.row : theme.badBack;
        c.fillRect(0, y1 - pixels / 2, width - STRIP, pixels);
      } else if (mark) {
        c.fillStyle = theme.row;
        c.fillRect(0, Math.min(y1, y2) - 7, width - STRIP, Math.abs(y2 - y1) + 14);
      }
      const [x1, x2] = rows.side[row] === 0 ? [g.left, g.right] : [g.right, g.left];
      if (rows.kind[row] === PROBLEM) {
        c.strokeStyle = theme.bad;
        c.setLineDash([4, 4]);
        c.beginPath();
        c.moveTo(g.left, y2);
        c.lineTo(g.right, y2);
        c.stroke();
        c.setLineDash([]);
      } else {
        c.lineWidth = mark ? 2.5 : 1.5;
        drawArrow(x1, y1, x2, y2, theme.kind[rows.kind[row]]);
        c.lineWidth = 1.5;
      }
      if (bad) {
        c.fillStyle = theme.bad;
        c.beginPath();
        c.arc(x1, y1, 5, 0, 7);
        c.fill();
        c.fillStyle = theme.panel;
        c.fillRect(x1 - 0.75, y1 - 3, 1.5, 3.6);
        c.fillRect(x1 - 0.75, y1 + 1.6, 1.5, 1.5);
      }
      const at = (y1 + y2) / 2;
      if (label11 && (mark || at - lastLabel >= 13)) {
        if (at > TOP - 10 && at < height + 10) labels.push([row, at]);
        lastLabel = at;
      }
    });
    visible((i) => drawPair(i, g));
    for (const [row, at] of labels) {
      const text = clip(label(row), g.right - g.left - 36);
      const size = context.measureText(text).width, x = (g.left + g.right - size) / 2;
      c.fillStyle = row === selected && !realTime ? theme.row : rows.bad[row] && !realTime ? theme.badBack : theme.panel;
      c.fillRect(x - 4, at - 6.5, size + 8, 13);
      c.fillStyle = theme.kind[rows.kind[row]];
      c.fillText(text, x, at);
      if (realTime) continue;
      c.fillStyle = rows.bad[row] ? theme.bad : theme.dim;
      c.textAlign = "right";
      c.fillText(g.gutter > 100 ? `${rows.frame[row]}  ${seconds(rows.time[row])}` : seconds(rows.time[row], ending < 1e10 ? 6 : 3), g.gutter, at);
      c.textAlign = "left";
    }
  }

  // Too many for arrows: how many there are of each operation, from each side, in each pair of pixels.
  const BIN = 2;
  let bins = null, binsHigh = 1;
  function drawCounts(g) {
    const c = context, n = Math.ceil((height - TOP) / BIN), kinds = kindNames.length;
    bins = new Uint32Array(n * 2 * kinds);
    const sums = new Uint32Array(n * 2), bad = new Uint8Array(n * 2);
    const scale = (height - TOP) / (to - from) / BIN;
    const put = (i) => {
      const row = view[i], bin = Math.floor((endOf(i) - from) * scale);
      if (bin < 0 || bin >= n) return;
      const side = bin * 2 + rows.side[row];
      ++bins[side * kinds + rows.kind[row]];
      ++sums[side];
      bad[side] |= rows.bad[row];
    };
    const begin = realTime ? indexAt(from) : Math.max(0, Math.floor(from));
    const end = realTime ? indexAt(to + 1) : Math.min(view.length, Math.ceil(to));
    for (let i = begin; i < end; ++i) put(i);
    binsHigh = sums.reduce((a, b) => Math.max(a, b), 1);
    const room = (g.right - g.left) / 2 * 0.96;
    for (let kind = 0; kind < kinds; ++kind) {
      c.fillStyle = theme.kind[kind];
      for (let side = 0; side < 2; ++side) {
        for (let bin = 0; bin < n; ++bin) {
          const here = bins[(bin * 2 + side) * kinds + kind];
          if (here === 0) continue;
          let before = 0;
          for (let k = 0; k < kind; ++k) before += bins[(bin * 2 + side) * kinds + k];
          const size = Math.max(0.7, here / binsHigh * room), start = before / binsHigh * room;
          c.fillRect(side === 0 ? g.left + start : g.right - start - size, TOP + bin * BIN, size, BIN);
          ++drawn;
        }
      }
    }
    c.fillStyle = theme.bad;
    for (let bin = 0; bin < n; ++bin) {
      for (let side = 0; side < 2; ++side) {
        if (bad[bin * 2 + side]) c.fillRect(side === 0 ? g.left - 11 : g.right + 3, TOP + bin * BIN - 1, 8, BIN + 2);
      }
    }
    const text = `${count(end - begin)} messages: bars count them, up to ${count(binsHigh)} each; zoom in for arrows`;
    const size = c.measureText(text).width;
    c.fillStyle = theme.panel;
    c.globalAlpha = 0.85;
    c.fillRect((g.left + g.right - size) / 2 - 6, height - 22, size + 12, 18);
    c.globalAlpha = 1;
    c.fillStyle = theme.text;
    c.fillText(text, (g.left + g.right - size) / 2, height - 13);
  }

  function drawAxis(g) {
    const c = context;
    c.strokeStyle = theme.line;
    c.fillStyle = theme.dim;
    c.lineWidth = 1;
    if (!realTime && !dense) return;
    c.textAlign = "right";
    if (realTime) {
      const step = timeStep(46);
      const digits = Math.min(9, Math.max(0, 9 - Math.floor(Math.log10(step) + 1e-9)));
      for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
        const py = Math.round(y(t)) + 0.5;
        c.beginPath();
        c.moveTo(g.gutter + 2, py);
        c.lineTo(g.right, py);
        c.stroke();
        if (py > TOP + 6) c.fillText(`${seconds(t, digits)} s`, g.gutter - 2, py);
      }
    } else {
      for (let py = TOP + 8; py < height - 6; py += 46) {
        const i = Math.floor(valueAt(py));
        if (i >= 0 && i < view.length) c.fillText(`${seconds(rows.time[view[i]], g.gutter > 100 ? 6 : 3)} s`, g.gutter - 2, py);
      }
    }
    c.textAlign = "left";
  }

  // All of the view, where in it the window is, and where problems are.
  function drawStrip() {
    const c = context, x = width - STRIP, size = high() - low(), room = height - TOP;
    c.fillStyle = theme.row;
    c.fillRect(x, TOP, STRIP, room);
    c.fillStyle = theme.dim;
    c.globalAlpha = 0.45;
    c.fillRect(x + 1, TOP + (from - low()) / size * room, STRIP - 2, Math.max(6, (to - from) / size * room));
    c.globalAlpha = 1;
    c.fillStyle = theme.bad;
    for (const row of badRows) {
      if (placeOf[row] < 0) continue;
      c.fillRect(x + 2, TOP + (endOf(placeOf[row]) - low()) / size * room - 1, STRIP - 4, 2);
    }
  }

  const badRows = [...problemsOf.keys()].filter((row) => rows.bad[row]).sort((a, b) => rows.time[a] - rows.time[b]);

  function draw() {
    const began = performance.now();
    const c = context;
    theme ??= colours();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = theme.panel;
    c.fillRect(0, 0, width, height);
    c.font = small;
    c.textBaseline = "middle";
    c.textAlign = "left";
    const g = geometry();
    drawn = 0;
    dense = visibleCount() > (height - TOP) / 3;
    c.save();
    c.beginPath();
    c.rect(0, TOP, width, height - TOP);
    c.clip();
    drawAxis(g);
    c.strokeStyle = theme.dim;
    c.lineWidth = 1;
    for (const x of [g.left, g.right]) {
      c.beginPath();
      c.moveTo(x, TOP);
      c.lineTo(x, height);
      c.stroke();
    }
    if (dense) drawCounts(g); else drawArrows(g);
    if (view.length === 0) {
      c.fillStyle = theme.dim;
      c.textAlign = "center";
      c.fillText(rows.count === 0 ? "No iWARP message in this capture." : "No message passes the filters.", (g.left + g.right) / 2, TOP + 40);
      c.textAlign = "left";
    }
    drawStrip();
    c.restore();
    c.fillStyle = theme.text;
    c.font = "bold " + small;
    const half = (width - STRIP - g.gutter) / 2;
    c.fillText(clip(heading[0], half), g.left - 10, TOP / 2);
    c.textAlign = "right";
    c.fillText(clip(heading[1], half), Math.min(width - STRIP - 2, g.right + 30), TOP / 2);
    c.textAlign = "left";
    if (!realTime && !dense && g.gutter > 100) {
      c.font = small;
      c.fillStyle = theme.dim;
      c.textAlign = "right";
      c.fillText("frame   seconds", g.gutter, TOP / 2);
      c.textAlign = "left";
    }
    state.lastDraw = performance.now() - began;
    state.drawn = drawn;
  }

  // What is under a point: a row; in a picture of counts the words about its bar; nothing: -1.
  function rowAt(px, py) {
    if (py < TOP || px > width - STRIP || dense) return -1;
    if (!realTime) {
      const i = Math.floor(valueAt(py));
      return i >= 0 && i < view.length ? view[i] : -1;
    }
    const g = geometry();
    let best = -1, distance = 7;
    visible((i) => {
      const row = view[i];
      let part = Math.min(1, Math.max(0, (px - g.left) / (g.right - g.left)));
      if (rows.side[row] === 1) part = 1 - part;
      const d = Math.abs(y(startOf(i)) + part * (y(endOf(i)) - y(startOf(i))) - py);
      if (d < distance) { distance = d; best = row; }
    });
    return best;
  }
  function countsAt(px, py) {
    if (!dense || py < TOP || px > width - STRIP) return "";
    const g = geometry(), side = px < (g.left + g.right) / 2 ? 0 : 1, bin = Math.floor((py - TOP) / BIN), kinds = kindNames.length;
    const words = [];
    for (let kind = 0; kind < kinds; ++kind) {
      const n = bins[(bin * 2 + side) * kinds + kind];
      if (n) words.push(`${kindNames[kind]}: ${count(n)}`);
    }
    return words.length ? `from the ${side === 0 ? "client" : "server"}\n${words.join("\n")}` : "";
  }

  function select(row, show = true) {
    selected = row;
    if (row >= 0 && show && placeOf[row] >= 0) {
      const value = endOf(placeOf[row]);
      if (dense && !realTime) readable(value - (height - TOP) / ROW / 2);
      else if (value < from || value > to) setWindow(value - (to - from) / 2, value + (to - from) / 2);
      else if (!realTime && value - 0.5 < from) setWindow(value - 0.5, value - 0.5 + to - from);
      else if (!realTime && value + 0.5 > to) setWindow(value + 0.5 - to + from, value + 0.5);
    }
    request();
    for (const f of listeners.select) f(row);
  }
  function step(by) {
    if (view.length === 0) return;
    const now = selected >= 0 ? placeOf[selected] : -1;
    const i = now < 0 ? Math.max(0, realTime ? indexAt(from) : Math.ceil(from)) : now + by;
    select(view[Math.max(0, Math.min(view.length - 1, i))]);
  }
  function nextProblem() {
    const shown = badRows.filter((row) => placeOf[row] >= 0);
    if (shown.length === 0) return;
    const now = selected >= 0 ? placeOf[selected] : -1;
    select(shown.find((row) => placeOf[row] > now) ?? shown[0]);
  }

  // Pointer and keys -----------------------------------------------------------------------------------------------------
  let drag = null;
  const point = (event) => { const r = canvas.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
  function hideTip() { tip.hidden = true; }
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [px, py] = point(event);
    canvas.setPointerCapture(event.pointerId);
    drag = { py, from, to, moved: false, strip: px > width - STRIP && py > TOP };
    if (drag.strip) jump(py);
    hideTip();
  });
  function jump(py) {
    const middle = low() + (py - TOP) / (height - TOP) * (high() - low()), half = (to - from) / 2;
    setWindow(middle - half, middle + half);
  }
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = point(event);
    if (drag) {
      if (drag.strip) { jump(py); return; }
      if (Math.abs(py - drag.py) > 3) drag.moved = true;
      if (!drag.moved) return;
      canvas.classList.add("dragging");
      const by = (drag.py - py) / (height - TOP) * (drag.to - drag.from);
      setWindow(drag.from + by, drag.to + by);
      return;
    }
    const row = rowAt(px, py);
    const words = row >= 0
      ? `${label(row)}\nframe ${rows.frame[row]}, ${seconds(rows.time[row])} s, ${endpointOf(rows.stream[row], rows.side[row])}` +
        (problemsOf.get(row) ?? []).map((p) => `\n${p.note ? "note" : "problem"} ${p.rule}: ${p.text}`).join("")
      : countsAt(px, py);
    tip.hidden = words === "";
    if (words === "") return;
    tip.textContent = words;
    tip.style.left = `${Math.max(4, Math.min(px + 14, width - tip.offsetWidth - 16))}px`;
    tip.style.top = `${py + 18 + tip.offsetHeight > height ? py - tip.offsetHeight - 10 : py + 18}px`;
  });
  canvas.addEventListener("pointerup", (event) => {
    canvas.classList.remove("dragging");
    const was = drag;
    drag = null;
    if (!was || was.moved || was.strip) return;
    const [px, py] = point(event);
    if (dense) zoom(0.25, valueAt(py)); else select(rowAt(px, py), false);
  });
  canvas.addEventListener("pointercancel", () => { drag = null; canvas.classList.remove("dragging"); });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    hideTip();
    const by = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY || event.deltaX;
    if (event.shiftKey) pan(by / 600); else zoom(Math.exp(by / 400), valueAt(point(event)[1]));
  }, { passive: false });
  const keys = {
    ArrowDown: () => step(1), ArrowUp: () => step(-1), PageDown: () => pan(0.9), PageUp: () => pan(-0.9),
    Home: () => setWindow(low(), low() + to - from), End: () => setWindow(high() - to + from, high()),
    "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), 0: fit, p: nextProblem,
    Enter: () => $("details").focus(), Escape: () => select(-1),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    hideTip();
    keys[event.key]();
  });

  function resize() {
    const box = canvas.getBoundingClientRect();
    const first = height === 0, rowSize = (height - TOP) / (to - from);
    width = box.width;
    height = box.height;
    ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    if (first) readable();
    else if (!realTime) setWindow(from, from + (height - TOP) / rowSize);
    draw();
  }
  dark.addEventListener("change", () => { theme = null; request(); });

  const state = {
    setView, setHeading(a, b) { heading = [a, b]; request(); }, setScale, showTime, timeWindow, zoom, fit, nextProblem, select, resize, draw,
    setWindow, limits: () => [low(), high()], shown: () => [Math.max(0, Math.floor(from)), Math.min(view.length, Math.ceil(to)), visibleCount(), view.length],
    selected: () => selected, isRealTime: () => realTime, listeners, lastDraw: 0, drawn: 0,
  };
  return state;
})();
