// The arena as a map: addresses upwards, nodes to the right, one tile a value. What no tile covers is free.

class ArenaChart {
  constructor(view, report) {
    this.view = view;
    this.report = report;
    this.surface = new Surface(byId('arena-chart'), 'The arena, a map of addresses over nodes. Arrow keys left and right go from node to ' +
                               'node, up and down from value to value.',
                               (context, surface) => this.draw(context, surface), (context, surface) => this.drawOver(context, surface));
    view.attach(this.surface, {
      onPoint: (point) => this.point(point),
      onPick: (point) => view.choose(this.under(point)),
      onKey: (key) => this.key(key),
    });
    this.hovered = null; // the value under the pointer
    this.surface.host.addEventListener('pointerleave', () => this.hover(null));
    view.onChange((what) => {
      if (what === 'span') this.hovered = null;
      this.describe(what);
    });
  }

  get lowest() {
    const {view, report} = this;
    const {end} = view.span.states;
    return view.onlyTransient && end < report.planned_peak_bytes ? end : 0;
  }

  get perByte() {
    return (this.surface.bottom - this.surface.top) / (this.report.planned_peak_bytes - this.lowest);
  }

  toY(address) {
    return this.surface.bottom - (address - this.lowest) * this.perByte;
  }

  addressAt(y) {
    return this.lowest + (this.surface.bottom - y) / this.perByte;
  }

  // The value under a point: at the node that the cursor went to, then at the one exactly there.
  under(point) {
    const address = this.addressAt(point.y);
    if (address < this.lowest || address >= this.report.planned_peak_bytes) return null;
    const {span, cursor} = this.view;
    return span.at(cursor, address) ?? span.at(this.view.nodeAt(this.surface, point.x), address);
  }

  point(point) { this.hover(this.under(point)); }

  hover(index) {
    if (index === this.hovered) return;
    this.hovered = index;
    this.describe('hovered');
    this.surface.redrawOver();
  }

  // Up and down go through what is alive, by address.
  key(key) {
    const {view} = this;
    if (key === 'Escape') return view.choose(null), true;
    if (key !== 'ArrowUp' && key !== 'ArrowDown') return false;
    const {span} = view;
    const alive = span.states.names.map((_, i) => -1 - i).concat(span.alive(view.cursor)).map((index) => span.valueOf(index));
    alive.sort((a, b) => a.offset - b.offset);
    const chosen = view.chosen === null ? null : span.valueOf(view.chosen);
    const above = alive.find((value) => chosen === null || value.offset > chosen.offset);
    const below = alive.findLast((value) => chosen === null || value.offset < chosen.offset);
    const next = key === 'ArrowUp' ? above : below;
    if (next) view.choose(next.index);
    return true;
  }

  describe(what) {
    const {view} = this;
    const line = byId('selected');
    const index = view.chosen ?? this.hovered;
    if (index === null) {
      line.textContent = 'Point at a tile to see what it is; a click keeps it, and shows the others faintly.';
      delete line.dataset.name;
      return;
    }
    const value = view.span.valueOf(index);
    const life = index < 0 ? 'stays from step to step'
      : `alive in ${formatLife(value)}, made by ${view.span.describeNode(value.begin)}`;
    const text = `${value.name}: ${formatBytes(value.bytes)} of ${value.className} at address ${formatCount(value.offset)}, ${life}`;
    line.replaceChildren(swatch(value.className), ' ' + text);
    line.dataset.name = value.name;
    if (what === 'chosen') announce(text);
  }

  tile(surface, index) {
    const {view} = this;
    const value = view.span.valueOf(index);
    const left = Math.max(surface.left, view.toX(surface, value.begin));
    const right = Math.min(surface.right, view.toX(surface, value.end));
    const top = this.toY(value.offset + value.bytes);
    return {
      left, top, width: Math.max(1, right - left), height: Math.max(1, this.toY(value.offset) - top),
      shown: right > surface.left && left < surface.right, value,
    };
  }

  draw(context, surface) {
    const {view, report} = this;
    const ticks = ticksBetween(this.lowest, report.planned_peak_bytes, (surface.bottom - surface.top) / 55);
    context.fillStyle = colorOf('free');
    context.fillRect(surface.left, surface.top, surface.right - surface.left, surface.bottom - surface.top);
    drawYAxis(context, surface, ticks, (tick) => this.toY(tick), (tick) => formatByteTick(tick, report.planned_peak_bytes));
    clipped(context, surface, () => {
      if (this.lowest === 0) this.drawStates(context, surface);
      this.drawValues(context, surface);
      this.drawNames(context, surface);
    });
    view.drawNodeAxis(context, surface);
  }

  // Neighbors of one class are drawn as one: there may be thousands within a pixel.
  drawStates(context, surface) {
    const {states, classes} = this.view.span;
    const count = states.names.length;
    for (let i = 0; i < count;) {
      let next = i + 1;
      while (next < count && states.classes[next] === states.classes[i]) ++next;
      const end = states.offsets[next - 1] + states.bytes[next - 1];
      context.fillStyle = colorOf(classes[states.classes[i]]);
      context.fillRect(surface.left, this.toY(end), surface.right - surface.left, this.toY(states.offsets[i]) - this.toY(end));
      i = next;
    }
    // Between two of them a line, where there is room for it.
    context.fillStyle = colorOf('card');
    context.globalAlpha = 0.5;
    let last = Infinity;
    for (let i = 0; i < count; ++i) {
      const y = this.toY(states.offsets[i]);
      if (last - y >= 4) context.fillRect(surface.left, y - 0.25, surface.right - surface.left, 0.5);
      last = y;
    }
    context.globalAlpha = 1;
  }

  drawValues(context, surface) {
    const {view} = this;
    const {values, classes} = view.span;
    const perNode = (surface.right - surface.left) / (view.end - view.begin);
    const {perByte, lowest} = this;
    const colors = classes.map((name) => colorOf(name));
    for (let pass = 0; pass < 2 * classes.length; ++pass) {
      const c = pass >> 1;
      // Every other value in a lighter tone: neighbors are told apart even where no line fits between them.
      const tone = pass & 1;
      context.fillStyle = colors[c];
      context.globalAlpha = tone === 0 ? 1 : 0.78;
      for (let i = 0; i < values.count && values.begins[i] < view.end; ++i) {
        if (values.classes[i] !== c || (i & 1) !== tone || values.ends[i] <= view.begin) continue;
        const left = surface.left + (Math.max(values.begins[i], view.begin) - view.begin) * perNode;
        const width = (Math.min(values.ends[i], view.end) - view.begin) * perNode + surface.left - left;
        const height = values.bytes[i] * perByte;
        const top = surface.bottom - (values.offsets[i] - lowest) * perByte - height;
        // A hair of the background between tiles, where they are large enough to lose it.
        context.fillRect(left, top, Math.max(1, width > 3 ? width - 0.75 : width), Math.max(0.75, height > 3 ? height - 0.75 : height));
      }
    }
    context.globalAlpha = 1;
  }

  // On tiles that have room for it.
  drawNames(context, surface) {
    const {view} = this;
    const {values} = view.span;
    const perNode = (surface.right - surface.left) / (view.end - view.begin);
    const {perByte} = this;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillStyle = '#0b1620'; // dark on every tile: white is hard to read on the lighter tones
    context.save();
    context.font = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    for (let i = 0; i < values.count && values.begins[i] < view.end; ++i) {
      if (values.bytes[i] * perByte < 13) continue;
      const left = surface.left + (Math.max(values.begins[i], view.begin) - view.begin) * perNode;
      const width = surface.left + (Math.min(values.ends[i], view.end) - view.begin) * perNode - left;
      if (width < 40 || context.measureText(values.names[i]).width > width - 6) continue;
      context.fillText(values.names[i], left + 4, this.toY(values.offsets[i] + values.bytes[i] / 2));
    }
    context.restore();
  }

  drawOver(context, surface) {
    const {view} = this;
    view.drawDrag(context, surface);
    if (view.chosen === null && this.hovered !== null) clipped(context, surface, () => this.outline(context, this.tile(surface, this.hovered)));
    const marked = view.chosen !== null ? [view.chosen] : view.matches ? view.matches : [];
    if (marked.length > 0) {
      context.fillStyle = colorOf('card');
      context.globalAlpha = 0.72;
      context.fillRect(surface.left, surface.top, surface.right - surface.left, surface.bottom - surface.top);
      context.globalAlpha = 1;
      clipped(context, surface, () => marked.forEach((index) => this.drawMarked(context, surface, index)));
    }
    const x = view.toX(surface, view.cursor + 0.5);
    if (x >= surface.left && x <= surface.right) drawCursor(context, surface, x);
  }

  drawMarked(context, surface, index) {
    const tile = this.tile(surface, index);
    if (!tile.shown) return;
    context.fillStyle = colorOf(tile.value.className);
    context.fillRect(tile.left, tile.top, Math.max(3, tile.width), Math.max(2, tile.height)); // short lives are seen, too
    if (index === this.view.chosen) this.outline(context, tile);
  }

  outline(context, tile) {
    context.strokeStyle = colorOf('cursor');
    context.lineWidth = 2;
    context.strokeRect(tile.left + 1, tile.top + 1, Math.max(1, tile.width - 2), Math.max(1, tile.height - 2));
  }
}
