#!/usr/bin/env node
// Takes the pictures of the memory report that README.md and the documentation show, into docs/images/.
// usage: scripts/setup.sh browser && make build && scripts/screenshots.mjs
import {mkdirSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

import {Browser} from '../tests/browser/browser.mjs';
import {makeFolder, snug} from '../tests/browser/pages.mjs';

const images = join(dirname(fileURLToPath(import.meta.url)), '..', 'docs', 'images');
const folder = makeFolder();

const small = ['--microbatch', '10', '--checkpoint', 'residual-3*', '--budget', '24.2MB'];
const wrn = ['plan', 'wrn-28-2', '--batch', '100', '--threads', '2'];
const shots = [
  {name: 'report_plain', words: wrn},
  {name: 'report_small', words: [...wrn, ...small]},
  {name: 'report_small_dark', words: [...wrn, ...small], dark: true, onlyWhatChanges: true},
  {name: 'report_where', words: [...wrn, ...small], around: '#where'},
  {name: 'report_ladder', words: [...wrn, ...small], around: '#ladder'},
];

mkdirSync(images, {recursive: true});
const browser = await Browser.launch();
for (const {name, words, around = null, dark = false, onlyWhatChanges = false} of shots) {
  const file = join(folder, `${name}.html`);
  snug(...words, '--html', file);
  const page = await browser.newPage({width: 1200, height: 1090, dark});
  await page.open(file);
  if (onlyWhatChanges) await page.evaluate(() => document.querySelector('#only-transient').click());
  await page.settle();
  await page.screenshot(join(images, `${name}.png`), {around});
  await page.close();
  console.log(`docs/images/${name}.png`);
}
await browser.close();
