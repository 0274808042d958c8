// What each method saves: a ladder from the plain plan to this one.

function showLadder(rungs) {
  const most = Math.max(...rungs.map((rung) => rung.bytes));
  const head = element('tr', {}, ...[['', 'Method'], ['number', 'Memory'], ['number', 'Saves'], ['picture', ''], ['number', 'Time of a step'],
                                     ['number', 'against plain']].map(([kind, text]) => element('th', {class: kind, scope: 'col'}, text)));
  const rows = rungs.map((rung, i) => {
    const bar = element('div', {class: 'bar', 'aria-hidden': 'true'});
    const piece = element('span');
    piece.style.width = `${(100 * rung.bytes) / most}%`;
    piece.style.background = `var(--${i + 1 === rungs.length ? 'accent' : 'model'})`;
    bar.append(piece);
    const saved = i === 0 ? 0 : rungs[i - 1].bytes - rung.bytes;
    return element('tr', {}, element('td', {}, rung.method), element('td', {class: 'number'}, formatBytes(rung.bytes)),
                   element('td', {class: 'number'}, i === 0 ? '' : formatBytes(saved)), element('td', {class: 'picture'}, bar),
                   element('td', {class: 'number'}, formatSeconds(rung.seconds)),
                   element('td', {class: 'number'}, `${(rung.seconds / rungs[0].seconds).toFixed(2)} times`));
  });
  byId('ladder-table').replaceChildren(element('thead', {}, head), element('tbody', {}, ...rows));
  const first = rungs[0].bytes;
  const last = rungs[rungs.length - 1].bytes;
  byId('ladder-note').textContent = `From ${formatBytes(first)} to ${formatBytes(last)}, ${(first / last).toFixed(1)} times less, one ` +
      'method after the other. Times are estimates, there to be compared with each other.';
  show('ladder');
}
