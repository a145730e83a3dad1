// A judge of accessibility.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds serious on a page. It runs in a world of its own: the policy of the page admits no other script. */
export async function judged(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const run = `${axe}; axe.run(document, { resultTypes: ["violations"] }).then((found) => JSON.stringify(found.violations.map((one) =>
    ({ id: one.id, impact: one.impact, nodes: one.nodes.map((node) => node.html.slice(0, 200) + " " + (node.failureSummary || "")) }))))`;
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression: run, contextId: executionContextId, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(`axe: ${JSON.stringify(exceptionDetails).slice(0, 400)}`);
  await session.detach();
  return JSON.parse(result.value).filter((one) => ["serious", "critical"].includes(one.impact));
}
