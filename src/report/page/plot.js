// Points and lines over a numeric axis: the training curves and the frontier.

class Plot {
  // lines: [{name, color, xs, ys, dots, joined, background}]; xs ascending. Keys pass over the points of a background.
  // onPoint(line, index) is told what is nearest to the cursor.
  constructor(host, label, {lines, formatX, formatY, xTicks, yFromZero, logarithmic, rules, onPoint, xLabel, yLabel}) {
    Object.assign(this, {lines, formatX, formatY, xTicks, rules: rules || [], onPoint, logarithmic, xLabel, yLabel});
    this.points = [];
    lines.forEach((line, l) => line.xs.forEach((x, i) => { if (Number.isFinite(line.ys[i])) this.points.push({l, i, x, y: line.ys[i]}); }));
    this.points.sort((a, b) => a.x - b.x || a.l - b.l);
    const xs = this.points.map((point) => point.x).concat(this.rules.filter((rule) => rule.x !== undefined).map((rule) => rule.x));
    const ys = this.points.map((point) => point.y);
    const extent = (all) => all.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    [this.lowX, this.highX] = extent(xs);
    [this.lowY, this.highY] = extent(ys);
    if (yFromZero) this.lowY = Math.min(0, this.lowY);
    if (this.lowX === this.highX) [this.lowX, this.highX] = [this.lowX - 1, this.highX + 1];
    if (this.lowY === this.highY) [this.lowY, this.highY] = [this.lowY - Math.abs(this.lowY || 1) / 2, this.highY + Math.abs(this.highY || 1) / 2];
    const margin = (this.highY - this.lowY) * 0.06;
    this.highY += margin;
    if (!yFromZero) this.lowY -= margin;
    this.cursor = null;
    this.surface = new Surface(host, label, (context, surface) => this.draw(context, surface),
                               (context, surface) => this.drawOver(context, surface), {bottom: xLabel ? 42 : 24, ...(yLabel ? {top: 24} : {})});
    host.addEventListener('pointermove', (event) => this.point(this.surface.pointOf(event)));
    host.addEventListener('keydown', (event) => {
      const last = this.points.length - 1;
      const at = this.cursor === null ? -1 : this.cursor;
      const moves = {ArrowLeft: [at - 1, -1], ArrowRight: [at + 1, 1], Home: [0, 1], End: [last, -1]};
      if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      let [to, step] = moves[event.key];
      while (to >= 0 && to <= last && this.lines[this.points[to].l].background) to += step;
      if (to >= 0 && to <= last) this.select(to, true);
    });
  }

  scaleX(x) { return this.logarithmic ? Math.log(x) : x; }
  toX(x) {
    const low = this.scaleX(this.lowX);
    const share = (this.scaleX(x) - low) / (this.scaleX(this.highX) - low);
    // Marks at the ends stay whole.
    return this.surface.left + 6 + share * (this.surface.right - this.surface.left - 12);
  }
  toY(y) {
    return this.surface.bottom - ((y - this.lowY) / (this.highY - this.lowY)) * (this.surface.bottom - this.surface.top);
  }

  point(at) {
    // By x first: the nearest by distance among the points around the pointer.
    const places = this.points.map((point) => this.toX(point.x));
    const middle = lowerBound(places, at.x);
    let best = null;
    let least = Infinity;
    for (let step = -1; step <= 1; step += 2) {
      for (let i = step < 0 ? middle - 1 : middle; i >= 0 && i < places.length; i += step) {
        const dx = places[i] - at.x;
        if (dx * dx > least) break;
        const dy = (this.toY(this.points[i].y) - at.y) / 4; // the column matters more than the height
        if (dx * dx + dy * dy < least) [best, least] = [i, dx * dx + dy * dy];
      }
    }
    if (best !== null) this.select(best, false);
  }

  select(index, aloud) {
    this.cursor = Math.min(Math.max(index, 0), this.points.length - 1);
    const {l, i} = this.points[this.cursor];
    const text = this.onPoint(this.lines[l], i);
    if (aloud && text) announce(text);
    this.surface.redrawOver();
  }

  draw(context, surface) {
    const yTicks = ticksBetween(this.lowY, this.highY, (surface.bottom - surface.top) / 45);
    drawYAxis(context, surface, yTicks, (tick) => this.toY(tick), (tick) => this.formatY(tick, this.highY));
    const xTicks = this.xTicks ? this.xTicks(this.lowX, this.highX)
      : ticksBetween(this.lowX, this.highX, (surface.right - surface.left) / 90);
    drawXLabels(context, surface, xTicks, (tick) => this.toX(tick), (tick) => this.formatX(tick, this.highX), surface.bottom + 7);
    if (this.xLabel) {
      context.textAlign = 'center';
      context.textBaseline = 'bottom';
      context.fillText(this.xLabel, (surface.left + surface.right) / 2, surface.host.clientHeight);
    }
    if (this.yLabel) {
      context.textAlign = 'left';
      context.textBaseline = 'top';
      context.fillText(this.yLabel, 0, 0);
    }
    for (const rule of this.rules) this.drawUpright(context, surface, rule);
    for (const line of this.lines) this.drawLine(context, line);
  }

  drawUpright(context, surface, rule) {
    const x = Math.round(this.toX(rule.x)) + 0.5;
    context.strokeStyle = colorOf(rule.color);
    context.lineWidth = 1.5;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(x, surface.top);
    context.lineTo(x, surface.bottom);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colorOf(rule.color);
    const width = context.measureText(rule.text).width;
    const fits = x + 6 + width <= surface.right;
    context.textAlign = fits ? 'left' : 'right';
    context.textBaseline = 'top';
    context.fillText(rule.text, fits ? x + 6 : x - 6, surface.top);
  }

  drawLine(context, line) {
    context.strokeStyle = colorOf(line.color);
    context.fillStyle = colorOf(line.color);
    context.lineWidth = 1.75;
    context.lineJoin = 'round';
    if (line.joined !== false) {
      context.beginPath();
      let pen = false;
      for (let i = 0; i < line.xs.length; ++i) {
        if (!Number.isFinite(line.ys[i])) continue; // a line may have values at some steps only
        if (pen) context.lineTo(this.toX(line.xs[i]), this.toY(line.ys[i]));
        else context.moveTo(this.toX(line.xs[i]), this.toY(line.ys[i]));
        pen = true;
      }
      context.stroke();
    }
    if (!line.dots) return;
    for (let i = 0; i < line.xs.length; ++i) {
      if (!Number.isFinite(line.ys[i])) continue;
      context.beginPath();
      context.arc(this.toX(line.xs[i]), this.toY(line.ys[i]), line.dots, 0, 2 * Math.PI);
      context.fill();
    }
  }

  drawOver(context, surface) {
    if (this.cursor === null) return;
    const point = this.points[this.cursor];
    drawCursor(context, surface, this.toX(point.x));
    context.fillStyle = colorOf(this.lines[point.l].color);
    context.strokeStyle = colorOf('cursor');
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(this.toX(point.x), this.toY(point.y), 5, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }
}
