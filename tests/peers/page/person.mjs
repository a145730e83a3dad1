// A person at a browser: each line of stdin is a step as JSON, each of stdout what the browser shows then. Steps: { open: URL },
// { fill: [placeholder, text] }, { click: name of a button or link }, { away: true } from when on the browser is on another machine than
// the command, which it cannot come back to. `who` is whose browser it is. Arguments: the browser, a folder for pictures or nothing.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { judged } from "./axe.mjs";

const [browserPath, pictures] = process.argv.slice(2);
// Nothing but this machine is asked: pages of others load what lies elsewhere.
const flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];
const browser = await chromium.launch({ executablePath: browserPath, headless: true, args: flags });
const pages = new Map();
let shot = 0;

async function pageOf(who) {
  if (!pages.has(who)) {
    const context = await browser.newContext({ viewport: { width: 800, height: 600 } });
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    const at = { url: "", status: 0 };
    page.on("request", (request) => request.isNavigationRequest() && Object.assign(at, { url: request.url(), status: 0 }));
    page.on("response", (response) => response.request().isNavigationRequest() && (at.status = response.status()));
    pages.set(who, { context, page, at });
  }
  return pages.get(who);
}

async function done({ who = "", open, fill, click, away }) {
  const { context, page, at } = await pageOf(who);
  let error = null;
  const goes = async (action) => {
    try {
      await action();
    } catch (why) {
      if (!String(why).includes("net::")) throw why;
      error = String(why).match(/net::\w+/)[0];
      // The browser puts a page of its own in place.
      await page.waitForURL("chrome-error://**");
    }
  };
  if (away) {
    // Not by a route of the driver, which does not see where a redirect leads.
    const session = await context.newCDPSession(page);
    session.on("Fetch.requestPaused", ({ requestId }) => session.send("Fetch.failRequest", { requestId, errorReason: "ConnectionRefused" }));
    await session.send("Fetch.enable", { patterns: [{ urlPattern: "*/callback*" }] });
  }
  if (fill) await page.getByPlaceholder(fill[0]).fill(fill[1]);
  if (open) {
    await goes(async () => {
      await page.goto(open);
      // A file leads on.
      await page.waitForURL((url) => url.protocol !== "file:", { waitUntil: "load" });
    });
  }
  if (click) {
    const one = page.getByRole("button", { name: click }).or(page.getByRole("link", { name: click }));
    await goes(() => Promise.all([page.waitForEvent("framenavigated").then(() => page.waitForLoadState()), one.click()]));
    if (page.url().startsWith("chrome-error:")) error ??= "unreachable";
  }
  const [title, text] = [await page.title(), await page.locator("body").innerText()];
  if (pictures) await page.screenshot({ path: `${pictures}/login-${String(++shot).padStart(2, "0")}.png` });
  return { url: at.url, status: at.status, title, text, error, faults: title.endsWith("Trunkline") ? await judged(page) : [] };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await done(JSON.parse(line))));
}
await browser.close();
