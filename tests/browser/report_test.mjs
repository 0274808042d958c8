// The memory report in a browser. The page adds up, searches and points by itself; what it shows is compared with what the command
// says about the same plan. Run by scripts/test.sh browser.
import assert from 'node:assert/strict';
import {mkdirSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {after, before, test} from 'node:test';

import {Browser} from './browser.mjs';
import {aliveAt, dataOf, makeFolder, namesOf, snug, withData, writtenOut} from './pages.mjs';

const folder = makeFolder();
let browser;
before(async () => { browser = await Browser.launch(); });
after(async () => { await browser?.close(); });

// Opens a page, lets `look` see it, and holds it to what must be so everywhere.
async function onPage(file, look, options) {
  const page = await browser.newPage(options);
  await page.open(file);
  await look(page);
  assert.deepEqual(page.errors, [], 'errors on the console');
  assert.equal(page.requests.length, 1, `requests: ${page.requests}`);
  assert.ok(page.requests[0].startsWith('file://'));
  await page.close();
}

// Pixels of the chart's picture in the color of that name.
function pixelsOf(page, chart, color) {
  return page.evaluate((selector, name) => {
    const canvas = document.querySelector(`${selector} canvas`);
    const context = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
    const wanted = context.fillStyle; // #rrggbb
    const rgb = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
    const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) if (rgb.every((part, c) => data[i + c] === part) && data[i + 3] === 255) ++count;
    return count;
  }, chart, color);
}

const details = (page) => page.evaluate(() => {
  const host = document.querySelector('#details');
  const rows = [...host.querySelectorAll('#alive tr')].map((row) => [...row.cells].map((cell) => cell.title || cell.textContent));
  return {section: host.dataset.section, node: Number(host.dataset.node), bytes: Number(host.dataset.bytes), title: host.querySelector('h3').textContent, rows};
});

const inBytes = (count) => `${count.toLocaleString('en-US')} bytes`;

// What the details show must be what the timeline, written out and added up here, and the command's moments say.
async function checkDetails(page, timeline, moments) {
  const shown = await details(page);
  const alive = aliveAt(timeline, shown.section, shown.node);
  assert.equal(shown.bytes, alive.reduce((sum, entry) => sum + entry.bytes, 0));
  const section = moments.find((each) => each.section === shown.section);
  if (section) assert.equal(shown.bytes, section.live_bytes[shown.node]);
  const listed = shown.rows.slice(0, 12);
  listed.forEach(([name, bytes], i) => {
    assert.equal(bytes, inBytes(alive[i].bytes));
    assert.ok(alive.some((entry) => entry.name === name && entry.bytes === alive[i].bytes), name);
  });
  return shown;
}

// Every plan under the pointer is one of the JSON, with its bytes and its time, and this plan is among them.
async function checkFrontier(page, data) {
  for (const color of ['gaps', 'model', 'own']) assert.ok(await pixelsOf(page, '#frontier-chart', color) > 10, color);
  const selected = () => page.evaluate(() => ({...document.querySelector('#frontier-selected').dataset}));
  const first = await selected();
  assert.deepEqual([first.line, Number(first.bytes)], ['this plan', data.planned_peak_bytes]);
  const plans = {considered: data.considered, best: data.frontier, 'this plan': data.methods.slice(-1)};
  const box = await page.boxOf('#frontier-chart');
  const seen = new Set();
  for (const [x, y] of [[0.15, 0.8], [0.3, 0.75], [0.4, 0.3], [0.5, 0.7], [0.6, 0.5], [0.75, 0.7], [0.95, 0.8]]) {
    await page.move(box.left + x * box.width, box.top + y * box.height);
    const {line, bytes, seconds} = await selected();
    assert.ok(plans[line].some((plan) => plan.bytes === Number(bytes) && plan.seconds === Number(seconds)), `${line} ${bytes} ${seconds}`);
    seen.add(bytes);
  }
  assert.ok(seen.size > 2, `${[...seen]}`);
  // Keys go over the best plans and leave out those that were only considered.
  await page.evaluate(() => document.querySelector('#frontier-chart').focus());
  await page.press('Home');
  for (let i = 0; i < 3; ++i) {
    assert.notEqual((await selected()).line, 'considered');
    await page.press('ArrowRight');
  }
  await page.press('End');
  assert.equal(Number((await selected()).bytes), data.frontier[data.frontier.length - 1].bytes);
}

const models = {
  'small-cnn': ['small-cnn', '--batch', '20', '--threads', '2'],
  'wrn-28-2 in 24 MB': ['wrn-28-2', '--batch', '100', '--budget', '24MB', '--threads', '2'],
  'resnet-18': ['resnet-18', '--batch', '64', '--image-size', '64', '--threads', '2'],
};

Object.entries(models).forEach(([name, words], number) => {
  test(`${name}: every chart is drawn, and the pointer shows what the command says`, async () => {
    const file = join(folder, `model${number}.html`);
    snug('plan', ...words, '--html', file);
    const data = dataOf(file);
    const {moments} = JSON.parse(snug('profile', ...words, '--json'));
    await onPage(file, async (page) => {
      const sections = await page.evaluate(() => [...document.querySelectorAll('section')].filter((each) => !each.hidden).map((each) => each.id));
      assert.deepEqual(sections, ['step', 'where', ...(data.methods.length > 1 ? ['ladder'] : []), 'frontier']);
      assert.equal(await page.evaluate(() => document.querySelector('h1').textContent), words[0]);
      for (const chart of ['#memory-chart', '#arena-chart']) {
        for (const color of ['model', 'gradient', 'optimizer', 'activation']) {
          assert.ok(await pixelsOf(page, chart, color) > 100, `${color} in ${chart}`);
        }
      }
      // It begins at the fullest moment.
      const first = await checkDetails(page, writtenOut(data.timeline), moments);
      assert.deepEqual([first.section, first.node], [data.peak.section, data.peak.node]);

      const seen = new Set();
      for (const chart of ['#memory-chart', '#arena-chart']) {
        const box = await page.boxOf(chart);
        for (const share of [0.12, 0.3, 0.45, 0.6, 0.75, 0.93]) {
          await page.move(box.left + share * box.width, box.top + box.height / 2);
          const shown = await checkDetails(page, writtenOut(data.timeline), moments);
          seen.add(`${shown.section} ${shown.node}`);
        }
      }
      assert.ok(seen.size >= 6, `the pointer moved the cursor: ${[...seen]}`);

      // Classes and layers of the fullest moment, each to the byte.
      const bars = await page.evaluate(() => ['#class-bars', '#layer-bars'].map((host) =>
        [...document.querySelectorAll(`${host} .bar-row`)].map((row) => [row.querySelector('.name').textContent, row.querySelector('.figure').title])));
      for (const [title, bytes] of Object.entries(data.by_class)) assert.ok(bars[0].some(([t, b]) => t === title && b === inBytes(bytes)), title);
      await page.evaluate(() => document.querySelector('#all-layers').click());
      const layers = await page.evaluate(() => [...document.querySelectorAll('#layer-bars .figure')].map((figure) => parseInt(figure.title.replaceAll(',', ''), 10)));
      assert.equal(layers.reduce((a, b) => a + b, 0), data.planned_peak_bytes - data.gap_bytes);

      // Each rung with its bytes.
      const rungs = await page.evaluate(() => [...document.querySelectorAll('#ladder-table tbody tr')].map((row) => row.cells[1].title));
      if (data.methods.length > 1) assert.deepEqual(rungs, data.methods.map((rung) => inBytes(rung.bytes)));
      await checkFrontier(page, data);
    });
  });
});

test('keys move the cursor, and a screen reader is told', async () => {
  const data = dataOf(join(folder, 'model0.html'));
  await onPage(join(folder, 'model0.html'), async (page) => {
    for (const chart of ['#memory-chart', '#arena-chart']) {
      await page.evaluate((selector) => document.querySelector(selector).focus(), chart);
      await page.press('Home');
      assert.equal((await details(page)).node, 0);
      await page.press('ArrowRight');
      await page.press('ArrowRight');
      await page.press('ArrowLeft');
      const shown = await checkDetails(page, writtenOut(data.timeline), []);
      assert.equal(shown.node, 1);
      await page.until((text) => document.querySelector('#announcer').textContent.startsWith('node 1, ' + text), shown.title);
      await page.press('End');
      assert.equal((await details(page)).section, 'update');
      await page.press('p');
      assert.equal((await details(page)).node, data.peak.node);
    }
    // From one chart to the next with the tabulator.
    const order = [];
    await page.evaluate(() => document.querySelector('#span').focus());
    for (let i = 0; i < 9; ++i) {
      await page.press('Tab');
      order.push(await page.evaluate(() => document.activeElement.id));
    }
    assert.ok(order.indexOf('memory-chart') >= 0 && order.indexOf('memory-chart') < order.indexOf('search') &&
              order.indexOf('search') < order.indexOf('arena-chart'), `${order}`);
    // In the arena up and down go from value to value, by address.
    await page.evaluate(() => document.querySelector('#arena-chart').focus());
    await page.press('ArrowUp');
    const lowest = aliveAt(writtenOut(data.timeline), data.peak.section, data.peak.node).sort((a, b) => a.offset - b.offset);
    assert.equal(await page.evaluate(() => document.querySelector('#selected').dataset.name), lowest[0].name);
    await page.press('ArrowUp');
    assert.equal(await page.evaluate(() => document.querySelector('#selected').dataset.name), lowest[1].name);
  });
});

test('a value is found by its name, and a tile by pointing at it', async () => {
  const file = join(folder, 'model1.html');
  const data = dataOf(file);
  const [timeline, planned] = [writtenOut(data.timeline), data.planned_peak_bytes];
  const micro = timeline.sections.find((section) => section.section === 'micro');
  const names = namesOf(timeline, micro.values);
  await onPage(file, async (page) => {
    await page.evaluate(() => document.querySelector('#search').focus());
    await page.type('group2.block1.conv1');
    const expected = [...names, ...namesOf(timeline, timeline.states)].filter((name) => name.includes('group2.block1.conv1'));
    assert.equal(await page.evaluate(() => document.querySelector('#search-count').textContent), `${expected.length} found`);
    assert.ok(expected.length > 2);
    await page.press('Enter');
    const chosen = await page.evaluate(() => [document.querySelector('#selected').dataset.name, document.querySelector('#selected').textContent]);
    const index = names.indexOf(chosen[0]);
    assert.ok(chosen[0].includes('group2.block1.conv1'));
    const {begin, end, offset} = micro.values;
    assert.ok(chosen[1].includes(`at address ${offset[index].toLocaleString('en-US')}`), chosen[1]);
    assert.ok(chosen[1].includes(`alive in nodes ${begin[index]} to ${end[index] - 1}`), chosen[1]);
    await page.press('Escape');
    assert.equal(await page.evaluate(() => document.querySelector('#search').value), '');
    await page.type('no such value');
    assert.equal(await page.evaluate(() => document.querySelector('#search-count').textContent), '0 found');
    await page.press('Escape');

    // Under the pointer its name stands below the map, and goes with it.
    const map = await page.boxOf('#arena-chart');
    const reading = () => page.evaluate(() => document.querySelector('#selected').dataset.name ?? null);
    await page.move(map.left + map.width / 2, map.top + map.height - 40);
    assert.ok(namesOf(timeline, timeline.states).includes(await reading()));
    await page.move(map.left + map.width / 2, map.top - 60);
    assert.equal(await reading(), null);

    // Click through the map: the tile under the pointer is the value at that address, at the node that the details name.
    const box = await page.boxOf('#arena-chart');
    const [left, right, top, bottom] = [74, box.width - 12, 10, box.height - 34]; // the axes' margins
    let hits = 0;
    for (const [x, y] of [[0.2, 0.1], [0.4, 0.2], [0.5, 0.15], [0.6, 0.05], [0.3, 0.9], [0.7, 0.5], [0.95, 0.05]]) {
      await page.click(box.left + left + x * (right - left), box.top + top + y * (bottom - top));
      const address = (1 - y) * planned;
      const {section, node} = await details(page);
      const tiles = aliveAt(timeline, section, node).filter((entry) => entry.offset <= address && address < entry.offset + entry.bytes);
      const name = await page.evaluate(() => document.querySelector('#selected').dataset.name ?? null);
      if (tiles.length > 0) {
        assert.equal(name, tiles[0].name);
        ++hits;
      }
    }
    assert.ok(hits >= 3, `${hits} tiles were hit`);
  });
});

test('dragging zooms, a double click or 0 shows all again, evaluation can be looked at', async () => {
  const file = join(folder, 'model1.html');
  const timeline = writtenOut(dataOf(file).timeline);
  await onPage(file, async (page) => {
    const box = await page.boxOf('#memory-chart');
    const y = box.top + box.height / 2;
    await page.drag({x: box.left + 300, y}, {x: box.left + 360, y});
    await page.move(box.left + 76, y);
    const from = (await details(page)).node;
    await page.move(box.left + box.width - 14, y);
    const to = (await details(page)).node;
    assert.ok(from > 0 && to > from && to - from < 100, `${from} to ${to}`);
    await page.evaluate(() => document.querySelector('#memory-chart').focus());
    await page.press('0');
    await page.move(box.left + 76, y);
    assert.ok((await details(page)).node < from);

    await page.evaluate(() => document.querySelector('#only-transient').click());
    await page.settle();
    assert.equal(await pixelsOf(page, '#memory-chart', 'optimizer'), 0);
    assert.equal(await pixelsOf(page, '#arena-chart', 'optimizer'), 0);
    assert.ok(await pixelsOf(page, '#arena-chart', 'activation') > 1000);

    await page.evaluate(() => {
      const chooser = document.querySelector('#span');
      chooser.value = '1';
      chooser.dispatchEvent(new Event('change'));
    });
    await page.settle();
    assert.equal((await checkDetails(page, timeline, [])).section, 'eval');
  });
});

test('a run: its training is drawn from its metrics', async () => {
  const run = join(folder, 'run');
  snug('train', 'small-cnn', '--batch', '20', '--steps', '12', '--eval-every', '5', '--out', run, '--threads', '2');
  snug('report', run);
  const lines = readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  await onPage(join(run, 'report.html'), async (page) => {
    const charts = await page.evaluate(() => [...document.querySelectorAll('#training .chart')].map((chart) => chart.dataset.keys));
    for (const keys of ['loss test_loss', 'accuracy test_accuracy', 'learning_rate', 'images_per_second', 'measured_peak_bytes resident_bytes', 'process_overhead_bytes']) assert.ok(charts.includes(keys), `${charts}`);
    for (const keys of charts) {
      const box = await page.boxOf(`.chart[data-keys="${keys}"]`);
      for (const share of [0.3, 0.6, 0.9]) {
        await page.move(box.left + share * box.width, box.top + box.height / 2);
        const [step, value] = await page.evaluate((wanted) => {
          const {dataset} = document.querySelector(`.chart[data-keys="${wanted}"]`).nextElementSibling;
          return [Number(dataset.step), Number(dataset.value)];
        }, keys);
        assert.ok(lines.some((line) => line.step === step && keys.split(' ').some((key) => line[key] === value)), `${keys}: ${value} in step ${step}`);
      }
    }
    assert.ok(await pixelsOf(page, '.chart[data-keys="loss test_loss"]', 'model') > 20);
  });
});

test('whatever is in the metrics is drawn: loss scale, skipped steps, nonzeros of every layer', async () => {
  const run = join(folder, 'run');
  const metrics = join(folder, 'sparse.jsonl');
  const lines = [1, 2, 3].map((step) => ({step, loss: 3 - step / 2, loss_scale: 2 ** (8 + step), skipped_steps: step - 1,
                                          nonzeros: Object.fromEntries(Array.from({length: 12}, (_, i) => [`conv${i}`, 100 * i + step]))}));
  const original = readFileSync(join(run, 'metrics.jsonl'));
  writeFileSync(join(run, 'metrics.jsonl'), lines.map((line) => JSON.stringify(line) + '\n').join(''));
  snug('report', run, '--html', metrics + '.html');
  writeFileSync(join(run, 'metrics.jsonl'), original);
  await onPage(metrics + '.html', async (page) => {
    const titles = await page.evaluate(() => [...document.querySelectorAll('#training h3')].map((title) => title.textContent));
    assert.deepEqual(titles, ['Loss', 'Loss scale', 'Skipped steps', 'Nonzero weights by layer']);
    const last = (title) => page.evaluate((wanted) => {
      const panel = [...document.querySelectorAll('#training .panel')].find((each) => each.querySelector('h3').textContent === wanted);
      panel.querySelector('.chart').focus();
      return panel.querySelector('.reading').textContent;
    }, title);
    assert.equal(await last('Loss scale'), 'step 3: loss scale 2,048');
    assert.equal(await last('Nonzero weights by layer'), 'step 3: conv11 1,103');
    await page.press('Home');
    assert.equal(await last('Nonzero weights by layer'), 'step 1: conv0 1');
  });
});

test('what a run takes beside the arena stands at the head and is drawn, with what the driver of a GPU holds', async () => {
  const run = join(folder, 'run');
  const original = readFileSync(join(run, 'metrics.jsonl'));
  const pageOf = (name, lines) => {
    writeFileSync(join(run, 'metrics.jsonl'), lines.map((line) => JSON.stringify(line) + '\n').join(''));
    snug('report', run, '--html', join(folder, name));
    writeFileSync(join(run, 'metrics.jsonl'), original);
    return join(folder, name);
  };
  const card = (page) => page.evaluate(() => {
    const title = [...document.querySelectorAll('#summary dt')].find((each) => each.textContent === 'Beside the arena');
    return title ? title.nextElementSibling.textContent : null;
  });
  const lines = [1, 2].map((step) => ({step, process_overhead_bytes: step * 1e7, device_overhead_bytes: step * 1e8}));
  await onPage(pageOf('gpu.html', lines), async (page) => {
    assert.equal(await card(page), '220.00 MB200.00 MB held by the GPU’s driver, 20.00 MB resident in the process');
    assert.ok(await page.evaluate(() => document.querySelector('.chart[data-keys="process_overhead_bytes device_overhead_bytes"]')));
  });
  for (const line of lines) delete line.device_overhead_bytes;
  await onPage(pageOf('cpu.html', lines), async (page) => assert.equal(await card(page), '20.00 MBresident in the process'));
});

test('where a plan cannot be explained, the page says why', async () => {
  const data = dataOf(join(folder, 'model0.html'));
  for (const key of ['methods', 'frontier', 'considered']) delete data[key];
  data.not_explained = 'there is no GPU here';
  await onPage(withData(join(folder, 'model0.html'), join(folder, 'not_explained.html'), data), async (page) => {
    assert.ok((await page.evaluate(() => document.querySelector('#ladder').innerText)).includes('there is no GPU here'));
    assert.ok(await page.evaluate(() => document.querySelector('#frontier').hidden));
  });
});

test('a budget is marked on the frontier', async () => {
  await onPage(join(folder, 'model1.html'), async (page) => {
    assert.ok(await pixelsOf(page, '#frontier-chart', 'budget') > 10);
    assert.ok((await page.evaluate(() => document.querySelector('#frontier-legend').textContent)).includes('budget'));
  });
});

test('a sweep is drawn from what it measured', async () => {
  const file = join(folder, 'sweep.html');
  snug('sweep', 'small-cnn', '--batch', '40', '--threads', '2', '--points', '4', '--steps', '1', '--costs', 'none', '--html', file);
  const data = dataOf(file);
  await onPage(file, async (page) => {
    const sections = await page.evaluate(() => [...document.querySelectorAll('section')].filter((each) => !each.hidden).map((each) => each.id));
    assert.deepEqual(sections, ['frontier']);
    // On a busy machine what was measured lies far above the estimates and presses them flat: some may cover each other.
    for (const color of ['model', 'activation']) assert.ok(await pixelsOf(page, '#frontier-chart', color) > 10, color);
    const lines = await page.evaluate(() => [...document.querySelectorAll('#frontier-legend li')].map((entry) => entry.textContent));
    assert.deepEqual(lines, ['considered', 'best for its bytes', 'measured']);
    const rows = await page.evaluate(() => [...document.querySelectorAll('#sweep-table tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows.map((row) => row[1]), [data.plain, ...data.points].map((point) => point.images_per_second.toFixed(1)));
    // Every measured plan is found by the keys, with its bytes and its time.
    await page.evaluate(() => document.querySelector('#frontier-chart').focus());
    await page.press('Home');
    const measured = new Map();
    for (let i = 0; i < 60; ++i) {
      const {line, bytes, seconds} = await page.evaluate(() => ({...document.querySelector('#frontier-selected').dataset}));
      if (line === 'measured') measured.set(Number(bytes), Number(seconds));
      await page.press('ArrowRight');
    }
    for (const point of data.points) assert.equal(measured.get(point.planned_peak_bytes), point.step_seconds);
  });
});

test('names that look like HTML are shown as text', async () => {
  const image = '<img src=x onerror="document.title=\'run\'">';
  const script = '</script><script>document.title=\'run\'</script>';
  // Through the command: a folder and metrics with such names. A slash makes two folders of one name.
  const run = join(folder, `a ${image}`, `<`, `script>`);
  mkdirSync(join(run, '..'), {recursive: true});
  snug('train', 'small-cnn', '--batch', '20', '--steps', '2', '--out', run, '--threads', '2');
  writeFileSync(join(run, 'metrics.jsonl'), JSON.stringify({step: 1, [image]: 1, [script]: 2}) + '\n');
  snug('report', run, '--html', join(folder, 'hostile_run.html'));
  // Through the page's data: what a model's author may call things.
  const data = dataOf(join(folder, 'model0.html'));
  data.model = data.checkpoint = script;
  data.timeline.words = data.timeline.words.map((word) => word + image + script);
  data.timeline.ops = data.timeline.ops.map((op) => op + script);
  data.methods[0].method = image;
  data.frontier = [{bytes: 1e6, seconds: 1, checkpoint: image}, {bytes: 2e6, seconds: 0.5, checkpoint: script}];
  const changed = withData(join(folder, 'model0.html'), join(folder, 'hostile_plan.html'), data);

  for (const file of [join(folder, 'hostile_run.html'), changed]) {
    await onPage(file, async (page) => {
      await page.evaluate(() => document.querySelector('#search').focus());
      await page.type('img');
      await page.press('Enter');
      const found = await page.evaluate(() => ({
        images: document.querySelectorAll('img').length,
        scripts: document.querySelectorAll('script').length,
        title: document.title,
        text: document.body.innerText,
      }));
      assert.equal(found.images, 0);
      assert.equal(found.scripts, 2); // the data and the page's own
      assert.notEqual(found.title, 'run');
      assert.ok(found.text.includes(image), 'the name is to be read');
      assert.ok(found.text.includes('script>'));
    });
  }
  // Were such text parsed after all, the page's policy would still run nothing of it.
  const page = await browser.newPage();
  await page.open(changed);
  await page.evaluate((text) => { document.querySelector('#footer').innerHTML = text; }, image);
  await page.settle();
  assert.notEqual(await page.evaluate(() => document.title), 'run');
  assert.ok(page.errors.some((error) => error.includes('Content Security Policy')), `${page.errors}`);
  await page.close();
});

test('dark and on a phone: nothing is wider than the screen', async () => {
  const backgrounds = [];
  for (const dark of [false, true]) {
    for (const file of ['model1.html', join('run', 'report.html'), 'sweep.html']) {
      await onPage(join(folder, file), async (page) => {
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 390);
        backgrounds.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
        if (file !== 'sweep.html') assert.ok(await pixelsOf(page, '#memory-chart', 'activation') > 100);
      }, {width: 390, height: 844, phone: true, dark});
    }
  }
  assert.equal(new Set(backgrounds).size, 2);
});

test('a program of 20,000 nodes opens, and moving over it stays quick', async (context) => {
  const file = join(folder, 'large.html');
  snug('plan', 'preresnet-1001', '--batch', '100', '--checkpoint', 'log', '--threads', '2', '--html', file);
  const {size} = statSync(file);
  assert.ok(size < 2e6, `the page has ${size} bytes`);
  const timeline = writtenOut(dataOf(file).timeline);
  await onPage(file, async (page) => {
    const nodes = timeline.sections.filter((section) => section.runs > 0).reduce((sum, section) => sum + section.nodes.op.length, 0);
    const ready = Number(await page.evaluate(() => document.documentElement.dataset.ready));
    const box = await page.boxOf('#memory-chart');
    const started = Date.now();
    const moves = 40;
    for (let i = 0; i < moves; ++i) await page.move(box.left + 100 + 10 * i, box.top + 60);
    context.diagnostic(`${nodes} nodes in ${(size / 1e6).toFixed(2)} MB: drawn after ${ready} ms; ` +
                       `${((Date.now() - started) / moves).toFixed(1)} ms a move of the pointer, two frames waited for`);
    await checkDetails(page, timeline, []);
    await page.evaluate(() => document.querySelector('#search').focus());
    await page.type('group2.block100.conv1');
    await page.press('Enter');
    assert.ok((await page.evaluate(() => document.querySelector('#selected').dataset.name)).includes('group2.block100.conv1'));
  });
});
