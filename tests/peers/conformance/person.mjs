// A person with a client on an official SDK, whose OAuth code is its own: does what it is told on stdin, a line of JSON each, and says what
// came of it on stdout.
//
//   person.mjs sdk1|sdk2 URL NAME
//
//   {"do":"tools"}                           the names of what is listed
//   {"do":"until","tool":…}                  the same, once that is among them
//   {"do":"call","name":…,"arguments":…}     the text of its result; the person goes to the pages that the client is sent to
//   {"do":"prompt","name":…,"arguments":…}   the text of it
//   {"do":"spend","name":…,"arguments":…}    calls until the access token is another one: how often
//   {"do":"revoke"}                          has the refresh token revoked; the person logs in no more
//   {"do":"refused","name":…,"arguments":…}  calls until that fails: how often, and with what
//   {"do":"tell"}                            all that was heard, and what of it nobody else may hear
//
// What fails is answered with {"error":…}.
import { createInterface } from "node:readline";
import { Ear } from "./client/ear.mjs";
import { Visitor } from "./client/visitor.mjs";

// An SDK tells its own news there.
console.debug = console.info = console.log = console.error;

const PAUSE = 200;
/** So often a request may be made anew, after a login or in another session. */
const TRIES = 4;

const [, , name, url, person] = process.argv;
const sdk = await import(`./client/${name}.mjs`);
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));

const ear = new Ear(person);
const visitor = new Visitor({}, undefined, { person, browse: ear.fetch });
let changes = 0;
let transport;
let client;
let isAway = false;

const connect = async () => {
  transport = sdk.transportTo(url, { authProvider: visitor, fetch: ear.fetch });
  client = await sdk.connect(url, transport, { visit: ear.visit, changed: () => (changes += 1) });
};

/** Makes a request, and whatever the SDK leaves to whoever uses it: to come back from a login, to open a session anew, to log in for more. */
async function made(request) {
  for (let tries = 1; ; tries++) {
    try {
      if (!client) await connect();
      return await request();
    } catch (error) {
      const back = visitor.back();
      if (isAway || tries === TRIES) throw error;
      if (back) {
        ear.back(back);
        await sdk.finish(transport, back);
      } else if (client && (sdk.isGone(error) || sdk.isShort(error))) {
        if (sdk.isShort(error)) visitor.invalidateCredentials("tokens");
        await client.close().catch(() => {});
        client = undefined;
      } else {
        throw error;
      }
    } finally {
      if (visitor.tokens()) ear.given(visitor.tokens());
    }
  }
}

const tools = async () => (await made(() => client.tools())).map((tool) => tool.name);

const call = async ({ name, arguments: given }) => {
  const { isError = false, content } = await made(() => client.call(name, given));
  return { isError, text: content[0].text };
};

const VERBS = {
  call,
  tools: async () => ({ tools: await tools() }),
  until: async ({ tool }) => {
    for (;;) {
      const listed = await tools();
      if (listed.includes(tool)) return { tools: listed };
      await pause();
    }
  },
  prompt: async ({ name, arguments: given }) => {
    const { messages } = await made(() => client.prompt(name, given));
    return { text: messages[0].content.text };
  },
  spend: async (step) => {
    const { access_token: first } = visitor.tokens();
    let calls = 0;
    for (; visitor.tokens().access_token === first; calls++) {
      const { isError, text } = await call(step);
      if (isError) throw new Error(text);
      await pause();
    }
    return { calls };
  },
  revoke: async () => {
    await visitor.revoke();
    isAway = true;
    return {};
  },
  refused: async (step) => {
    for (let calls = 0; ; calls++) {
      try {
        await call(step);
      } catch (error) {
        return { calls, end: error.constructor.name };
      }
      await pause();
    }
  },
  tell: async () => ({ heard: ear.heard(), ...ear.secrets(), pages: ear.pages, visits: visitor.visits, changes }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  const said = await VERBS[step.do](step).catch((error) => ({ error: `${error.constructor.name}: ${error.message}` }));
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
process.exit(0);
