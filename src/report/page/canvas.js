// A chart's drawing surface: the picture below, and above it what moves with the pointer, so that moving redraws only that.

const kMargin = {left: 74, right: 12, top: 10, bottom: 34};
const kNarrow = 480; // of a chart, in pixels: less room is left for the labels of the axis

function colorOf(name) {
  if (name.includes('(')) return name; // a color itself, such as hsl(...)
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

// `draw(surface)` makes the picture, `drawOver(surface)` what lies above it.
class Surface {
  constructor(host, label, draw, drawOver, margin) {
    this.host = host;
    this.margin = {...kMargin, ...margin};
    this.draw = draw;
    this.drawOver = drawOver;
    this.layers = [0, 1].map(() => element('canvas', {'aria-hidden': 'true'}));
    host.append(...this.layers);
    host.tabIndex = 0;
    host.setAttribute('role', 'application');
    host.setAttribute('aria-label', label);
    this.waiting = null;
    new ResizeObserver(() => this.redraw()).observe(host);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  get left() { return this.host.clientWidth < kNarrow ? Math.min(this.margin.left, 58) : this.margin.left; }
  get top() { return this.margin.top; }
  get right() { return this.host.clientWidth - this.margin.right; }
  get bottom() { return this.host.clientHeight - this.margin.bottom; }

  // Once a frame, however often it is asked for.
  redraw() { this.wait('all'); }
  redrawOver() { this.wait('over'); }
  wait(what) {
    if (this.waiting === null) {
      requestAnimationFrame(() => {
        const all = this.waiting === 'all';
        this.waiting = null;
        if (this.host.clientWidth === 0) return;
        if (all) this.paint(0, this.draw);
        this.paint(1, this.drawOver);
        this.host.dataset.drawn = String(Number(this.host.dataset.drawn || 0) + 1);
      });
    }
    if (this.waiting !== 'all') this.waiting = what;
  }

  paint(layer, draw) {
    const canvas = this.layers[layer];
    const scale = devicePixelRatio || 1;
    const width = Math.round(this.host.clientWidth * scale);
    const height = Math.round(this.host.clientHeight * scale);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.host.clientWidth, this.host.clientHeight);
    context.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    draw(context, this);
  }

  // The pointer's place in the host's own coordinates.
  pointOf(event) {
    const box = this.host.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }
}

// Round steps of 1, 2 or 5 times a power of ten, about `count` of them between the two.
function ticksBetween(low, high, count) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const [, step] = [1, 2, 5, 10].map((f) => [Math.abs(Math.log((f * power) / raw)), f * power]).sort((a, b) => a[0] - b[0])[0];
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

// All ticks of an axis in the unit of the largest: 0, 50 MB, 100 MB.
function formatByteTick(value, largest) {
  if (value === 0) return '0';
  const [unit, name] = largest >= 1e9 ? [1e9, 'GB'] : largest >= 1e6 ? [1e6, 'MB'] : largest >= 1e3 ? [1e3, 'KB'] : [1, 'B'];
  return String(Number((value / unit).toPrecision(4))) + ' ' + name;
}

// Lines across, with their labels at the left.
function drawYAxis(context, surface, ticks, toY, label) {
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  context.lineWidth = 1;
  for (const tick of ticks) {
    const y = Math.round(toY(tick)) + 0.5;
    context.strokeStyle = colorOf('grid');
    context.beginPath();
    context.moveTo(surface.left, y);
    context.lineTo(surface.right, y);
    context.stroke();
    context.fillStyle = colorOf('faint');
    context.fillText(label(tick), surface.left - 8, y);
  }
}

// Labels below, left out where they would touch.
function drawXLabels(context, surface, ticks, toX, label, y) {
  context.textBaseline = 'top';
  context.fillStyle = colorOf('faint');
  let free = -Infinity;
  for (const tick of ticks) {
    const text = label(tick);
    const width = context.measureText(text).width;
    const at = Math.min(Math.max(toX(tick), surface.left + width / 2), surface.right - width / 2);
    if (at - width / 2 < free) continue;
    context.textAlign = 'center';
    context.fillText(text, at, y);
    free = at + width / 2 + 10;
  }
}

function drawRule(context, surface, y, color, text, dashed) {
  const at = Math.round(y) + 0.5;
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  context.setLineDash(dashed ? [6, 4] : []);
  context.beginPath();
  context.moveTo(surface.left, at);
  context.lineTo(surface.right, at);
  context.stroke();
  context.setLineDash([]);
  if (!text) return;
  context.textAlign = 'right';
  context.textBaseline = 'bottom';
  const width = context.measureText(text).width;
  context.fillStyle = colorOf('card');
  context.globalAlpha = 0.8;
  context.fillRect(surface.right - width - 8, at - 17, width + 8, 15);
  context.globalAlpha = 1;
  context.fillStyle = color;
  context.fillText(text, surface.right - 4, at - 2);
}

// Draws only inside the axes.
function clipped(context, surface, draw) {
  context.save();
  context.beginPath();
  context.rect(surface.left, surface.top, surface.right - surface.left, surface.bottom - surface.top);
  context.clip();
  draw();
  context.restore();
}

function drawCursor(context, surface, x) {
  context.strokeStyle = colorOf('cursor');
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, surface.top);
  context.lineTo(Math.round(x) + 0.5, surface.bottom);
  context.stroke();
}
