#!/usr/bin/env node
// Takes the pictures of the memory report that README.md and docs/report.md show, into docs/images/.
// usage: scripts/setup.sh browser && make build && scripts/screenshots.mjs [--sweep FILE [--costs FILE]]
//
// The plans are those of the fixed table of costs, so that every machine makes the same pictures. A sweep belongs to a machine: it
// is drawn from FILE, which 'snug sweep wrn-28-2 --batch 100 --json' printed on a quiet one; without FILE its pictures stay as they
// are. Where FILE has no frontier, it is searched for anew, by the costs of --costs.
import {mkdirSync, readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

import {Browser} from '../tests/browser/browser.mjs';
import {makeFolder, snug, withData} from '../tests/browser/pages.mjs';

const images = join(dirname(fileURLToPath(import.meta.url)), '..', 'docs', 'images');
const folder = makeFolder();

const given = {};
for (let i = 2; i < process.argv.length; i += 2) {
  const flag = process.argv[i];
  if (!['--sweep', '--costs'].includes(flag) || i + 1 === process.argv.length) {
    console.error('usage: scripts/screenshots.mjs [--sweep FILE [--costs FILE]]');
    process.exit(2);
  }
  given[flag.slice(2)] = process.argv[i + 1];
}

// Every page once, however many pictures are taken of it.
const wrn = ['plan', 'wrn-28-2', '--batch', '100', '--threads', '2'];
const pages = {plain: join(folder, 'plain.html'), small: join(folder, 'small.html')};
snug(...wrn, '--costs', 'none', '--html', pages.plain);
snug(...wrn, '--costs', 'none', '--budget', '24MB', '--html', pages.small);

function sweepPage() {
  const sweep = JSON.parse(readFileSync(given.sweep, 'utf8'));
  if (!sweep.frontier) {
    const words = ['plan', sweep.model, '--batch', sweep.batch, '--threads', sweep.threads, '--costs', given.costs || 'none', '--explain', '--json'];
    const {frontier, considered} = JSON.parse(snug(...words.map(String)));
    Object.assign(sweep, {frontier, considered});
  }
  return withData(pages.plain, join(folder, 'sweep.html'), sweep);
}
if (given.sweep) pages.sweep = sweepPage();

const shots = [
  {name: 'report_plain', of: 'plain', height: 1110},
  {name: 'report_small', of: 'small', height: 1110},
  {name: 'report_small_dark', of: 'small', height: 1110, dark: true, onlyWhatChanges: true},
  {name: 'report_life', of: 'small', around: '#step', search: 'group2.block2.add'},
  {name: 'report_where', of: 'small', around: '#where'},
  {name: 'report_ladder', of: 'small', around: '#ladder'},
  {name: 'report_frontier', of: 'small', around: '#frontier'},
  {name: 'report_sweep', of: 'sweep', height: 760},
  {name: 'report_phone', of: 'small', phone: true, dark: true, height: 844},
];

mkdirSync(images, {recursive: true});
const browser = await Browser.launch();
for (const {name, of, around = null, height = 900, dark = false, phone = false, onlyWhatChanges = false, search = null} of shots) {
  if (!pages[of]) continue;
  const page = await browser.newPage(phone ? {width: 390, height, dark, phone} : {width: 1200, height, dark});
  await page.open(pages[of]);
  if (onlyWhatChanges) await page.evaluate(() => document.querySelector('#only-transient').click());
  if (search) {
    await page.evaluate(() => document.querySelector('#search').focus());
    await page.type(search);
    await page.press('Enter');
    await page.evaluate(() => document.activeElement.blur());
  }
  await page.settle();
  await page.screenshot(join(images, `${name}.png`), {around});
  await page.close();
  console.log(`docs/images/${name}.png`);
}
await browser.close();
