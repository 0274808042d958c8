// Numbers as people read them; bytes as the command prints them.

function formatBytes(count) {
  const size = Math.abs(count);
  if (size < 1e3) return count + ' B';
  if (size < 1e6) return (count / 1e3).toFixed(2) + ' KB';
  if (size < 1e9) return (count / 1e6).toFixed(2) + ' MB';
  return (count / 1e9).toFixed(2) + ' GB';
}

// "images" of a record with images_per_second: the model's loss says what speeds are counted in.
function unitOfSpeed(record) {
  const end = '_per_second';
  const key = Object.keys(record).find((name) => name.endsWith(end));
  return key ? key.slice(0, -end.length) : 'examples';
}

function formatCount(count) {
  return count.toLocaleString('en-US');
}

function formatFlops(count) {
  const units = ['', ' K', ' M', ' G', ' T', ' P', ' E'];
  let unit = 0;
  while (count >= 999.995 && unit + 1 < units.length) {
    count /= 1000;
    ++unit;
  }
  return unit === 0 ? String(count) : count.toFixed(2) + units[unit];
}

function formatSeconds(seconds) {
  if (seconds >= 100) return seconds.toFixed(0) + ' s';
  if (seconds >= 1) return seconds.toFixed(2) + ' s';
  if (seconds >= 1e-3) return (seconds * 1e3).toPrecision(3) + ' ms';
  return (seconds * 1e6).toPrecision(3) + ' µs';
}

function formatNumber(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return formatCount(value);
  if (size >= 1e5 || size < 1e-4) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

function formatPercent(share) {
  return (100 * share).toFixed(share < 0.1 || (share > 0.99 && share < 1) ? 1 : 0) + '%';
}

// "+12.5%"
function formatChange(share) {
  return `${share < 0 ? '−' : '+'}${(100 * Math.abs(share)).toFixed(1)}%`;
}

// The nodes while which a value is alive.
function formatLife({begin, end}) {
  return end - begin <= 1 ? `node ${formatCount(begin)}` : `nodes ${formatCount(begin)} to ${formatCount(end - 1)}`;
}

// A strategy as the command names it, its limit readable: optimal:6700000 is "optimal within 6.70 MB". A limit below what is
// possible (optimal:1) asks for the least.
function formatStrategy(strategy) {
  const limited = /^(\w+):(\d+)$/.exec(strategy);
  if (!limited) return strategy;
  return Number(limited[2]) < 1000 ? `${limited[1]}, as little as possible` : `${limited[1]} within ${formatBytes(Number(limited[2]))}`;
}

function formatCheckpoint(strategy) {
  return strategy === 'none' ? 'nothing recomputed' : 'checkpointing ' + formatStrategy(strategy);
}

// A rung of the ladder: "checkpoint optimal:6700000" reads as checkpoints do elsewhere.
function formatMethod(method) {
  const checkpoint = /^checkpoint (.*)$/s.exec(method);
  return checkpoint ? formatCheckpoint(checkpoint[1]) : method;
}
