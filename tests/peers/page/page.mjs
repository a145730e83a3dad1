// Clicks through the page of a gateway. Its words are the lines of stdout: `link please` waits for the link of a person, `call please`
// until a call was made, the last is a report as JSON. Arguments: the browser, the page, a folder for pictures or nothing.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { judged } from "./axe.mjs";

const [browserPath, door, pictures] = process.argv.slice(2);
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const WITHIN = 60_000;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const report = { console: [], faults: [], overflow: [], checked: [], requests: [], seen: { odd: [] } };

const browser = await chromium.launch({ executablePath: browserPath, headless: true, args: flags });
const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: "light", bypassCSP: false });
const page = await context.newPage();
page.setDefaultTimeout(WITHIN);
page.on("console", (message) => {
  if (["error", "warning"].includes(message.type())) report.console.push(message.text());
});
page.on("pageerror", (error) => report.console.push(String(error)));
page.on("request", (request) => {
  if (new URL(request.url()).origin !== new URL(door).origin) report.requests.push(request.url());
});

async function looked(view) {
  const text = await page.locator("main").innerText();
  for (const odd of ["[object", "undefined", "NaN", "false", "null"]) if (text.includes(odd)) report.seen.odd.push(`${view}: ${odd}`);
  for (const [width, height] of [[1280, 860], [400, 820]]) {
    for (const scheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      if (wide) report.overflow.push(`${view} at ${width}`);
      report.faults.push(...(await judged(page)).map((one) => ({ view: `${view} ${width} ${scheme}`, ...one })));
      if (pictures) await page.screenshot({ path: `${pictures}/${view}-${width}-${scheme}.png` });
      report.checked.push(`${view} ${width} ${scheme}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.emulateMedia({ colorScheme: "light" });
}

const go = async (name, heading) => {
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
};

// The door, and the way in by the link.
await page.goto(door);
await page.getByRole("heading", { name: "Who is there?" }).waitFor();
await looked("door");
await page.getByLabel("Admin token").fill("certainly-the-wrong-one");
await page.getByRole("button", { name: "Enter" }).click();
await page.getByText("That is not the token of this gateway.").waitFor();
// The browser itself says of the refused request that it was refused.
report.console = report.console.filter((text) => !text.includes("401"));
// Asked for now: a link is good for a minute.
console.log("link please");
const link = (await lines.next()).value;
await page.goto("about:blank");
await page.goto(link);
await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
report.seen.address = page.url();
report.seen.cookie = (await context.cookies()).map(({ name, httpOnly, sameSite }) => ({ name, httpOnly, sameSite }));
await page.locator("main").getByRole("link", { name: "up", exact: true }).waitFor();
// The second sample makes the first point of the charts.
await page.locator(".spark .stroke").first().waitFor();
await looked("overview");

// Upstreams, and one of them: it is stopped and started.
await go("Upstreams", "Upstreams");
await page.locator("main").getByRole("link", { name: "up", exact: true }).waitFor();
await looked("upstreams");
await page.locator("main").getByRole("link", { name: "up", exact: true }).click();
await page.getByRole("heading", { name: "up", level: 1 }).waitFor();
await looked("upstream");
await page.getByRole("button", { name: "Stop", exact: true }).click();
await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
await page.getByRole("button", { name: "Stop", exact: true }).click();
await page.getByRole("dialog").getByRole("button", { name: "Stop", exact: true }).click();
await page.getByRole("button", { name: "Start", exact: true }).waitFor();
report.seen.stopped = await page.locator("main .state").first().textContent();
await page.getByRole("button", { name: "Start", exact: true }).click();
await page.getByRole("button", { name: "Restart", exact: true }).waitFor();
await page.locator("main .state", { hasText: "ready" }).first().waitFor();

// Tools: one is found, and called from its form.
await go("Tools", "Tools");
await page.getByRole("link", { name: "demo__add" }).waitFor();
await looked("tools");
await page.getByRole("searchbox", { name: "Find a tool" }).fill("add");
await page.getByRole("link", { name: "up__echo" }).waitFor({ state: "detached" });
await page.getByRole("link", { name: "demo__add" }).click();
await page.getByLabel(/^a\b/).fill("19");
await page.getByLabel(/^b\b/).fill("23");
await page.getByRole("button", { name: "Call", exact: true }).click();
await page.getByText("Answer", { exact: true }).waitFor();
report.seen.answer = await page.locator("pre[aria-label=Content]").first().textContent();
await looked("tool");
report.seen.markup = await page.evaluate(() => document.querySelectorAll("main img, main script").length);

// Numbers beyond what JavaScript holds are sent and shown as they were written.
const large = '{"n":90071992547409931,"small":0.10000000000000000555,"text":"{ \\" 12345678901234567890","none":{},"list":[1e400,[]]}';
await page.route("**/api/v1/tools/demo__add/call", async (route) => {
  report.seen.sent = route.request().postData();
  await route.fulfill({ contentType: "application/json", body: `{"outcome":"ok","duration_seconds":0.1,"result":${large}}` });
});
await page.getByLabel(/^a\b/).fill("90071992547409931");
await page.getByLabel(/^b\b/).fill("0.10000000000000000555");
await page.getByRole("button", { name: "Call", exact: true }).click();
await page.getByText("As JSON").click();
const shown = page.locator("pre[aria-label='Answer as JSON']", { hasText: "list" });
report.seen.exact = (await shown.textContent()).split("\n").map((line) => line.trim()).join("").replaceAll('": ', '":') === large;
await page.unroute("**/api/v1/tools/demo__add/call");

// Calls: one comes in while they are watched.
await go("Calls", "Calls");
await page.getByText("demo__add").first().waitFor();
console.log("call please");
await lines.next();
await page.getByText("up__echo").first().waitFor();
await looked("calls");
report.seen.calls = await page.locator("tbody tr").count();
await page.getByRole("button", { name: "Pause" }).click();
await page.getByRole("button", { name: "Go on" }).click();

await go("Sessions", "Sessions");
await page.locator("tbody tr").first().waitFor();
await looked("sessions");
await go("Configuration", "Configuration");
await page.getByText("upstreams.up.env.API_TOKEN").waitFor();
await looked("config");
report.seen.config = await page.locator("main").textContent();
await page.getByRole("button", { name: "Read files again" }).click();
await page.getByText("In force already").waitFor();

// From the keyboard alone: to the content, and along the views. The visit outlives a reload of the document.
await page.reload();
await page.getByRole("heading", { name: "Configuration", level: 1 }).waitFor();
await page.keyboard.press("Tab");
report.seen.first = await page.evaluate(() => document.activeElement.id);
await page.keyboard.press("Enter");
report.seen.skipped = await page.evaluate(() => document.activeElement.id);
await page.keyboard.press("Shift+Tab");
await page.keyboard.press("Shift+Tab");
for (let steps = 0; steps < 9 && (await page.evaluate(() => document.activeElement.textContent)) !== "Upstreams"; steps += 1) {
  await page.keyboard.press("Shift+Tab");
}
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "Upstreams", level: 1 }).waitFor();

// The visit ends.
await page.getByRole("button", { name: "Leave" }).click();
await page.getByRole("heading", { name: "Who is there?" }).waitFor();
report.seen.left = (await context.cookies()).length;
await page.goto("about:blank");
await page.goto(link);
await page.getByText("This link was used, or is too old.").waitFor();
report.console = report.console.filter((text) => !text.includes("401"));

await browser.close();
console.log(JSON.stringify(report));
process.exit(0);
