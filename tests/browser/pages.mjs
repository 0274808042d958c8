// Pages to look at: made by the command, or from a page's own data changed.
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const kRoot = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const kProgram = process.env.SNUG || join(kRoot, 'build', 'release', 'snug');

export function snug(...words) {
  // What was measured on this machine before must not matter.
  const env = {...process.env, XDG_CACHE_HOME: '/dev/null'};
  return execFileSync(kProgram, words, {encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'], env});
}

// A folder that goes with the process.
export function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'snug-pages-'));
  process.on('exit', () => rmSync(folder, {recursive: true, force: true}));
  return folder;
}

const kData = /(<script type="application\/json" id="data">)(.*?)(<\/script>)/s;

export function dataOf(page) {
  return JSON.parse(readFileSync(page, 'utf8').match(kData)[2]);
}

// A timeline's columns with bytes, offsets, and where a life begins and ends, beside what the page has; see src/report/timeline.h.
export function writtenOut(timeline) {
  const bytesOf = (columns) => ({
    ...columns, bytes: columns.size.map((i) => timeline.sizes[i]), offset: columns.place.map((i) => timeline.places[i]),
  });
  const sections = timeline.sections.map((section) => {
    const values = bytesOf(section.values);
    let at = 0;
    values.begin = values.later.map((later) => (at += later));
    values.end = values.lives.map((lives, i) => values.begin[i] + lives);
    return {...section, values};
  });
  return {...timeline, states: bytesOf(timeline.states), sections};
}

// The page `from` around other data, which is written as the command writes it.
export function withData(from, to, data) {
  const text = JSON.stringify(data).replaceAll('<', '\\u003c');
  writeFileSync(to, readFileSync(from, 'utf8').replace(kData, (_, begin, __, end) => begin + text + end));
  return to;
}

// Names written out; see src/report/timeline.h.
export function namesOf(timeline, columns) {
  let last = '';
  return columns.rest.map((rest, i) => (last = last.slice(0, columns.prefix[i]) + timeline.words[rest]));
}

// What is alive while a node of a section runs, largest first: [{name, bytes, offset, className}].
export function aliveAt(timeline, sectionName, node) {
  const section = timeline.sections.find((each) => each.section === sectionName);
  const entries = (columns, isAlive) => namesOf(timeline, columns).map((name, i) => ({
    name, bytes: columns.bytes[i], offset: columns.offset[i], className: timeline.classes[columns.class[i]], alive: isAlive(i),
  })).filter((entry) => entry.alive);
  const values = entries(section.values, (i) => section.values.begin[i] <= node && node < section.values.end[i]);
  return [...values, ...entries(timeline.states, () => true)].sort((a, b) => b.bytes - a.bytes);
}
