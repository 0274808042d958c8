// Debian's Chromium through Playwright: what the tests and the pictures need of a browser. Every page notes what went wrong on it
// and what it asked for.
import {existsSync} from 'node:fs';
import {pathToFileURL} from 'node:url';

import {chromium} from 'playwright-core';

const kNames = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export class Browser {
  static async launch() {
    const executablePath = process.env.CHROMIUM || kNames.find((name) => existsSync(name));
    if (!executablePath) throw new Error('no Chromium is here; install it (scripts/setup.sh browser), or name it in CHROMIUM');
    // Chromium refuses to be root in its sandbox; the flag draws letters alike everywhere.
    return new Browser(await chromium.launch({
      executablePath, chromiumSandbox: process.getuid() !== 0, args: ['--font-render-hinting=none', '--hide-scrollbars'],
    }));
  }

  constructor(browser) { this.browser = browser; }

  async newPage({width = 1280, height = 900, dark = false, phone = false, scale = 1} = {}) {
    const context = await this.browser.newContext({
      viewport: {width, height}, colorScheme: dark ? 'dark' : 'light', deviceScaleFactor: scale, isMobile: phone, hasTouch: phone,
    });
    return new Page(context, await context.newPage());
  }

  close() { return this.browser.close(); }
}

class Page {
  constructor(context, page) {
    Object.assign(this, {context, page});
    this.errors = [];   // exceptions, what was written to the console as an error, what a policy refused
    this.requests = []; // addresses
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('console', (message) => { if (['error', 'warning', 'assert'].includes(message.type())) this.errors.push(message.text()); });
    page.on('request', (request) => this.requests.push(request.url()));
    page.on('dialog', (dialog) => {
      this.errors.push(`a dialog was opened: ${dialog.message()}`);
      dialog.dismiss();
    });
  }

  // Opens a file and waits until its charts are drawn.
  async open(file) {
    await this.page.goto(pathToFileURL(file).href);
    await this.until(() => document.documentElement.dataset.ready !== undefined);
  }

  // What a function gives in the page; it sees its arguments and nothing else from here.
  evaluate(code, ...given) { return this.page.evaluate(`(${code})(...${JSON.stringify(given)})`); }

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
    await this.page.mouse.move(x, y);
    await this.settle();
  }

  async click(x, y) {
    await this.page.mouse.click(x, y);
    await this.settle();
  }

  async tap(x, y) {
    await this.page.touchscreen.tap(x, y);
    await this.settle();
  }

  async drag(from, to) {
    await this.page.mouse.move(from.x, from.y);
    await this.page.mouse.down();
    await this.page.mouse.move(to.x, to.y);
    await this.page.mouse.up();
    await this.settle();
  }

  async press(key) {
    await this.page.keyboard.press(key);
    await this.settle();
  }

  async type(text) {
    await this.page.keyboard.insertText(text);
    await this.settle();
  }

  // A PNG of what is on the screen, of the whole page, or of one element.
  async screenshot(path, {whole = false, around = null} = {}) {
    if (around) await this.page.locator(around).screenshot({path});
    else await this.page.screenshot({path, fullPage: whole});
  }

  close() { return this.context.close(); }
}
