// data.js: what html_writer.cpp wrote, as typed arrays, and what follows from it: pairs, problems of a row, names.
const $ = (id) => document.getElementById(id);
const take = (id) => {
  const element = $(id);
  const value = JSON.parse(element.textContent);
  element.remove();
  return value;
};

const capture = take("capture");
const summary = take("summary");
const REQUEST = 16, REPLY = 17, PROBLEM = 18;  // kinds of row behind the 16 opcodes
const kindNames = [...capture.operations, "MPA Request", "MPA Reply", "Problem"];
const OP = Object.fromEntries(capture.operations.map((name, i) => [name, i]));
const CRC = ["ok", "bad", "off", "not known, cut"];
const CRC_BAD = 1, CUT = 2, UNFINISHED = 4;

const blocks = [...document.getElementsByClassName("block")];
const sizes = blocks.map((block) => block.dataset.rows.split(" ").map(Number));
const total = (i) => sizes.reduce((sum, s) => sum + s[i], 0);
const messageCount = total(0), fpduCount = total(1), problemCount = total(2);

const most = messageCount + problemCount;  // a problem that belongs to no message is a row of its own
const rows = {
  count: messageCount,
  kind: new Uint8Array(most), side: new Uint8Array(most), flags: new Uint8Array(most), crc: new Uint8Array(most),
  stream: new Float64Array(most), time: new Float64Array(most), first: new Float64Array(most),
  frame: new Float64Array(most), firstFrame: new Float64Array(most), number: new Float64Array(most),
  length: new Float64Array(most), segments: new Float64Array(most), offset: new Float64Array(most),
  tag: new Uint32Array(most), to: new Array(messageCount), msn: new Float64Array(most), request: new Float64Array(most),
  read: new Int32Array(most).fill(-1),
  pair: new Int32Array(most).fill(-1),  // the row of the answer to a request, and of the request to an answer
  bad: new Uint8Array(most),            // a problem belongs to it
};
const reads = [];           // of Read Requests: size, source STag and offset, sink STag and offset
const texts = new Map();    // row: words
const fpdus = {
  kind: new Uint8Array(fpduCount), stream: new Float64Array(fpduCount), number: new Float64Array(fpduCount),
  time: new Float64Array(fpduCount), frame: new Float64Array(fpduCount), offset: new Float64Array(fpduCount),
  length: new Float64Array(fpduCount), position: new Array(fpduCount),
};
const problems = [];
const problemsOf = new Map();  // row: problems, notes too

function decode() {
  // A sum of differences; a text stands for itself, and the next difference is to 0.
  const wide = (before, value) => (typeof value === "string" ? value : (typeof before === "string" ? 0 : before) + value);
  let at = 0, fpduAt = 0;
  let stream = 0, time = 0, frame = 0, number = 0;
  let fpduStream = 0, fpduNumber = 0, fpduTime = 0, fpduFrame = 0;
  let problemStream = 0, problemTime = 0, problemFrame = 0;
  const offset = [0, 0], fpduOffset = [0, 0], position = [0, 0];
  const tag = new Array(32).fill(0), to = new Array(32).fill(0), msn = new Array(32).fill(0);
  const reader = [[0, 0, 0, 0], [0, 0, 0, 0]];
  for (const element of blocks) {
    const block = JSON.parse(element.textContent);
    element.remove();
    const m = block.messages;
    let read = 0;
    const texted = new Set(m.textAt);  // a Read Request too short for its fields
    for (let i = 0; i < m.k.length; ++i, ++at) {
      const k = m.k[i], kind = k & 31, side = k >> 5 & 1;
      rows.kind[at] = kind;
      rows.side[at] = side;
      rows.flags[at] = k >> 6 & 7;
      rows.crc[at] = k >> 9;
      rows.stream[at] = stream += m.stream[i];
      rows.time[at] = time += m.time[i];
      rows.first[at] = time - m.duration[i];
      rows.frame[at] = frame += m.frame[i];
      rows.firstFrame[at] = frame - m.frames[i];
      rows.number[at] = number += m.number[i];
      rows.length[at] = m.length[i];
      rows.segments[at] = m.segments[i];
      rows.offset[at] = offset[side] += m.offset[i];
      if (kind < 16) {
        const key = kind * 2 + side;
        rows.tag[at] = tag[key] += m.tag[i];
        rows.to[at] = to[key] = wide(to[key], m.to[i]);
        rows.msn[at] = msn[key] += m.msn[i];
        rows.request[at] = m.request[i] === 0 ? 0 : number - m.request[i];
      } else {
        rows.to[at] = 0;
      }
      if (kind === OP.ReadReq && read < m.reads.length && !texted.has(i)) {
        const before = reader[side];
        before[0] += m.reads[read + 1];
        before[1] = wide(before[1], m.reads[read + 2]);
        before[2] += m.reads[read + 3];
        before[3] = wide(before[3], m.reads[read + 4]);
        rows.read[at] = reads.length;
        reads.push(m.reads[read], before[0], before[1], before[2], before[3]);
        read += 5;
      }
    }
    const begin = at - m.k.length;
    m.textAt.forEach((row, i) => texts.set(begin + row, m.text[i]));
    const f = block.fpdus;
    for (let i = 0; i < f.k.length; ++i, ++fpduAt) {
      const side = f.k[i] & 1;
      fpdus.kind[fpduAt] = f.k[i];
      fpdus.stream[fpduAt] = fpduStream += f.stream[i];
      fpdus.number[fpduAt] = fpduNumber += f.number[i];
      fpdus.time[fpduAt] = fpduTime += f.time[i];
      fpdus.frame[fpduAt] = fpduFrame += f.frame[i];
      fpdus.offset[fpduAt] = fpduOffset[side] += f.offset[i];
      fpdus.length[fpduAt] = f.length[i];
      fpdus.position[fpduAt] = position[side] = wide(position[side], f.position[i]);
    }
    const p = block.problems;
    for (let i = 0; i < p.k.length; ++i) {
      problems.push({
        side: p.k[i] & 1, note: (p.k[i] & 2) !== 0, stream: problemStream += p.stream[i], time: problemTime += p.time[i],
        frame: problemFrame += p.frame[i], offset: p.offset[i], rule: p.rule[i], text: p.text[i], row: -1,
      });
    }
  }
}

function pairAnswers() {
  const requests = new Map();  // by stream: number to row
  for (let i = 0; i < rows.count; ++i) {
    if (rows.kind[i] !== OP.ReadReq && rows.kind[i] !== OP.AtomicReq) continue;
    let numbers = requests.get(rows.stream[i]);
    if (!numbers) requests.set(rows.stream[i], numbers = new Map());
    numbers.set(rows.number[i], i);
  }
  for (let i = 0; i < rows.count; ++i) {
    if (rows.request[i] === 0) continue;
    const request = requests.get(rows.stream[i])?.get(rows.request[i]);
    if (request === undefined) continue;
    rows.pair[i] = request;
    rows.pair[request] = i;
  }
}

// A problem says where in the stream it is; the row of its message is the last that begins there or before, among those
// whose frames span the problem's.
function placeProblems() {
  const key = (stream, side) => stream * 2 + side;
  const lists = new Map();
  for (const p of problems) lists.set(key(p.stream, p.side), []);
  if (lists.size === 0) return;
  for (let i = 0; i < rows.count; ++i) lists.get(key(rows.stream[i], rows.side[i]))?.push(i);
  for (const list of lists.values()) list.sort((a, b) => rows.offset[a] - rows.offset[b] || rows.number[a] - rows.number[b]);
  for (const p of problems) {
    const list = lists.get(key(p.stream, p.side));
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows.offset[list[middle]] <= p.offset) low = middle + 1; else high = middle;
    }
    for (let i = low - 1; i >= 0 && i > low - 9 && p.row < 0; --i) {
      const row = list[i];
      if (rows.offset[row] === p.offset || (rows.firstFrame[row] <= p.frame && p.frame <= rows.frame[row])) p.row = row;
    }
    if (p.row < 0) {
      if (p.note) continue;
      p.row = rows.count++;
      rows.kind[p.row] = PROBLEM;
      rows.side[p.row] = p.side;
      rows.stream[p.row] = p.stream;
      rows.time[p.row] = rows.first[p.row] = p.time;
      rows.frame[p.row] = rows.firstFrame[p.row] = p.frame;
      rows.offset[p.row] = p.offset;
    }
    if (!p.note) rows.bad[p.row] = 1;
    if (!problemsOf.has(p.row)) problemsOf.set(p.row, []);
    problemsOf.get(p.row).push(p);
  }
}

decode();
pairAnswers();
placeProblems();

// All rows in the order of time; they are nearly so already.
const ordered = new Uint32Array(rows.count);
for (let i = 0; i < ordered.length; ++i) ordered[i] = i;
if (ordered.some((row, i) => i > 0 && rows.time[row] < rows.time[row - 1])) ordered.sort((a, b) => rows.time[a] - rows.time[b] || a - b);
let beginning = 0, ending = 0;
for (let i = 0; i < rows.count; ++i) {
  beginning = Math.min(beginning, rows.first[i]);
  ending = Math.max(ending, rows.time[i]);
}

// Words and numbers ------------------------------------------------------------------------------------------------
const streamsByNumber = new Map(summary.streams.map((s) => [s.number, s]));
const endpointOf = (stream, side) => {
  const s = streamsByNumber.get(stream);
  return s ? (side === 0 ? s.client : s.server) : "?";
};
const grouped = new Intl.NumberFormat("en-US");
const count = (n) => grouped.format(n);
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const hex = (n, digits = 0) => (typeof n === "string" ? n : "0x" + n.toString(16).padStart(digits, "0"));
const stag = (n) => hex(n, 8);
function octets(n) {
  if (n < 10000) return count(n);
  for (const unit of ["KiB", "MiB", "GiB", "TiB", "PiB"]) {
    n /= 1024;
    if (n < 1024) return `${n < 10 ? n.toFixed(2) : n < 100 ? n.toFixed(1) : n.toFixed(0)} ${unit}`;
  }
  return `${count(Math.round(n))} PiB`;
}
// Nanoseconds as seconds, to a microsecond; `digits` for axes.
const seconds = (ns, digits = 6) => (ns / 1e9).toFixed(digits);
function span(ns) {
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(1)} \u00b5s`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(2)} ms`;
  return `${(ns / 1e9).toFixed(3)} s`;
}

const invalidates = (kind) => kind === OP.SendInv || kind === OP.SendSEInv;
const tagged = (kind) => kind === OP.Write || kind === OP.ReadResp;

function readWords(row) {
  const i = rows.read[row];
  return `${count(reads[i])} octets of ${stag(reads[i + 1])}:${hex(reads[i + 2])} to ${stag(reads[i + 3])}:${hex(reads[i + 4])}`;
}

// The words on an arrow.
function label(row) {
  const kind = rows.kind[row];
  let words;
  if (kind === PROBLEM) {
    const p = problemsOf.get(row)[0];
    return `${p.rule}: ${p.text}`;
  }
  if (kind >= REQUEST) {
    words = `${kindNames[kind]}: ${texts.get(row) ?? ""}`;
  } else {
    words = `${kindNames[kind]} ${count(rows.length[row])}  #${rows.number[row]}`;
    words += tagged(kind) ? ` ${stag(rows.tag[row])}:${hex(rows.to[row])}` : ` msn ${rows.msn[row]}`;
    if (invalidates(kind)) words += `, invalidates ${stag(rows.tag[row])}`;
    if (rows.read[row] >= 0) words += `, ${readWords(row)}`;
    if (rows.request[row] !== 0) words += `, answers #${rows.request[row]}`;
    if (texts.has(row)) words += `, ${texts.get(row)}`;
    if (rows.segments[row] > 1) words += `  (${count(rows.segments[row])} segments)`;
  }
  const flags = rows.flags[row];
  if (flags & CRC_BAD) words += "  CRC BAD";
  if (flags & CUT) words += "  not captured whole";
  if (flags & UNFINISHED) words += "  UNFINISHED";
  return words;
}
