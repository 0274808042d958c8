// Elements. Text reaches the page through here, as text: nothing of a model, a file or a log is ever parsed as HTML.

function byId(id) {
  return document.getElementById(id);
}

// element('td', {class: 'x', title: 'y'}, 'text', otherElement)
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children); // strings become text nodes
  return made;
}

// `color` is the name of one in the style, or a color.
function swatch(color, kind) {
  const made = element('span', {class: 'swatch' + (kind ? ' ' + kind : ''), 'aria-hidden': 'true'});
  made.style[kind === 'rule' ? 'borderTopColor' : 'background'] = color.includes('(') ? color : `var(--${color})`;
  return made;
}

function legend(list, entries) {
  list.replaceChildren(...entries.map(([color, text, kind]) => element('li', {}, swatch(color, kind), text)));
}

// What a screen reader says. Not for every pixel that the pointer moves: the last of a burst.
let announcement = 0;
function announce(text) {
  clearTimeout(announcement);
  announcement = setTimeout(() => { byId('announcer').textContent = text; }, 150);
}

function show(id) {
  byId(id).hidden = false;
}
