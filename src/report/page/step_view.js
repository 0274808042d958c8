// What the memory chart and the arena share: which nodes are shown, which is under the cursor, which value is chosen. Both lie
// above each other with the same scale, so a node is at the same place in both.

const kFewestNodes = 8; // that can be zoomed to

class StepView {
  constructor() {
    this.listeners = [];
    this.onlyTransient = false; // leave out what stays from step to step
  }

  // `what` is 'span', 'range', 'cursor' or 'chosen': the first that changed; those after it may have, too.
  onChange(listener) { this.listeners.push(listener); }
  changed(what) {
    for (const listener of this.listeners) listener(what);
  }

  setSpan(span) {
    this.span = span;
    this.begin = 0;
    this.end = span.nodeCount;
    this.cursor = span.peak;
    this.chosen = null;
    this.matches = null; // of a search: a set of values
    this.changed('span');
  }

  setOnlyTransient(only) {
    this.onlyTransient = only;
    this.changed('range');
  }

  setCursor(node) {
    const to = Math.min(Math.max(Math.round(node), 0), this.span.nodeCount - 1);
    if (to === this.cursor) return;
    this.cursor = to;
    if (to < this.begin || to >= this.end) {
      const length = this.end - this.begin;
      this.setRange(to - length / 2, to + length / 2);
    } else {
      this.changed('cursor');
    }
  }

  setRange(begin, end) {
    const length = Math.min(this.span.nodeCount, Math.max(kFewestNodes, Math.round(end - begin)));
    this.begin = Math.min(Math.max(0, Math.round(begin)), this.span.nodeCount - length);
    this.end = this.begin + length;
    this.changed('range');
  }

  // Around the cursor, which keeps its place.
  zoom(factor) {
    const share = (this.cursor - this.begin) / (this.end - this.begin);
    const inside = share >= 0 && share <= 1 ? share : 0.5;
    const length = Math.min(this.span.nodeCount, Math.max(kFewestNodes, (this.end - this.begin) * factor));
    const middle = inside === share ? this.cursor : (this.begin + this.end) / 2;
    this.setRange(middle - inside * length, middle + (1 - inside) * length);
  }

  choose(index) {
    if (index === this.chosen) return;
    this.chosen = index;
    this.changed('chosen');
  }

  // Brings a value's life into view.
  showLife(value) {
    if (value.begin < this.begin || value.end > this.end) {
      const margin = Math.max(4, (value.end - value.begin) * 0.25);
      this.setRange(value.begin - margin, value.end + margin);
    }
    if (this.cursor < value.begin || this.cursor >= value.end) this.setCursor(value.begin);
  }

  // --- the horizontal scale

  toX(surface, node) {
    return surface.left + ((node - this.begin) / (this.end - this.begin)) * (surface.right - surface.left);
  }

  nodeAt(surface, x) {
    const share = (x - surface.left) / (surface.right - surface.left);
    return Math.floor(this.begin + Math.min(Math.max(share, 0), 1 - 1e-9) * (this.end - this.begin));
  }

  // The nodes that one pixel column shows, as [first, one past the last].
  nodesOfColumn(surface, column) {
    const first = this.nodeAt(surface, surface.left + column);
    const next = this.begin + ((column + 1) / (surface.right - surface.left)) * (this.end - this.begin);
    return [first, Math.min(Math.max(first + 1, Math.ceil(next - 1e-9)), this.end)];
  }

  // Where a pixel column shows several nodes, the fullest stands for them: a peak is never missed, however narrow.
  fullestOfColumn(surface, column) {
    const [first, end] = this.nodesOfColumn(surface, column);
    const {totals} = this.span;
    let fullest = first;
    for (let i = first + 1; i < end; ++i) if (totals[i] > totals[fullest]) fullest = i;
    return fullest;
  }

  // --- pointer and keys, the same on both charts

  attach(surface, {onPoint, onPick, onKey}) {
    const {host} = surface;
    let from = null; // where a drag began
    host.addEventListener('pointerdown', (event) => {
      host.focus({preventScroll: true});
      from = event.pointerType === 'mouse' && event.button === 0 ? surface.pointOf(event).x : null;
    });
    host.addEventListener('pointermove', (event) => {
      const point = surface.pointOf(event);
      this.drag = from !== null && Math.abs(point.x - from) > 5 ? {surface, from, to: point.x} : null;
      if (this.drag) return surface.redrawOver();
      this.setCursor(this.fullestOfColumn(surface, Math.min(Math.max(0, Math.floor(point.x - surface.left)),
                                                            Math.ceil(surface.right - surface.left) - 1)));
      if (onPoint) onPoint(point);
    });
    const end = (event) => {
      if (this.drag) {
        const nodes = [this.drag.from, this.drag.to].map((x) => this.nodeAt(surface, x)).sort((a, b) => a - b);
        this.setRange(nodes[0], nodes[1] + 1);
      } else if (event.type === 'pointerup' && onPick) {
        onPick(surface.pointOf(event));
      }
      from = null;
      this.drag = null;
      surface.redrawOver();
    };
    host.addEventListener('pointerup', end);
    host.addEventListener('pointercancel', end);
    host.addEventListener('pointerleave', () => { from = null; });
    host.addEventListener('dblclick', () => this.setRange(0, this.span.nodeCount));
    host.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8);
    }, {passive: false});
    host.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if ((onKey && onKey(event.key)) || this.key(event.key, event.shiftKey)) event.preventDefault();
    });
    this.onChange((what) => (what === 'span' || what === 'range' ? surface.redraw() : surface.redrawOver()));
  }

  key(key, shift) {
    const far = Math.max(1, Math.round((this.end - this.begin) / 20));
    const moves = {
      ArrowLeft: shift ? -10 : -1, ArrowRight: shift ? 10 : 1, PageUp: -far, PageDown: far, Home: -Infinity, End: Infinity,
    };
    if (key in moves) this.setCursor(Math.min(Math.max(this.cursor + moves[key], 0), this.span.nodeCount - 1));
    else if (key === '+' || key === '=') this.zoom(0.5);
    else if (key === '-') this.zoom(2);
    else if (key === '0') this.setRange(0, this.span.nodeCount);
    else if (key === 'p' || key === 'P') this.setCursor(this.span.peak);
    else return false;
    return true;
  }

  drawDrag(context, surface) {
    if (!this.drag || this.drag.surface !== surface) return;
    context.fillStyle = colorOf('accent');
    context.globalAlpha = 0.2;
    context.fillRect(this.drag.from, surface.top, this.drag.to - this.drag.from, surface.bottom - surface.top);
    context.globalAlpha = 1;
  }

  // The nodes' numbers and, as a band of color, their phases.
  drawNodeAxis(context, surface) {
    const {span} = this;
    const y = surface.bottom + 4;
    const columns = Math.ceil(surface.right - surface.left);
    let runBegin = 0;
    let run = null;
    const finish = (to) => {
      if (run === null) return;
      context.fillStyle = colorOf(span.phases[run]);
      context.fillRect(surface.left + runBegin, y, Math.min(to, surface.right - surface.left) - runBegin, 8);
    };
    for (let column = 0; column < columns; ++column) {
      const [first, end] = this.nodesOfColumn(surface, column);
      const counts = new Int32Array(span.phases.length);
      for (let i = first; i < end; ++i) ++counts[span.nodePhases[i]];
      const most = counts.indexOf(Math.max(...counts));
      if (most !== run) {
        finish(column);
        run = most;
        runBegin = column;
      }
    }
    finish(columns);
    const count = Math.max(2, (surface.right - surface.left) / 110);
    const ticks = ticksBetween(this.begin, this.end - 1, count).filter((tick) => Number.isInteger(tick));
    drawXLabels(context, surface, ticks, (node) => this.toX(surface, node + 0.5), (node) => (node === ticks[0] ? 'node ' : '') + formatCount(node),
                y + 11);
  }
}
