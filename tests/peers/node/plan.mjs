// Carries out a plan with whichever SDK is handed in, and prints one line of JSON: what the client saw.
//
// A plan is data, so that every SDK in every language does the same things:
//   connect   {url}, {sse}, {ws} or {command, args, env}
//   mode      "legacy", "auto" or a revision to be pinned to
//   until     names of tools that must be listed before the steps begin
//   patience  milliseconds to wait for those names, altogether
//   answers   what is done with questions: "accept" or "decline"; null: none are taken
//   roots     the URIs of what is asked for as roots; null: one of Ada's
//   token     what is shown of itself, if anything
//   steps     what to do then, one after the other; {do: "together", steps} does several at once, {do: "wait", url} goes on when
//             that address has answered, {do: "hears", method, uri, text} when such a notice has come that no step has had yet

/** Remembers changes, so that one that comes before anybody waits is not lost. */
class Changes {
  count = 0;
  #waiting = new Set();

  note = () => {
    this.count += 1;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  };

  /** Resolves when more than `seen` changes were noted, or at the deadline. */
  beyond(seen, deadline) {
    if (this.count > seen) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, deadline - Date.now()));
      this.#waiting.add(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/** Remembers notices, each for one step that waits for it. */
class Notices {
  #heard = [];
  #waiting = new Set();

  note = (method, params) => {
    this.#heard.push({ method, params: params ?? {} });
    for (const look of [...this.#waiting]) look();
  };

  /** Resolves to the first notice of a method, with a URI and a text in it if they are given, or to nothing after `patience`. */
  take({ method, uri, text, patience }) {
    const found = () => {
      const fits = (params) => (!uri || params.uri === uri) && (!text || JSON.stringify(params).includes(text));
      const at = this.#heard.findIndex((one) => one.method === method && fits(one.params));
      return at < 0 ? undefined : this.#heard.splice(at, 1)[0].params;
    };
    return new Promise((resolve) => {
      const end = (params) => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(params);
      };
      const look = () => {
        const params = found();
        if (params) end(params);
      };
      const timer = setTimeout(() => end(undefined), patience ?? 15000);
      this.#waiting.add(look);
      look();
    });
  }
}

const refusal = (error) => ({
  error: { code: error?.code ?? null, message: String(error?.message ?? error), data: error?.data ?? null },
});

const names = (tools) => tools.map((tool) => tool.name);

/** Lists tools; where some of `plan.until` are missing, lists again at each notice of a change. */
async function list(client, changes, plan, report) {
  const deadline = Date.now() + plan.patience;
  let seen = changes.count;
  report.first = report.tools = names(await client.listTools());
  while (plan.until.some((name) => !report.tools.includes(name)) && Date.now() < deadline) {
    await changes.beyond(seen, deadline);
    seen = changes.count;
    report.tools = names(await client.listTools());
  }
  report.changes = changes.count;
}

async function call(client, step) {
  const seen = { progress: [] };
  const options = { onprogress: undefined, signal: undefined };
  const abort = new AbortController();
  if (step.progress) options.onprogress = (update) => seen.progress.push(update.progress);
  if (step.cancel) {
    options.signal = abort.signal;
    options.onprogress = (update) => {
      seen.progress.push(update.progress);
      abort.abort("no longer wanted");
    };
  }
  try {
    seen.result = await client.callTool(step.name, step.arguments, options);
  } catch (error) {
    Object.assign(seen, refusal(error));
  }
  return seen;
}

/** What a client declares that takes questions. */
export const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: { listChanged: true } };

/** The notices that every client listens for. */
export const NOTICES = [
  "notifications/message",
  "notifications/resources/updated",
  "notifications/resources/list_changed",
];

const refused = () => {
  throw Object.assign(new Error("not today"), { code: -1 });
};

const ANSWERS = {
  accept: {
    "elicitation/create": () => ({ action: "accept", content: { name: "Ada" } }),
    "sampling/createMessage": () => ({
      role: "assistant",
      content: { type: "text", text: "Ada says so" },
      model: "ada",
      stopReason: "endTurn",
    }),
    "roots/list": () => ({ roots: [{ uri: "file:///home/ada", name: "Ada" }] }),
  },
  decline: {
    "elicitation/create": () => ({ action: "decline" }),
    "sampling/createMessage": refused,
    "roots/list": () => ({ roots: [] }),
  },
};

/** Pairs of a method and what answers it; each question is noted by its method. */
function handlers(plan, report) {
  const roots = () => ({ roots: plan.roots.map((uri) => ({ uri, name: uri })) });
  const answers = Object.entries(ANSWERS[plan.answers] ?? {});
  return answers.map(([method, answer]) => [
    method,
    async () => {
      report.asked.push(method);
      return method === "roots/list" && plan.roots ? roots() : answer();
    },
  ]);
}

const verbs = {
  call,
  resources: async (client) => ({ result: await client.listResources() }),
  templates: async (client) => ({ result: await client.listTemplates() }),
  prompts: async (client) => ({ result: await client.listPrompts() }),
  read: async (client, step) => ({ result: await client.read(step.uri) }),
  prompt: async (client, step) => ({ result: await client.prompt(step.name, step.arguments) }),
  complete: async (client, step) => ({ result: await client.complete(step.ref, step.argument, step.context) }),
  subscribe: async (client, step) => ({ result: (await client.subscribe(step.uri)) ?? {} }),
  level: async (client, step) => ({ result: await client.level(step.level) }),
  roots: async (client, step, { plan }) => {
    plan.roots = step.roots;
    return { result: (await client.rootsChanged()) ?? {} };
  },
  hears: async (_client, step, { notices }) => ({ result: (await notices.take(step)) ?? null }),
  wait: async (_client, step) => ({ result: await (await fetch(step.url)).text() }),
  together: async (client, step, run) => ({
    steps: await Promise.all(step.steps.map((one) => perform(client, one, run))),
  }),
};

async function perform(client, step, run) {
  try {
    return await verbs[step.do](client, step, run);
  } catch (error) {
    return refusal(error);
  }
}

/** What a transport over HTTP is told besides its address. */
export const options = ({ token }) => (token ? { requestInit: { headers: { Authorization: `Bearer ${token}` } } } : {});

/**
 * Runs the plan given as the first argument. `connect(plan, changed, handlers, noted)` resolves to the SDK's client behind a
 * plain face; without handlers it declares that it takes no questions.
 */
export async function run(connect) {
  const plan = JSON.parse(process.argv[2]);
  const report = { revision: null, peer: null, first: [], tools: [], changes: 0, asked: [], steps: [], fatal: null };
  try {
    const changes = new Changes();
    const notices = new Notices();
    const client = await connect(plan, changes.note, handlers(plan, report), notices.note);
    try {
      report.revision = client.revision() ?? null;
      report.peer = client.peer() ?? null;
      await list(client, changes, plan, report);
      for (const step of plan.steps) report.steps.push(await perform(client, step, { plan, notices }));
    } finally {
      await client.close();
    }
  } catch (error) {
    report.fatal = String(error?.stack ?? error);
  }
  // The line is the last thing: exit at once, whatever timers a client may have left behind.
  process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0));
}
