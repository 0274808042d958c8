// Time against memory: every plan that the solver considered, those that no other beats in both, the budget, this plan, and what a
// sweep measured.

function describePoint(point) {
  const parts = [];
  if (point.microbatch) parts.push(`microbatches of ${point.microbatch}`);
  if (point.checkpoint) parts.push(formatCheckpoint(point.checkpoint));
  if (point['16_bits']) parts.push('16 bits');
  if (point.nonzero) parts.push(`${Number((100 * point.nonzero).toPrecision(4))}% of the weights`);
  if (point.compress_bits) parts.push(`activations in ${point.compress_bits} bits`);
  if (point.fused_update) parts.push('weights updated in backward');
  if (point.workspace_limit_bytes) parts.push(`workspace of a kernel up to ${formatBytes(point.workspace_limit_bytes)}`);
  return parts.join(', ');
}

// Round numbers for an axis of bytes that is logarithmic: closer together where it spans less.
function roundBytesBetween(low, high) {
  for (const factors of [[1, 2, 5], [1, 1.5, 2, 3, 5, 7]]) {
    const ticks = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
      for (const factor of factors) if (factor * power >= low && factor * power <= high) ticks.push(factor * power);
    }
    if (ticks.length >= 5) return ticks;
  }
  return ticksBetween(low, high, 5);
}

// What a sweep trained, each plan once; several budgets may have led to it.
function trainedPlans(report) {
  const points = (report.points || []).filter((point) => point.same_plan_as === null || point.same_plan_as === undefined)
    .map((point) => ({...point, title: `measured in a budget of ${formatBytes(point.budget_bytes)}`}));
  const plain = report.plain && !points.some((point) => point.planned_peak_bytes === report.plain.planned_peak_bytes);
  return (plain ? [...points, {...report.plain, title: 'plain training, measured'}] : points)
    .map((point) => ({...point, bytes: point.planned_peak_bytes}));
}

// This plan as the ladder's last rung has it: by the same costs as the others, and even where others beat it.
function ownPlan(report) {
  const rung = (report.methods || [])[(report.methods || []).length - 1];
  return rung ? [{bytes: rung.bytes, seconds: rung.seconds, microbatch: report.microbatch, checkpoint: report.checkpoint}] : [];
}

function frontierLines(report) {
  const trained = trainedPlans(report);
  const frontier = report.frontier || [];
  const predicted = frontier.length > 0 ? [] : trained.filter((point) => point.predicted_step_seconds);
  const chosen = (point) => point.seconds;
  return [
    {name: 'considered', color: 'gaps', points: report.considered || [], seconds: chosen, dots: 2, joined: false, background: true,
     text: 'considered'},
    {name: 'best', color: 'model', points: frontier, seconds: chosen, dots: 3, text: 'best for its bytes'},
    {name: 'predicted', color: 'workspace', points: predicted, seconds: (point) => point.predicted_step_seconds, dots: 3, text: 'predicted'},
    {name: 'measured', color: 'activation', points: trained, seconds: (point) => point.step_seconds, dots: 4.5, text: 'measured'},
    {name: 'this plan', color: 'own', points: ownPlan(report), seconds: chosen, dots: 7, joined: false, text: 'this plan'},
  ].filter((line) => line.points.length > 0).map((line) => {
    const points = [...line.points].sort((a, b) => a.bytes - b.bytes);
    return {...line, points, xs: points.map((point) => point.bytes), ys: points.map(line.seconds)};
  });
}

function showSweepTable(report) {
  const rowsOf = (report.plain ? [{...report.plain, title: 'plain'}] : []).concat(report.points);
  const onDevice = rowsOf.some((point) => point.device_overhead_bytes); // only a GPU's driver takes something there
  const unit = unitOfSpeed(rowsOf[0]);
  const numbers = ['Budget', `${unit[0].toUpperCase()}${unit.slice(1)} a second`, 'Slower than plain', 'Planned', 'Measured', 'Resident', ...(onDevice ? ['Driver, beside the arena'] : []),
                   'Microbatch', 'Prediction off by'];
  const head = element('tr', {}, ...numbers.map((text) => element('th', {class: 'number', scope: 'col'}, text)),
                       element('th', {scope: 'col'}, 'Recomputed'));
  const percent = (share) => (share === null || share === undefined ? '' : formatChange(share));
  const rows = rowsOf.map((point) => {
    const cells = [
      point.title || formatBytes(point.budget_bytes), point[`${unit}_per_second`].toFixed(1), percent(point.overhead),
      formatBytes(point.planned_peak_bytes), formatBytes(point.measured_peak_bytes), formatBytes(point.peak_resident_bytes),
      ...(onDevice ? [point.device_overhead_bytes ? formatBytes(point.device_overhead_bytes) : ''] : []), formatCount(point.microbatch), percent(point.prediction_error),
    ];
    return element('tr', {}, ...cells.map((text) => element('td', {class: 'number'}, text)),
                   element('td', {}, point.checkpoint === 'none' ? 'nothing' : formatStrategy(point.checkpoint)));
  });
  byId('sweep-table').replaceChildren(element('thead', {}, head), element('tbody', {}, ...rows));
}

function frontierNote(report) {
  const notes = ['Further left is less memory, further down is less time.'];
  if (report.considered) {
    notes.push(`The solver compared ${formatCount(report.considered.length)} plans and kept the ${formatCount(report.frontier.length)} that ` +
               'no other beats in both, by estimated time; a budget gets the fastest of them that fits.');
  }
  if (report.points) {
    notes.push(`Each plan was trained for ${report.steps} timed step${report.steps === 1 ? '' : 's'}, in a process of its own.`);
    if (!report.plain) notes.push(`Plain training takes ${formatBytes(report.plain_peak_bytes)}, more than the machine has.`);
  }
  return notes.join(' ');
}

function showFrontier(report) {
  const lines = frontierLines(report);
  if (!report.points && (report.frontier || []).length < 2) return; // one plan was possible: nothing to compare
  const rules = report.budget_bytes ? [{x: report.budget_bytes, color: 'budget', text: `budget ${formatBytes(report.budget_bytes)}`}] : [];
  legend(byId('frontier-legend'), [...lines.map((line) => [line.color, line.text, 'dot']),
                                   ...(rules.length > 0 ? [['budget', 'budget', 'rule']] : [])]);
  byId('frontier-note').textContent = frontierNote(report);
  const fastest = Math.min(...(report.frontier || []).map((point) => point.seconds));
  // Measured times are compared with measured ones, estimates with estimates.
  const beside = (point, seconds) => {
    if (point.step_seconds) return typeof point.overhead === 'number' ? `, ${formatChange(point.overhead)} beside plain training` : '';
    return Number.isFinite(fastest) && seconds > fastest ? `, ${formatChange(seconds / fastest - 1)} beside the fastest` : '';
  };
  show('frontier');
  if (report.points) showSweepTable(report);
  const plot = new Plot(byId('frontier-chart'), 'Time of a step against memory, a chart. Arrow keys go from plan to plan.', {
    lines, rules, logarithmic: true, xTicks: roundBytesBetween, xLabel: 'memory (logarithmic)', yLabel: 'time of a step',
    formatX: (bytes) => formatByteTick(bytes, bytes), formatY: (seconds) => (seconds === 0 ? '0' : formatSeconds(seconds)),
    onPoint: (line, i) => {
      const point = line.points[i];
      const text = `${point.title || line.text}: ${formatBytes(point.bytes)}, ${formatSeconds(line.ys[i])} a step` +
          `${beside(point, line.ys[i])}; ${describePoint(point)}`;
      byId('frontier-selected').textContent = text;
      Object.assign(byId('frontier-selected').dataset, {line: line.name, bytes: String(point.bytes), seconds: String(line.ys[i])});
      return text;
    },
  });
  const firstOf = (name) => plot.points.findIndex((point) => lines[point.l].name === name);
  plot.select(['this plan', 'measured', 'best'].map(firstOf).find((at) => at >= 0), false);
}
