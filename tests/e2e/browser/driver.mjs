// Drives headless Chromium. Each line on stdin is {page, method, args}; each line on stdout is {value} or {error}.
// Methods are those of Playwright's Page, and `open`, `seen`, `axe` and `scroll`, which are below.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [packages, program] = process.argv.slice(2);
const require = createRequire(packages + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
// Chromium's own sandbox needs what root and containers have not.
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const pages = [], seen = [];

const own = {
  // A page in a context of its own: cookies, colours, size and whether scripts run.
  async open(_, options) {
    const context = await browser.newContext({ reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(30000);
    const page = await context.newPage(), heard = { requests: [], dialogs: [], errors: [] };
    page.on("request", request => heard.requests.push(request.url()));
    page.on("dialog", dialog => { heard.dialogs.push(dialog.message()); dialog.dismiss(); });
    page.on("pageerror", error => heard.errors.push(String(error)));
    page.on("console", message => message.type() === "error" && heard.errors.push(message.text()));
    seen.push(heard);
    return pages.push(page) - 1;
  },
  async seen(_, at) { return seen[at]; },
  async cookies(page) { return page.context().cookies(); },
  async shut(page) { await page.context().close(); },
  // Serious and critical findings of axe-core, each with the elements that it is about.
  async axe(page) {
    await page.evaluate(axe);
    const found = await page.evaluate(() => axe.run());
    return found.violations.filter(one => ["serious", "critical"].includes(one.impact))
      .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.html).join(" | ")}`);
  },
  // Milliseconds of the slowest of some screenfuls, each waited for until it is painted.
  async scroll(page, steps) {
    return page.evaluate(async steps => {
      const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      let slowest = 0;
      for (let step = 1; step <= steps; step++) {
        const began = performance.now();
        scrollTo(0, document.documentElement.scrollHeight * step / steps);
        await painted();
        slowest = Math.max(slowest, performance.now() - began);
      }
      return slowest;
    }, steps);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { page, method, args } = JSON.parse(line);
  let answer;
  try {
    const value = own[method] ? await own[method](pages[page], ...args) : await pages[page][method](...args);
    // Handles of elements and answers of servers are not for Python.
    const told = own[method] || method === "evaluate" || ["boolean", "number", "string"].includes(typeof value);
    answer = { value: told ? value ?? null : null };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await browser.close();
