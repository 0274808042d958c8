// Time against memory: the plans that no other beats in both, the budget, this plan, and what was measured of a sweep.

function describePoint(point) {
  const parts = [];
  if (point.microbatch) parts.push(`microbatches of ${point.microbatch}`);
  if (point.checkpoint) parts.push(point.checkpoint === 'none' ? 'nothing recomputed' : `checkpointing ${point.checkpoint}`);
  if (point.workspace_limit_bytes) parts.push(`kernels' scratch up to ${formatBytes(point.workspace_limit_bytes)}`);
  return parts.join(', ');
}

// 1, 2 and 5 times powers of ten: the axis of bytes is logarithmic.
function roundBytesBetween(low, high) {
  const ticks = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const factor of [1, 2, 5]) if (factor * power >= low && factor * power <= high) ticks.push(factor * power);
  }
  return ticks.length >= 2 ? ticks : ticksBetween(low, high, 4);
}

function showFrontier(report) {
  const points = [...report.frontier].sort((a, b) => a.planned_peak_bytes - b.planned_peak_bytes);
  const measured = points.filter((point) => point.measured_seconds > 0)
    .map((point) => ({...point, planned_peak_bytes: point.measured_peak_bytes || point.planned_peak_bytes}));
  const lineOf = (name, colour, of, seconds, looks) =>
    ({name, colour, points: of, xs: of.map((point) => point.planned_peak_bytes), ys: of.map(seconds), ...looks});
  const lines = [lineOf('planned', 'model', points, (point) => point.seconds, {dots: 4})];
  const entries = [['model', 'planned: memory, and time as estimated', 'dot']];
  if (measured.length > 0) {
    lines.push(lineOf('measured', 'activation', measured, (point) => point.measured_seconds, {dots: 4.5, joined: false}));
    entries.push(['activation', 'measured', 'dot']);
  }
  const own = points.filter((point) => point.planned_peak_bytes === report.planned_peak_bytes);
  if (own.length > 0) {
    lines.push(lineOf('this plan', 'accent', own, (point) => point.seconds, {dots: 7, joined: false}));
    entries.push(['accent', 'this plan', 'dot']);
  }
  const rules = report.budget_bytes ? [{x: report.budget_bytes, colour: 'budget', text: `budget ${formatBytes(report.budget_bytes)}`}] : [];
  if (rules.length > 0) entries.push(['budget', 'budget', 'rule']);
  legend(byId('frontier-legend'), entries);
  byId('frontier-note').textContent = `${formatCount(points.length)} plans, of which none is beaten by another in both memory and time ` +
      'of a step. To the left there is less memory, below there is less time.';
  show('frontier');
  const plot = new Plot(byId('frontier-chart'), 'Time of a step against memory, a chart. Arrow keys go from plan to plan.', {
    lines, rules, logarithmic: true, yFromZero: true, xTicks: roundBytesBetween, xLabel: 'memory (logarithmic)',
    formatX: (bytes) => formatByteTick(bytes, bytes), formatY: (seconds) => (seconds === 0 ? '0' : formatSeconds(seconds)),
    onPoint: (line, i) => {
      const point = line.points[i];
      const seconds = line.name === 'measured' ? point.measured_seconds : point.seconds;
      const text = `${line.name}: ${formatBytes(point.planned_peak_bytes)}, ${formatSeconds(seconds)} a step; ${describePoint(point)}`;
      byId('frontier-selected').textContent = text;
      byId('frontier-selected').dataset.bytes = String(point.planned_peak_bytes);
      return text;
    },
  });
  plot.select(Math.max(0, plot.points.findIndex((point) => point.x === report.planned_peak_bytes)), false);
}
