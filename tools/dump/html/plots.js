// plots.js: throughput and outstanding Reads over time, of the connections chosen. What is drawn is worked out anew for each
// range of time, so that a plot is as fine as the capture however far it is zoomed in.
const plots = (() => {
  let stream = -1;  // all
  let from = beginning, to = Math.max(ending, beginning + 1000);
  const chosen = (row) => stream < 0 || rows.stream[row] === stream;
  const listeners = [];

  function throughput(points) {
    const width = (to - from) / points, sums = [new Float64Array(points), new Float64Array(points)];
    for (let row = 0; row < rows.count; ++row) {
      const first = rows.first[row], last = rows.time[row];
      if (rows.length[row] === 0 || rows.kind[row] >= REQUEST || last < from || first > to || !chosen(row)) continue;
      const into = sums[rows.side[row]];
      const a = Math.max(0, Math.floor((first - from) / width)), b = Math.min(points - 1, Math.floor((last - from) / width));
      if (last - first < width || a === b) {
        // Within one point, or almost: to where it ended.
        if (last <= to) into[b] += rows.length[row];
        continue;
      }
      const rate = rows.length[row] / (last - first);
      for (let i = a; i <= b; ++i) {
        into[i] += rate * (Math.min(last, from + (i + 1) * width) - Math.max(first, from + i * width));
      }
    }
    const x = Array.from({ length: points }, (_, i) => (from + (i + 0.5) * width) / 1e9);
    return [x, ...sums.map((sum) => Array.from(sum, (octets) => octets / width * 1e9))];
  }

  // The most that were outstanding within each point.
  function outstanding(points) {
    const width = (to - from) / points, now = [0, 0], most = [new Float64Array(points), new Float64Array(points)];
    let at = -1;
    const advance = (time) => {
      const goal = Math.min(points - 1, Math.floor((time - from) / width));
      while (at < goal) {
        ++at;
        most[0][at] = now[0];
        most[1][at] = now[1];
      }
    };
    for (const row of ordered) {
      const kind = rows.kind[row];
      const asks = kind === OP.ReadReq || kind === OP.AtomicReq, answers = rows.request[row] !== 0 && rows.pair[row] >= 0;
      if (!asks && !answers || !chosen(row)) continue;
      if (rows.time[row] > to) break;
      if (rows.time[row] >= from) advance(rows.time[row]);
      const side = asks ? rows.side[row] : 1 - rows.side[row];
      now[side] += asks ? 1 : -1;
      if (at >= 0) most[side][at] = Math.max(most[side][at], now[side]);
    }
    advance(to);
    const x = Array.from({ length: points }, (_, i) => (from + (i + 0.5) * width) / 1e9);
    return [x, ...most.map((values) => Array.from(values))];
  }

  const rate = (v) => (v == null ? "" : v === 0 ? "0" : `${octets(Math.round(v))}/s`);
  const tick = (u, values) => {
    const step = values.length > 1 ? values[1] - values[0] : 1;
    const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
    return values.map((v) => v.toFixed(digits));
  };
  const colours = () => (dark.matches ? ["#6fa8ff", "#ffb04d"] : ["#1f63c4", "#c46a00"]);

  function make(id, format, compute, names, step, whole) {
    const box = $(id);
    let plot = null, size = 0;
    const points = () => Math.max(60, Math.min(400, Math.floor((box.clientWidth - 70) / 2)));
    function build() {
      plot?.destroy();
      const axis = { stroke: () => styleOf("--dim"), grid: { stroke: () => styleOf("--line"), width: 1 }, ticks: { stroke: () => styleOf("--line"), width: 1 }, font: "10px system-ui, sans-serif" };
      const line = (name, i) => ({
        label: name, stroke: () => colours()[i], width: 1.25, fill: () => colours()[i] + "2a", points: { show: false },
        value: (u, v) => format(v), paths: step ? uPlot.paths.stepped({ align: 0 }) : undefined,
      });
      size = box.clientWidth;
      plot = new uPlot({
        width: size, height: 96, pxAlign: 0, cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 5 } },
        scales: { x: { time: false }, y: { range: (u, low, high) => [0, whole ? Math.max(1, high * 1.1) : high > 0 ? high * 1.08 : 1] } },
        axes: [
          { ...axis, size: 22, gap: 2, values: tick, space: 60 },
          { ...axis, size: 64, gap: 3, space: 26, values: (u, values) => values.map((v) => (whole && v % 1 ? "" : format(v))) },
        ],
        series: [{ label: "s", value: (u, v) => (v == null ? "" : v.toFixed(6)) }, line(names[0], 0), line(names[1], 1)],
        legend: { live: true },
        hooks: {
          drawClear: [(u) => {
            const [a, b] = ladder.timeWindow();
            const x1 = Math.max(u.bbox.left, u.valToPos(a / 1e9, "x", true)), x2 = Math.min(u.bbox.left + u.bbox.width, u.valToPos(b / 1e9, "x", true));
            if (x2 < u.bbox.left || x1 > u.bbox.left + u.bbox.width) return;
            u.ctx.fillStyle = styleOf("--row");
            u.ctx.fillRect(x1, u.bbox.top, Math.max(2, x2 - x1), u.bbox.height);
          }],
          setSelect: [(u) => {
            if (u.select.width < 3) return;
            const a = u.posToVal(u.select.left, "x") * 1e9, b = u.posToVal(u.select.left + u.select.width, "x") * 1e9;
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            setRange(a, b);
            for (const f of listeners) f(a, b);
          }],
        },
      }, compute(points()), box);
      plot.over.addEventListener("dblclick", () => {
        setRange(beginning, ending);
        for (const f of listeners) f(beginning, ending);
      });
      plot.setScale("x", { min: from / 1e9, max: to / 1e9 });
    }
    return {
      build,
      update() {
        plot.setData(compute(points()), false);
        plot.setScale("x", { min: from / 1e9, max: to / 1e9 });
      },
      fitWidth() { if (box.clientWidth !== size) build(); },
      redraw() { plot.redraw(false); },
    };
  }
  const all = [
    make("throughput", rate, throughput, ["client \u2192 server", "server \u2192 client"], false, false),
    make("outstanding", (v) => (v == null ? "" : String(v)), outstanding, ["client's", "server's"], true, true),
  ];
  function setRange(a, b) {
    from = Math.max(beginning, a);
    to = Math.max(from + 1000, Math.min(b, Math.max(ending, beginning + 1000)));
    for (const plot of all) plot.update();
  }
  let due = false;
  function redraw() {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; for (const plot of all) plot.redraw(); });
  }
  dark.addEventListener("change", () => { for (const plot of all) plot.build(); });
  return {
    build() { for (const plot of all) plot.build(); },
    setStream(number) { stream = number; setRange(beginning, ending); },
    fitWidth() { for (const plot of all) plot.fitWidth(); },
    redraw, listeners,
  };
})();
