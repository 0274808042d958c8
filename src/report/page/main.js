// Draws what the data has: a plan, a run, a sweep, or several of them.

// What training took beside the arena, at its most, by the run's metrics: on every machine memory of the process, on a GPU also the driver's.
function besideArena(report) {
  const columns = report.training ? report.training.columns : {};
  const most = (column) => (column || []).reduce((largest, value) => Math.max(largest, value), 0);
  return columns.process_overhead_bytes ? {process: most(columns.process_overhead_bytes), device: most(columns.device_overhead_bytes)} : null;
}

function showHead(report) {
  const name = report.model || 'Snug';
  byId('title').textContent = name;
  document.title = `${name}: memory report`;
  const parts = [];
  if (report.batch) parts.push(`batch ${formatCount(report.batch)}`);
  if (report.microbatch && report.microbatch !== report.batch) parts.push(`in microbatches of ${formatCount(report.microbatch)}`);
  if (report.checkpoint) parts.push(formatCheckpoint(report.checkpoint));
  if (report.precision) parts.push(report.precision);
  if (report.nonzero && report.nonzero < 1) parts.push(`${Number((100 * report.nonzero).toPrecision(4))}% of the convolutions’ weights`);
  if (report.compress_bits) parts.push(`activations in ${report.compress_bits} bits`);
  if (report.threads) parts.push(`${report.threads} thread${report.threads === 1 ? '' : 's'}`);
  if (report.data) parts.push(report.data === 'random' ? `random ${unitOfSpeed((report.points && report.points[0]) || {})}` : `on ${report.data}`);
  if (report.run) parts.push(report.run);
  byId('subtitle').textContent = parts.join(', ');

  const cards = [];
  const card = (title, text, small) => cards.push(element('div', {}, element('dt', {}, title), element('dd', {}, text,
                                                          ...(small ? [element('small', {}, small)] : []))));
  if (report.planned_peak_bytes) card('Planned peak', formatBytes(report.planned_peak_bytes), `${formatCount(report.planned_peak_bytes)} bytes`);
  if (report.budget_bytes) {
    const share = report.planned_peak_bytes / report.budget_bytes;
    card('Budget', formatBytes(report.budget_bytes), report.planned_peak_bytes ? `${formatPercent(share)} of it planned` : '');
  }
  const beside = besideArena(report);
  if (beside) card('Beside the arena', formatBytes(beside.process + beside.device), beside.device > 0
    ? `${formatBytes(beside.device)} held by the GPU’s driver, ${formatBytes(beside.process)} resident in the process` : 'resident in the process');
  if (report.methods && report.methods.length > 1) {
    const plain = report.methods[0].bytes;
    card('Plain plan', formatBytes(plain), `${(plain / report.planned_peak_bytes).toFixed(1)} times as much`);
  }
  if (report.parameters) card('Parameters', formatCount(report.parameters), report.trainable_parameters === report.parameters ? ''
    : `${formatCount(report.trainable_parameters)} trained`);
  if (report.flops) {
    const {per_image: image, per_example: example} = report.flops;
    const one = image || example;
    card(image ? 'FLOPs an image' : 'FLOPs an example', formatFlops(one.forward + one.backward + one.recompute),
         report.flops.recompute > 0 ? `${report.flops_ratio.toFixed(2)} times those without recomputing` : 'nothing computed twice');
  }
  if (report.predicted_step_seconds) {
    card(report.flops && report.flops.per_example ? 'Examples a second' : 'Images a second', `${(report.batch / report.predicted_step_seconds).toFixed(1)}`,
         `predicted${report.costs ? `, ${report.costs}` : ''}`);
  }
  if (report.points && report.points.length > 0) {
    const least = report.points.reduce((a, b) => (b.planned_peak_bytes < a.planned_peak_bytes ? b : a));
    const unit = unitOfSpeed(report.points[0]);
    const key = `${unit}_per_second`;
    const fastest = report.points.reduce((a, b) => (b[key] > a[key] ? b : a));
    const speed = (plan) => `${plan[key].toFixed(1)} ${unit}/s`;
    const exact = report.points.filter((point) => point.measured_peak_bytes === point.planned_peak_bytes).length;
    card('Plain training', formatBytes(report.plain_peak_bytes), report.plain ? speed(report.plain) : 'more than the machine has');
    card('Smallest trained', formatBytes(least.planned_peak_bytes),
         `${(report.plain_peak_bytes / least.planned_peak_bytes).toFixed(1)} times less, ${speed(least)}`);
    card('Fastest', speed(fastest), `in ${formatBytes(fastest.planned_peak_bytes)}`);
    card('Measured as planned', `${exact} of ${report.points.length}`, 'budgets, to the byte');
  }
  byId('summary').replaceChildren(...cards);
  byId('footer').textContent = `Made by snug${report.version ? ' ' + report.version : ''}. This page loads nothing and sends nothing.`;
}

function showStep(report, timeline) {
  const spans = spansOf(timeline);
  if (spans.length === 0) return;
  show('step');
  legend(byId('class-legend'), [...kStackOrder.map((name) => [name, name]), ...(report.budget_bytes ? [['budget', 'budget', 'rule']] : []),
                                ...timeline.phases.filter((phase) => phase !== 'init').map((phase) => [phase, phase, 'dot'])]);
  const view = new StepView();
  new MemoryChart(view, report);
  new ArenaChart(view, report);
  new Details(view);
  new Search(view);
  byId('zoom-in').addEventListener('click', () => view.zoom(0.5));
  byId('zoom-out').addEventListener('click', () => view.zoom(2));
  byId('zoom-all').addEventListener('click', () => view.setRange(0, view.span.nodeCount));
  byId('to-peak').addEventListener('click', () => view.setCursor(view.span.peak));
  byId('only-transient').addEventListener('change', (event) => view.setOnlyTransient(event.target.checked));
  const chooser = byId('span');
  chooser.replaceChildren(...spans.map((span, i) => element('option', {value: i}, span.title)));
  const choose = () => {
    const {sections, title} = spans[Number(chooser.value)];
    view.setSpan(new Span(timeline, sections));
    const runs = sections.find((section) => section.runs > 1);
    byId('step-note').textContent = `${formatCount(view.span.nodeCount)} nodes of ${title}, in the order they run` +
        (runs ? `; forward and backward run ${formatCount(runs.runs)} times before the update.` : '.');
  };
  chooser.addEventListener('change', choose);
  choose();
}

function main() {
  const report = JSON.parse(byId('data').textContent);
  showHead(report);
  if (report.timeline) {
    const timeline = readTimeline(report.timeline);
    showStep(report, timeline);
    showWhere(report, timeline);
  }
  if (report.methods && report.methods.length > 1) showLadder(report.methods);
  if (report.not_explained) showNotExplained(report.not_explained);
  showFrontier(report);
  if (report.training) showTraining(report.training);
  // When everything is drawn for the first time.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }));
}

main();
