// Where the bytes go at the fullest moment: by class, and by layer.

const kFirstLayers = 24; // shown before all are asked for

function barRow(name, parts, whole, bytes, share) {
  const bar = element('div', {class: 'bar', 'aria-hidden': 'true'});
  for (const [color, part] of parts) {
    const piece = element('span', {title: `${color} ${formatBytes(part)}`});
    piece.style.width = `${(100 * part) / whole}%`;
    piece.style.background = `var(--${color})`;
    bar.append(piece);
  }
  return element('div', {class: 'bar-row'}, element('div', {class: 'name'}, name), bar,
                 element('div', {class: 'figure', title: `${formatCount(bytes)} bytes`}, formatBytes(bytes) + ' ',
                         element('small', {}, formatPercent(share))));
}

function firstComponents(name, count) {
  return count === 0 ? name : name.split('.').slice(0, count).join('.');
}

// Bytes by layer and class while `node` runs, in the order in which the network has the layers.
function layersAt(span, node, components) {
  const layers = new Map();
  const add = (value) => {
    const name = firstComponents(value.layer, components) || 'the step';
    if (!layers.has(name)) layers.set(name, {name, total: 0, byClass: {}});
    const layer = layers.get(name);
    layer.total += value.bytes;
    layer.byClass[value.className] = (layer.byClass[value.className] || 0) + value.bytes;
  };
  for (let i = 0; i < span.states.names.length; ++i) add(span.valueOf(-1 - i));
  for (const index of span.alive(node)) add(span.valueOf(index));
  const order = new Map();
  span.layers.forEach((layer, i) => {
    const name = firstComponents(layer, components) || 'the step';
    if (!order.has(name)) order.set(name, i);
  });
  return [...layers.values()].sort((a, b) => order.get(a.name) - order.get(b.name));
}

function showWhere(report, timeline) {
  const span = new Span(timeline, timeline.sections.filter((section) => section.section === report.peak.section));
  if (span.nodeCount === 0) return;
  const node = report.peak.node;
  const whole = report.planned_peak_bytes;
  byId('where-note').textContent =
      `At the fullest moment, ${span.describeNode(node)}, node ${formatCount(node)} of section ${report.peak.section}. ` +
      `No placement of these values is lower than ${formatBytes(report.bound_bytes)}.`;
  const classes = kStackOrder.map((name) => [name, report.by_class[name]]).concat([['gaps', report.gap_bytes]]);
  byId('class-bars').replaceChildren(...classes.map(([name, bytes]) => barRow(name, [[name, bytes]], whole, bytes, bytes / whole)));

  const depth = byId('layer-depth');
  const deepest = Math.max(...span.layers.map((name) => name.split('.').length));
  const choices = [[1, 'in groups'], [2, 'in blocks'], [0, 'each']].filter(([components]) => components < deepest);
  depth.replaceChildren(...choices.map(([components, title]) => element('option', {value: components}, title)));
  depth.value = String(choices.length === 3 ? 2 : choices[0][0]);
  const more = byId('all-layers');
  const update = (all) => {
    const layers = layersAt(span, node, Number(depth.value));
    const largest = Math.max(...layers.map((layer) => layer.total));
    // The smallest are left out, the order stays.
    const kept = new Set([...layers].sort((a, b) => b.total - a.total).slice(0, all ? layers.length : kFirstLayers));
    const shown = layers.filter((layer) => kept.has(layer));
    byId('layer-bars').replaceChildren(...shown.map((layer) =>
      barRow(layer.name, kStackOrder.filter((name) => layer.byClass[name]).map((name) => [name, layer.byClass[name]]), largest,
             layer.total, layer.total / whole)));
    more.hidden = shown.length === layers.length;
    more.textContent = `Show the ${formatCount(layers.length - shown.length)} smaller ones, too`;
  };
  depth.addEventListener('change', () => update(false));
  more.addEventListener('click', () => update(true));
  update(false);
  show('where');
}
