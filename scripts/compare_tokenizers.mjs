#!/usr/bin/env node
// Compares Snug's tokens and merges with those of Hugging Face's `tokenizers`, as its npm package has it.
// usage: in a folder where `npm install tokenizers` was done: .../scripts/compare_tokenizers.mjs SNUG TEXT [TOKENIZER...]
//
// TEXT is a file in UTF-8; every TOKENIZER is what `snug data tokens --tokenizer` takes, and must give the same tokens in both.
// Without one, both learn from TEXT, without its empty lines: the merges must be the same, and then the tokens. Characters that are
// newer than Snug's tables (scripts/unicode_ranges.py) may be cut otherwise.
import {execFileSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const {BPE, Tokenizer, byteLevelPreTokenizer} = createRequire(join(process.cwd(), 'here.js'))('tokenizers');
const [program, text, ...given] = process.argv.slice(2);
if (!text) {
  console.error('usage: scripts/compare_tokenizers.mjs SNUG TEXT [TOKENIZER...]');
  process.exit(2);
}
const snug = (...words) => execFileSync(program, ['data', ...words], {encoding: 'utf8', maxBuffer: 2 ** 32});
let failures = 0;

function expectSame(what, ours, theirs) {
  const size = Math.max(ours.length, theirs.length);
  let at = 0;
  while (at < size && ours[at] === theirs[at]) ++at;
  if (at === size) return console.log(`${what}: the same ${size}`);
  ++failures;
  console.log(`${what}: ${ours.length} and ${theirs.length} differ from number ${at} on: ${ours.slice(at, at + 5)} and ${theirs.slice(at, at + 5)}`);
}

async function load(path) {
  if (!statSync(path).isDirectory()) return Tokenizer.fromFile(path);
  if (existsSync(join(path, 'tokenizer.json'))) return Tokenizer.fromFile(join(path, 'tokenizer.json'));
  const [vocab, merges] = existsSync(join(path, 'vocab.json')) ? ['vocab.json', 'merges.txt'] : ['encoder.json', 'vocab.bpe'];
  const tokenizer = new Tokenizer(await BPE.fromFile(join(path, vocab), join(path, merges)));
  tokenizer.setPreTokenizer(byteLevelPreTokenizer(false, true));
  tokenizer.addSpecialTokens(['<|endoftext|>']);
  return tokenizer;
}

async function compareTokens(tokenizer) {
  const other = await load(tokenizer);
  const theirs = (await other.encode(readFileSync(text, 'utf8'), null, {addSpecialTokens: false})).getIds();
  const ours = snug('tokens', text, '--tokenizer', tokenizer).trim().split('\n').map(Number);
  expectSame(`tokens of ${tokenizer}`, ours, Array.from(theirs));
}

async function compareLearning(folder) {
  // What is learned from is the training part of the data: here the whole text.
  mkdirSync(join(folder, 'data'));
  const learned = join(folder, 'data', 'train.txt');
  // The other library learns from each line by itself.
  writeFileSync(learned, readFileSync(text, 'utf8').replace(/\s*\n\s*/g, '\n'));
  writeFileSync(join(folder, 'data', 'test.txt'), 'test');
  snug('learn', join(folder, 'data'), '--vocabulary', '20000', '--out', folder);
  const spelled = (merge) => (typeof merge === 'string' ? merge : merge.join(' '));
  const ours = JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8')).model.merges.map(spelled);
  const other = new Tokenizer(BPE.empty());
  other.setPreTokenizer(byteLevelPreTokenizer(false, true));
  other.train([learned]);
  other.save(join(folder, 'theirs.json'));
  // Their vocabulary is larger, and goes on with pairs that occur once.
  const theirs = JSON.parse(readFileSync(join(folder, 'theirs.json'), 'utf8')).model.merges.map(spelled);
  expectSame('merges', ours, theirs.slice(0, ours.length));
  await compareTokens(join(folder, 'tokenizer.json'));
}

const folder = mkdtempSync(join(tmpdir(), 'tokenizers-'));
try {
  for (const tokenizer of given) await compareTokens(tokenizer);
  if (given.length === 0) await compareLearning(folder);
} finally {
  rmSync(folder, {recursive: true});
}
process.exit(failures === 0 ? 0 : 1);
