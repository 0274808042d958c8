// Training as the run's metrics tell it: one panel for each kind of figure, and only those that there are.

const kPanels = [
  {title: 'Loss', keys: [['loss', 'training', 'model'], ['test_loss', 'test', 'optimizer']]},
  {title: 'Accuracy', keys: [['accuracy', 'training', 'model'], ['test_accuracy', 'test', 'optimizer']], percent: true},
  {title: 'Learning rate', keys: [['learning_rate', 'learning rate', 'gradient']], fromZero: true},
  ...['images', 'tokens', 'examples'].map((unit) => ({
    title: `${unit[0].toUpperCase()}${unit.slice(1)} a second`, keys: [[`${unit}_per_second`, `${unit}/s`, 'activation']], fromZero: true,
  })),
  {title: 'Memory', keys: [['measured_peak_bytes', 'measured peak of the arena', 'model'],
                           ['resident_bytes', 'resident, says the operating system', 'workspace']], bytes: true, fromZero: true},
  {title: 'Memory beside the arena', keys: [['process_overhead_bytes', 'resident in the process, at its most', 'workspace'],
                                            ['device_overhead_bytes', 'held by the GPU’s driver', 'gradient']], bytes: true, fromZero: true},
  {title: 'Loss scale', keys: [['loss_scale', 'loss scale', 'gradient']], fromZero: true},
  {title: 'Skipped steps', keys: [['skipped_steps', 'skipped so far', 'optimizer']], fromZero: true},
];

const kLegendNames = 8; // more lines than this are told apart by pointing at them

// Columns "nonzeros.LAYER" make one panel with a line for each layer, from the first to the last in the colors of the rainbow.
// Columns that no panel names get one each, so that nothing measured stays hidden.
function panelsOf(columns) {
  const named = new Set(kPanels.flatMap((panel) => panel.keys.map(([key]) => key)).concat(['step', 'epoch']));
  const others = Object.keys(columns).filter((key) => !named.has(key));
  const byLayer = others.filter((key) => key.startsWith('nonzeros.'));
  const nonzeros = {
    title: 'Nonzero weights by layer', fromZero: true,
    keys: byLayer.map((key, i) => [key, key.slice('nonzeros.'.length), `hsl(${Math.round((300 * i) / Math.max(1, byLayer.length - 1))} 65% 50%)`]),
  };
  return kPanels.concat(byLayer.length > 0 ? [nonzeros] : [], others.filter((key) => !byLayer.includes(key))
    .map((key) => ({title: key.replaceAll('_', ' '), keys: [[key, key.replaceAll('_', ' '), 'input']], bytes: key.endsWith('_bytes')})));
}

function showPanel(host, panel, training) {
  const steps = training.columns.step;
  const lines = panel.keys.filter(([key]) => training.columns[key] && training.columns[key].some((value) => value !== null))
    .map(([key, name, color]) => {
      const ys = training.columns[key].map((value) => (value === null ? NaN : value));
      const known = ys.filter((value) => Number.isFinite(value)).length;
      return {key, name, color, xs: steps, ys, dots: known <= 60 ? 2.5 : 0};
    });
  if (lines.length === 0) return;
  const format = panel.bytes ? formatBytes : panel.percent ? (share) => (100 * share).toFixed(2) + '%' : formatNumber;
  const chart = element('div', {class: 'chart'});
  chart.dataset.keys = lines.map((line) => line.key).join(' ');
  const reading = element('p', {class: 'reading'});
  const list = element('ul', {class: 'legend'});
  if (lines.length === 1) list.hidden = true; // the title says it
  else if (lines.length <= kLegendNames) legend(list, lines.map((line) => [line.color, line.name]));
  else list.append(element('li', {}, `${lines.length} lines, from ${lines[0].name} (red) to ${lines[lines.length - 1].name} (violet)`));
  host.append(element('div', {class: 'panel'}, element('h3', {}, panel.title), list, chart, reading));
  const plot = new Plot(chart, `${panel.title} over the steps, a chart. Arrow keys go from point to point.`, {
    lines, yFromZero: panel.fromZero, formatX: (step) => formatCount(step),
    formatY: (value, largest) => (panel.bytes ? formatByteTick(value, largest) : formatNumber(panel.percent ? 100 * value : value) + (panel.percent ? '%' : '')), xLabel: 'step',
    onPoint: (line, i) => {
      const text = `step ${formatCount(line.xs[i])}: ${line.name} ${format(line.ys[i])}`;
      reading.textContent = text;
      reading.dataset.step = String(line.xs[i]);
      reading.dataset.value = String(line.ys[i]);
      return text;
    },
  });
  plot.select(plot.points.length - 1, false);
}

function showTraining(training) {
  show('training');
  const notes = [];
  const {columns} = training;
  if (columns.step.length > 0) notes.push(`${formatCount(columns.step[columns.step.length - 1])} steps.`);
  if (training.one_line_in > 1) notes.push(`One line of the metrics in ${training.one_line_in} is drawn, and every test.`);
  if (training.damaged_lines > 0) notes.push(`${formatCount(training.damaged_lines)} damaged lines of the metrics were left out.`);
  byId('training-note').textContent = notes.join(' ');
  for (const panel of panelsOf(columns)) showPanel(byId('training-charts'), panel, training);
}
