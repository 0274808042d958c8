// Time against memory: the plans that no other beats in both, the budget, this plan, and what a sweep measured.

function describePoint(point) {
  const parts = [];
  if (point.microbatch) parts.push(`microbatches of ${point.microbatch}`);
  if (point.checkpoint) parts.push(formatCheckpoint(point.checkpoint));
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

// What a sweep trained, each plan once; several budgets may have led to it.
function trainedPlans(report) {
  const points = (report.points || []).filter((point) => point.same_plan_as === null || point.same_plan_as === undefined);
  return (report.plain ? [...points, {...report.plain, title: 'plain training'}] : points)
    .sort((a, b) => a.planned_peak_bytes - b.planned_peak_bytes);
}

function frontierLines(report) {
  const frontier = (report.frontier || []).map((point) => ({...point, planned_peak_bytes: point.bytes})).sort((a, b) => a.bytes - b.bytes);
  const trained = trainedPlans(report);
  const predicted = trained.filter((point) => point.predicted_step_seconds);
  const own = frontier.filter((point) => point.planned_peak_bytes === report.planned_peak_bytes);
  return [
    {name: 'possible', colour: 'model', points: frontier, seconds: (point) => point.seconds, dots: 4,
     text: 'possible plans: none is beaten in both; time is estimated'},
    {name: 'predicted', colour: 'workspace', points: predicted, seconds: (point) => point.predicted_step_seconds, dots: 3.5,
     text: 'predicted'},
    {name: 'measured', colour: 'activation', points: trained, seconds: (point) => point.step_seconds, dots: 4.5,
     text: 'measured'},
    {name: 'this plan', colour: 'accent', points: own, seconds: (point) => point.seconds, dots: 7, joined: false, text: 'this plan'},
  ].filter((line) => line.points.length > 0)
    .map((line) => ({...line, xs: line.points.map((point) => point.planned_peak_bytes), ys: line.points.map(line.seconds)}));
}

function showSweepTable(report) {
  const numbers = ['Budget', 'Planned', 'Measured', 'Resident', 'Microbatch', 'Images a second', 'Slower than plain', 'Predicted time'];
  const head = element('tr', {}, ...numbers.map((text) => element('th', {class: 'number', scope: 'col'}, text)),
                       element('th', {scope: 'col'}, 'Recomputed'));
  const percent = (share) => (share === null || share === undefined ? '' : `${share >= 0 ? '+' : ''}${(100 * share).toFixed(1)}%`);
  const rows = (report.plain ? [{...report.plain, title: 'plain'}] : []).concat(report.points).map((point) => {
    const cells = [
      point.title || formatBytes(point.budget_bytes), formatBytes(point.planned_peak_bytes), formatBytes(point.measured_peak_bytes),
      formatBytes(point.peak_resident_bytes), formatCount(point.microbatch), point.images_per_second.toFixed(1), percent(point.overhead),
      percent(point.prediction_error),
    ];
    return element('tr', {}, ...cells.map((text) => element('td', {class: 'number'}, text)),
                   element('td', {}, point.checkpoint === 'none' ? 'nothing' : point.checkpoint));
  });
  byId('sweep-table').replaceChildren(element('thead', {}, head), element('tbody', {}, ...rows));
}

function showFrontier(report) {
  const lines = frontierLines(report);
  if (lines.length === 0) return;
  const rules = report.budget_bytes ? [{x: report.budget_bytes, colour: 'budget', text: `budget ${formatBytes(report.budget_bytes)}`}] : [];
  legend(byId('frontier-legend'), [...lines.map((line) => [line.colour, line.text, 'dot']),
                                   ...(rules.length > 0 ? [['budget', 'budget', 'rule']] : [])]);
  const notes = ['Further left is less memory, further down is less time.'];
  if (report.points) {
    notes.push(`Each plan was trained for ${report.steps} timed step${report.steps === 1 ? '' : 's'}, in a process of its own.`);
    if (!report.plain) notes.push(`Plain training takes ${formatBytes(report.plain_peak_bytes)}, more than the machine has.`);
  }
  byId('frontier-note').textContent = notes.join(' ');
  show('frontier');
  if (report.points) showSweepTable(report);
  const plot = new Plot(byId('frontier-chart'), 'Time of a step against memory, a chart. Arrow keys go from plan to plan.', {
    lines, rules, logarithmic: true, yFromZero: true, xTicks: roundBytesBetween, xLabel: 'memory (logarithmic)',
    formatX: (bytes) => formatByteTick(bytes, bytes), formatY: (seconds) => (seconds === 0 ? '0' : formatSeconds(seconds)),
    onPoint: (line, i) => {
      const point = line.points[i];
      const text = `${point.title || line.name}: ${formatBytes(point.planned_peak_bytes)}, ${formatSeconds(line.ys[i])} a step; ` +
          describePoint(point);
      byId('frontier-selected').textContent = text;
      byId('frontier-selected').dataset.bytes = String(point.planned_peak_bytes);
      return text;
    },
  });
  plot.select(Math.max(0, plot.points.findIndex((point) => point.x === report.planned_peak_bytes)), false);
}
