// Beside the charts: the node under the cursor and what is alive while it runs, largest first.

const kListed = 12;

class Details {
  constructor(view) {
    this.view = view;
    this.host = byId('details');
    view.onChange((what) => { if (what !== 'chosen') this.wait(what); });
  }

  wait(what) {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.show(what);
    });
  }

  row(kind, first, bytes, color) {
    const name = element('td', color ? {class: 'colored'} : {}, first);
    if (color) name.prepend(swatch(color));
    return element('tr', kind ? {class: kind} : {}, name, element('td', {title: `${formatCount(bytes)} bytes`}, formatBytes(bytes)));
  }

  show(what) {
    const {view, host} = this;
    const {span, cursor} = view;
    const section = span.sectionOf(cursor);
    const runs = section.runs > 1 ? `, which runs ${section.runs} times` : '';
    const total = span.totals[cursor];
    const classes = element('table', {}, this.row('total', 'Alive while it runs', total));
    for (const name of kStackOrder) {
      const c = span.classes.indexOf(name);
      if (c >= 0 && span.byClass[c][cursor] > 0) classes.append(this.row('', name, span.byClass[c][cursor], name));
    }
    const {found, rest, restBytes} = span.largest(cursor, kListed);
    const largest = element('table', {id: 'alive'});
    for (const value of found) largest.append(this.row('', value.name, value.bytes, value.className));
    if (rest > 0) largest.append(this.row('rest', `${formatCount(rest)} more`, restBytes));
    const title = span.describeNode(cursor);
    const where = `node ${formatCount(cursor - section.first)} of section ${section.name}${runs}`;
    host.replaceChildren(element('h3', {}, title), element('p', {class: 'where'}, where), classes, element('h4', {}, 'Largest first'), largest);
    host.dataset.node = String(cursor - section.first);
    host.dataset.section = section.name;
    host.dataset.bytes = String(total);
    if (what === 'cursor') {
      const first = found.length > 0 ? `; largest ${found[0].name}, ${formatBytes(found[0].bytes)}` : '';
      announce(`node ${cursor - section.first}, ${title}: ${formatBytes(total)} alive${first}`);
    }
  }
}
