// Memory over the step: the bytes alive while each node runs, stacked by class, below the budget.

// From the bottom up: first what is there all the time.
const kStackOrder = ['model', 'gradient', 'optimizer', 'input', 'activation', 'workspace'];

class MemoryChart {
  constructor(view, report) {
    this.view = view;
    this.report = report;
    this.surface = new Surface(byId('memory-chart'), 'Memory over the step, a chart. Arrow keys go from node to node.',
                               (context, surface) => this.draw(context, surface), (context, surface) => this.drawOver(context, surface));
    view.attach(this.surface, {});
  }

  // The budget is in sight unless it would press the curve flat.
  get top() {
    const {planned_peak_bytes: planned, budget_bytes: budget} = this.report;
    const highest = budget && budget - this.bottom < 2.5 * (planned - this.bottom) ? Math.max(budget, planned) : planned;
    return this.bottom + (highest - this.bottom) * 1.08;
  }

  get bottom() {
    return this.view.onlyTransient ? this.view.span.states.total : 0;
  }

  toY(bytes) {
    const {surface} = this;
    return surface.bottom - ((bytes - this.bottom) / (this.top - this.bottom)) * (surface.bottom - surface.top);
  }

  draw(context, surface) {
    const {view, report} = this;
    const ticks = ticksBetween(this.bottom, this.top, (surface.bottom - surface.top) / 55);
    drawYAxis(context, surface, ticks, (tick) => this.toY(tick), (tick) => formatByteTick(tick, this.top));

    clipped(context, surface, () => this.drawAreas(context, surface));
    const {planned_peak_bytes: planned, budget_bytes: budget} = report;
    const seen = budget && budget <= this.top;
    const close = seen && this.toY(planned) - this.toY(budget) < 20;
    const planText = `planned ${formatBytes(planned)}`;
    drawRule(context, surface, this.toY(planned), colorOf('text'), close ? '' : planText, false);
    if (seen) {
      drawRule(context, surface, this.toY(budget), colorOf('budget'), `budget ${formatBytes(budget)}${close ? ', ' + planText : ''}`, true);
    } else if (budget) {
      context.fillStyle = colorOf('budget');
      context.textAlign = 'left';
      context.textBaseline = 'top';
      context.fillText(`↑ budget ${formatBytes(budget)}`, surface.left + 4, 0);
    }
    view.drawNodeAxis(context, surface);
  }

  drawAreas(context, surface) {
    const {view} = this;
    const {span} = view;
    const columns = Math.ceil(surface.right - surface.left);
    const nodes = Int32Array.from({length: columns}, (_, column) => view.fullestOfColumn(surface, column));
    const below = new Float64Array(columns);
    for (const name of kStackOrder) {
      const c = span.classes.indexOf(name);
      if (c < 0) continue;
      const bytes = span.byClass[c];
      context.fillStyle = colorOf(name);
      context.beginPath();
      context.moveTo(surface.left, this.toY(below[0]));
      for (let i = 0; i < columns; ++i) this.step(context, surface, i, below[i] + bytes[nodes[i]]);
      for (let i = columns - 1; i >= 0; --i) this.stepBack(context, surface, i, below[i]);
      context.fill();
      for (let i = 0; i < columns; ++i) below[i] += bytes[nodes[i]];
    }
  }

  step(context, surface, column, bytes) {
    const y = this.toY(bytes);
    context.lineTo(surface.left + column, y);
    context.lineTo(Math.min(surface.left + column + 1, surface.right), y);
  }

  stepBack(context, surface, column, bytes) {
    const y = this.toY(bytes);
    context.lineTo(Math.min(surface.left + column + 1, surface.right), y);
    context.lineTo(surface.left + column, y);
  }

  drawOver(context, surface) {
    const {view} = this;
    view.drawDrag(context, surface);
    const x = view.toX(surface, view.cursor + 0.5);
    if (x < surface.left || x > surface.right) return;
    drawCursor(context, surface, x);
    context.fillStyle = colorOf('cursor');
    context.beginPath();
    context.arc(Math.round(x) + 0.5, this.toY(view.span.totals[view.cursor]), 3.5, 0, 2 * Math.PI);
    context.fill();
  }
}
