// Values by name: all that match are shown in the arena, the chosen one with its life.

const kShownMatches = 60;

class Search {
  constructor(view) {
    this.view = view;
    this.input = byId('search');
    this.list = byId('matches');
    this.input.addEventListener('input', () => this.find());
    this.input.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.clear();
      if (event.key === 'Enter' && this.list.firstChild) this.list.querySelector('button').click();
      if (event.key === 'ArrowDown' && this.list.firstChild) this.list.querySelector('button').focus();
      else return;
      event.preventDefault();
    });
    this.list.addEventListener('keydown', (event) => {
      const buttons = [...this.list.querySelectorAll('button')];
      const at = buttons.indexOf(document.activeElement);
      if (event.key === 'ArrowDown' && at + 1 < buttons.length) buttons[at + 1].focus();
      else if (event.key === 'ArrowUp') (at > 0 ? buttons[at - 1] : this.input).focus();
      else return;
      event.preventDefault();
    });
    view.onChange((what) => {
      if (what === 'span' && this.input.value) this.find();
      if (what === 'chosen') this.mark();
    });
  }

  clear() {
    this.input.value = '';
    this.find();
  }

  mark() {
    for (const button of this.list.querySelectorAll('button')) {
      button.setAttribute('aria-pressed', String(Number(button.dataset.index) === this.view.chosen));
    }
  }

  find() {
    const {view} = this;
    const wanted = this.input.value.trim().toLowerCase();
    const {values, states} = view.span;
    const found = [];
    if (wanted) {
      for (let i = 0; i < values.count; ++i) if (values.names[i].toLowerCase().includes(wanted)) found.push(i);
      states.names.forEach((name, i) => { if (name.toLowerCase().includes(wanted)) found.push(-1 - i); });
    }
    view.matches = wanted ? found : null;
    view.chosen = null;
    view.changed('chosen');
    byId('search-count').textContent = wanted ? `${formatCount(found.length)} found` : '';
    this.list.hidden = found.length === 0;
    this.list.replaceChildren(...found.slice(0, kShownMatches).map((index) => this.entry(view.span.valueOf(index))));
    if (wanted) announce(`${formatCount(found.length)} values found`);
  }

  entry(value) {
    const life = value.index < 0 ? 'always' : formatLife(value);
    const button = element('button', {type: 'button', 'aria-pressed': 'false'}, swatch(value.className),
                           element('span', {class: 'name'}, value.name), element('span', {class: 'life'}, life),
                           element('span', {}, formatBytes(value.bytes)));
    button.dataset.index = String(value.index);
    button.addEventListener('click', () => {
      this.view.choose(value.index);
      if (value.index >= 0) this.view.showLife(value);
    });
    return element('li', {}, button);
  }
}
