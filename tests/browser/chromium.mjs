// Chromium, driven over its DevTools protocol through a pair of pipes: all that the tests and the screenshots need of a browser,
// with Node alone. Messages are JSON, each ended by a zero byte.
import {spawn} from 'node:child_process';
import {existsSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

const kNames = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export class Browser {
  static async launch() {
    const program = process.env.CHROMIUM || kNames.find((name) => existsSync(name));
    if (!program) throw new Error('no Chromium is here; install it (scripts/setup.sh browser), or name it in CHROMIUM');
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), 'snug-browser-'));
    const flags = ['--headless=new', '--remote-debugging-pipe', `--user-data-dir=${browser.profile}`, '--no-first-run', '--disable-gpu',
                   '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update', '--disable-sync',
                   '--disable-extensions', '--disable-default-apps', '--hide-scrollbars', '--mute-audio', '--font-render-hinting=none'];
    if (process.getuid() === 0) flags.push('--no-sandbox'); // Chromium refuses to be root with it
    browser.process = spawn(program, flags, {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    [browser.to, browser.from] = [browser.process.stdio[3], browser.process.stdio[4]];
    browser.to.on('error', () => {}); // the exit below says it
    browser.process.on('exit', (code) => browser.fail(new Error(`Chromium ended with code ${code}`)));
    browser.process.on('error', (error) => browser.fail(error));
    let rest = '';
    browser.from.setEncoding('utf8');
    browser.from.on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      for (const message of messages) browser.receive(JSON.parse(message));
    });
    return browser;
  }

  constructor() {
    this.next = 1;
    this.waiting = new Map();
    this.pages = new Map();
  }

  fail(error) {
    for (const {reject} of this.waiting.values()) reject(error);
    this.waiting.clear();
    this.ended = error;
  }

  receive(message) {
    if (message.id === undefined) return this.pages.get(message.sessionId)?.onEvent(message.method, message.params);
    const waiting = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) waiting?.reject(new Error(`${waiting.method}: ${message.error.message}`));
    else waiting?.resolve(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    if (this.ended) return Promise.reject(this.ended);
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, {resolve, reject, method});
      this.to.write(JSON.stringify({id, method, params, sessionId}) + '\0');
    });
  }

  // A page of this size; `dark` and `phone` as a user would have them.
  async newPage({width = 1280, height = 900, scale = 1, dark = false, phone = false} = {}) {
    const {targetId} = await this.send('Target.createTarget', {url: 'about:blank'});
    const {sessionId} = await this.send('Target.attachToTarget', {targetId, flatten: true});
    const page = new Page(this, sessionId, targetId);
    this.pages.set(sessionId, page);
    for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await page.send(`${domain}.enable`);
    await page.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: scale, mobile: phone});
    await page.send('Emulation.setEmulatedMedia', {features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
    return page;
  }

  async close() {
    const gone = new Promise((resolve) => this.process.once('exit', resolve));
    if (!this.ended) {
      this.send('Browser.close').catch(() => {});
      await gone;
    }
    rmSync(this.profile, {recursive: true, force: true, maxRetries: 5});
  }
}

class Page {
  constructor(browser, session, target) {
    Object.assign(this, {browser, session, target});
    this.errors = [];   // exceptions, console.error, what a policy refused
    this.requests = []; // addresses
    this.listeners = new Map();
  }

  send(method, params) { return this.browser.send(method, params, this.session); }

  onEvent(method, params) {
    if (method === 'Runtime.exceptionThrown') this.errors.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
      this.errors.push(params.args.map((argument) => argument.value ?? argument.description).join(' '));
    }
    if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) this.errors.push(params.entry.text);
    if (method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
    if (method === 'Page.javascriptDialogOpening') this.errors.push(`a dialog was opened: ${params.message}`);
    this.listeners.get(method)?.(params);
  }

  once(method) {
    return new Promise((resolve) => this.listeners.set(method, resolve));
  }

  // Opens a file and waits until its charts are drawn.
  async open(file) {
    const loaded = this.once('Page.loadEventFired');
    await this.send('Page.navigate', {url: pathToFileURL(file).href});
    await loaded;
    await this.until(() => document.documentElement.dataset.ready !== undefined);
  }

  // What a function gives in the page; it sees its arguments and nothing else from here.
  async evaluate(code, ...given) {
    const expression = `(${code})(...${JSON.stringify(given)})`;
    const {result, exceptionDetails} = await this.send('Runtime.evaluate', {expression, returnByValue: true, awaitPromise: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }

  // Waits until a function gives something true.
  async until(code, ...given) {
    const end = Date.now() + 60000;
    for (;;) {
      const result = await this.evaluate(code, ...given);
      if (result) return result;
      if (Date.now() > end) throw new Error(`this did not come true within a minute: ${code}`);
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
  }

  // After the next frames: whatever an event led to is drawn.
  settle() {
    return this.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true)))));
  }

  // Where an element is, scrolled into sight.
  boxOf(selector) {
    return this.evaluate((wanted) => {
      const element = document.querySelector(wanted);
      element.scrollIntoView({block: 'center'});
      const {left, top, width, height} = element.getBoundingClientRect();
      return {left, top, width, height};
    }, selector);
  }

  async move(x, y) {
    await this.send('Input.dispatchMouseEvent', {type: 'mouseMoved', x, y});
    await this.settle();
  }

  async click(x, y) {
    await this.send('Input.dispatchMouseEvent', {type: 'mouseMoved', x, y});
    await this.send('Input.dispatchMouseEvent', {type: 'mousePressed', x, y, button: 'left', clickCount: 1});
    await this.send('Input.dispatchMouseEvent', {type: 'mouseReleased', x, y, button: 'left', clickCount: 1});
    await this.settle();
  }

  async drag(from, to) {
    await this.send('Input.dispatchMouseEvent', {type: 'mouseMoved', ...from});
    await this.send('Input.dispatchMouseEvent', {type: 'mousePressed', ...from, button: 'left', clickCount: 1});
    await this.send('Input.dispatchMouseEvent', {type: 'mouseMoved', ...to, button: 'left', buttons: 1});
    await this.send('Input.dispatchMouseEvent', {type: 'mouseReleased', ...to, button: 'left', clickCount: 1});
    await this.settle();
  }

  async press(key) {
    const text = key.length === 1 ? key : key === 'Enter' ? '\r' : undefined;
    await this.send('Input.dispatchKeyEvent', {type: text ? 'keyDown' : 'rawKeyDown', key, code: key, text, windowsVirtualKeyCode: kKeys[key]});
    await this.send('Input.dispatchKeyEvent', {type: 'keyUp', key, code: key, windowsVirtualKeyCode: kKeys[key]});
    await this.settle();
  }

  async type(text) {
    await this.send('Input.insertText', {text});
    await this.settle();
  }

  // A PNG of the page: the whole of it, what is on the screen, or what lies around an element.
  async screenshot(file, {whole = false, around = null} = {}) {
    const clip = around && await this.evaluate((selector) => {
      const {left, top, width, height} = document.querySelector(selector).getBoundingClientRect();
      return {x: left + scrollX, y: top + scrollY, width, height, scale: 1};
    }, around);
    const {data} = await this.send('Page.captureScreenshot', {format: 'png', captureBeyondViewport: whole || clip !== null, ...(clip ? {clip} : {})});
    writeFileSync(file, Buffer.from(data, 'base64'));
  }

  async close() {
    await this.browser.send('Target.closeTarget', {targetId: this.target});
    this.browser.pages.delete(this.session);
  }
}

const kKeys = {ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Home: 36, End: 35, PageUp: 33, PageDown: 34, Enter: 13, Escape: 27, Tab: 9};
