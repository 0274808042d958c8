// What each method saves: a ladder from the plain plan to this one.

function showLadder(rungs) {
  const most = Math.max(...rungs.map((rung) => rung.bytes));
  const titles = [['', 'Method'], ['number', 'Memory'], ['picture', ''], ['number', 'Saves'], ['number', 'Time of a step'], ['number', 'Costs']];
  const head = element('tr', {}, ...titles.map(([kind, text]) => element('th', {class: kind, scope: 'col'}, text)));
  const rows = rungs.map((rung, i) => {
    const bar = element('div', {class: 'bar', 'aria-hidden': 'true'});
    const piece = element('span');
    piece.style.width = `${(100 * rung.bytes) / most}%`;
    piece.style.background = `var(--${i + 1 === rungs.length ? 'own' : 'model'})`;
    bar.append(piece);
    const before = rungs[i - 1];
    const saved = before ? formatBytes(before.bytes - rung.bytes) : '';
    const costs = before && before.seconds > 0 ? formatChange(rung.seconds / before.seconds - 1) : '';
    return element('tr', {}, element('td', {}, formatMethod(rung.method)),
                   element('td', {class: 'number', title: `${formatCount(rung.bytes)} bytes`}, formatBytes(rung.bytes)),
                   element('td', {class: 'picture'}, bar), element('td', {class: 'number'}, saved),
                   element('td', {class: 'number'}, formatSeconds(rung.seconds)), element('td', {class: 'number'}, costs));
  });
  byId('ladder-table').replaceChildren(element('thead', {}, head), element('tbody', {}, ...rows));
  const [first, last] = [rungs[0], rungs[rungs.length - 1]];
  byId('ladder-note').textContent = `From ${formatBytes(first.bytes)} to ${formatBytes(last.bytes)}, ${(first.bytes / last.bytes).toFixed(1)} ` +
      `times less, in ${(last.seconds / first.seconds).toFixed(2)} times the time: one method after the other, each beside the one before. ` +
      'Times are estimates.';
  show('ladder');
}

// Where the command could not find out how the plan came to be.
function showNotExplained(reason) {
  byId('ladder-note').textContent = `What each method saved, and which other plans there are, is not known here: ${reason}.`;
  show('ladder');
}
