// A client with OAuth code of an official SDK's own, for a day in short: it logs in, lists, calls, goes on calling until its token was
// refreshed, has its refresh token revoked, and goes on until it would have to log in again.
//
//   daily.mjs sdk1|sdk2 URL
//
// It prints one line of JSON: what it saw.
import { Visitor } from "./client/visitor.mjs";

const LIMIT = 120000;
const PAUSE = 200;
const ECHO = { day: 1 };

const [, , name, url] = process.argv;
const sdk = await import(`./client/${name}.mjs`);
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));
setTimeout(() => {
  console.error("it took too long");
  process.exit(3);
}, LIMIT).unref();

const visitor = new Visitor({}, undefined);
let transport;
const connect = () => {
  transport = sdk.transportTo(url, { authProvider: visitor });
  return sdk.connect(url, transport);
};
const client = await connect().catch(async (error) => {
  const back = visitor.back();
  if (!back) throw error;
  await sdk.finish(transport, back);
  return connect();
});
const called = () => client.call("up__echo", ECHO);
const seen = { tools: (await client.tools()).map((tool) => tool.name), calls: 0, visits: 0, refreshed: false };
const { access_token: first } = visitor.tokens();
while (visitor.tokens().access_token === first) {
  const result = await called();
  if (result.isError) throw new Error(JSON.stringify(result));
  seen.calls += 1;
  await pause();
}
await called();
seen.refreshed = true;
seen.visits = visitor.visits;
await visitor.revoke();
try {
  for (;;) {
    await called();
    await pause();
  }
} catch (error) {
  seen.end = error.constructor.name;
  seen.visitsThen = visitor.visits;
}
console.log(JSON.stringify(seen));
process.exit(0);
