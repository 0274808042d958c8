// The plan's timeline as typed arrays, with quick answers to "what is alive at this node" and "what lies at this address".

const kCheckpointNodes = 64; // between two lists of everything alive

function decodeNames(words, columns) {
  const names = new Array(columns.rest.length);
  let last = '';
  for (let i = 0; i < names.length; ++i) {
    last = last.slice(0, columns.prefix[i]) + words[columns.rest[i]];
    names[i] = last;
  }
  return names;
}

// Columns of values or states written out: bytes and offsets instead of indices, and where a life begins and ends.
function writtenOut(json, columns) {
  const written = {...columns, bytes: columns.size.map((i) => json.sizes[i]), offset: columns.place.map((i) => json.places[i])};
  if (columns.later) {
    let node = 0;
    written.begin = columns.later.map((later) => (node += later));
    written.end = columns.lives.map((lives, i) => written.begin[i] + lives);
  }
  return written;
}

// The first index in `sorted` whose entry is not below `wanted`.
function lowerBound(sorted, wanted) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Values, in order of where they begin. Byte counts may pass 2^32: they are doubles, exact up to 2^53.
class Values {
  constructor(columns, names) {
    this.count = names.length;
    this.names = names;
    this.classes = Uint8Array.from(columns.class);
    this.bytes = Float64Array.from(columns.bytes);
    this.offsets = Float64Array.from(columns.offset);
    this.begins = Int32Array.from(columns.begin);
    this.ends = Int32Array.from(columns.end);
  }
}

// Sections shown one after the other: a step is micro and update, evaluation stands alone.
class Span {
  constructor(timeline, sections) {
    this.classes = timeline.classes;
    this.phases = timeline.phases;
    this.ops = timeline.ops;
    this.layers = timeline.layerNames;
    this.states = timeline.stateColumns;
    this.sections = [];
    const nodes = {op: [], layer: [], phase: []};
    const columns = {class: [], bytes: [], offset: [], begin: [], end: []};
    const names = [];
    for (const section of sections) {
      const first = nodes.op.length;
      this.sections.push({name: section.section, runs: section.runs, first, placedBy: section.placed_by});
      for (const key of Object.keys(nodes)) for (const entry of section.nodes[key]) nodes[key].push(entry);
      for (const name of decodeNames(timeline.words, section.values)) names.push(name);
      for (const key of ['class', 'bytes', 'offset']) for (const entry of section.values[key]) columns[key].push(entry);
      for (const key of ['begin', 'end']) for (const entry of section.values[key]) columns[key].push(entry + first);
    }
    this.nodeCount = nodes.op.length;
    this.nodeOps = Uint16Array.from(nodes.op);
    this.nodeLayers = Int32Array.from(nodes.layer);
    this.nodePhases = Uint8Array.from(nodes.phase);
    this.values = new Values(columns, names);
    this.addUp();
    this.listAlive();
  }

  // Bytes alive while each node runs, by class and in all, states included.
  addUp() {
    const count = this.nodeCount;
    this.byClass = this.classes.map(() => new Float64Array(count + 1));
    const {values} = this;
    for (let i = 0; i < values.count; ++i) {
      const column = this.byClass[values.classes[i]];
      column[values.begins[i]] += values.bytes[i];
      column[values.ends[i]] -= values.bytes[i];
    }
    this.totals = new Float64Array(count);
    this.peak = 0;
    this.byClass.forEach((column, c) => {
      let now = this.states.byClass[c];
      for (let i = 0; i < count; ++i) {
        now += column[i];
        column[i] = now;
        this.totals[i] += now;
      }
    });
    for (let i = 1; i < count; ++i) if (this.totals[i] > this.totals[this.peak]) this.peak = i;
  }

  // Everything alive at every kCheckpointNodes-th node; between two of them only few values begin.
  listAlive() {
    const {values} = this;
    this.aliveAt = [];
    let open = [];
    let next = 0;
    for (let node = 0; node < this.nodeCount; node += kCheckpointNodes) {
      while (next < values.count && values.begins[next] <= node) open.push(next++);
      open = open.filter((i) => values.ends[i] > node);
      this.aliveAt.push(Int32Array.from(open));
    }
  }

  // Indices of the values alive while `node` runs.
  alive(node) {
    const {begins, ends, count} = this.values;
    const block = Math.floor(node / kCheckpointNodes);
    const found = [];
    for (const i of this.aliveAt[block]) if (ends[i] > node) found.push(i);
    for (let i = lowerBound(begins, block * kCheckpointNodes + 1); i < count && begins[i] <= node; ++i) {
      if (ends[i] > node) found.push(i);
    }
    return found;
  }

  // The value (or the state, as -1 - its index) that holds this address while `node` runs; null where it is free.
  at(node, address) {
    const {offsets, bytes} = this.states;
    const state = lowerBound(offsets, address + 0.5) - 1; // states lie in order of their addresses
    if (state >= 0 && address < offsets[state] + bytes[state]) return -1 - state;
    for (const i of this.alive(node)) {
      if (address >= this.values.offsets[i] && address < this.values.offsets[i] + this.values.bytes[i]) return i;
    }
    return null;
  }

  sectionOf(node) {
    return this.sections.findLast((section) => section.first <= node);
  }

  describeNode(node) {
    const layer = this.layers[this.nodeLayers[node]] || 'the step';
    return `${this.phases[this.nodePhases[node]]} of ${layer} (${this.ops[this.nodeOps[node]]})`;
  }

  // What is known of a value or, below zero, of a state.
  valueOf(index) {
    const from = index < 0 ? this.states : this.values;
    const i = index < 0 ? -1 - index : index;
    return {
      index,
      name: from.names[i],
      className: this.classes[from.classes[i]],
      bytes: from.bytes[i],
      offset: from.offsets[i],
      begin: index < 0 ? 0 : from.begins[i],
      end: index < 0 ? this.nodeCount : from.ends[i],
      layer: this.layers[index < 0 ? from.layers[i] : this.nodeLayers[from.begins[i]]],
    };
  }

  // The `most` largest of what is alive, states too, and how many and how much is left.
  largest(node, most) {
    const alive = this.alive(node).sort((a, b) => this.values.bytes[b] - this.values.bytes[a]);
    const all = alive.slice(0, most).concat(this.states.bySize.slice(0, most).map((i) => -1 - i));
    const found = all.map((index) => this.valueOf(index)).sort((a, b) => b.bytes - a.bytes).slice(0, most);
    const bytes = found.reduce((sum, value) => sum + value.bytes, 0);
    return {found, rest: alive.length + this.states.names.length - found.length, restBytes: this.totals[node] - bytes};
  }
}

function readTimeline(json) {
  const timeline = {...json, layerNames: decodeNames(json.words, json.layers)};
  timeline.sections = json.sections.map((section) => ({...section, values: writtenOut(json, section.values)}));
  const columns = writtenOut(json, json.states);
  const states = {
    names: decodeNames(json.words, columns),
    layers: Int32Array.from(columns.layer),
    classes: Uint8Array.from(columns.class),
    bytes: Float64Array.from(columns.bytes),
    offsets: Float64Array.from(columns.offset),
  };
  states.total = states.bytes.reduce((sum, bytes) => sum + bytes, 0);
  states.byClass = json.classes.map(() => 0);
  states.bytes.forEach((bytes, i) => { states.byClass[states.classes[i]] += bytes; });
  states.bySize = Array.from(states.bytes.keys()).sort((a, b) => states.bytes[b] - states.bytes[a]);
  states.end = json.persistent_bytes; // where the addresses of everything else begin
  timeline.stateColumns = states;
  return timeline;
}

// What can be shown: the step, and whatever else was planned.
function spansOf(timeline) {
  const inStep = timeline.sections.filter((section) => section.runs > 0 && section.nodes.op.length > 0);
  const others = timeline.sections.filter((section) => section.runs === 0 && section.nodes.op.length > 0);
  const title = {eval: 'evaluation', init: 'the beginning of a run', derive: 'copies of weights'};
  const spans = inStep.length > 0 ? [{title: 'a training step', sections: inStep}] : [];
  for (const section of others) spans.push({title: title[section.section] || section.section, sections: [section]});
  return spans;
}
