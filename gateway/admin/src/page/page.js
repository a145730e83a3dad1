"use strict";
// The page of the gateway. It reads /api/v1 and nothing else. What peers wrote is put in as text, never as markup.

const $ = (id) => document.getElementById(id);
const main = $("main");
const KEEP = "trunkline-page";
const ENDED_MAX = 400;
/** So many samples a small chart has room for at least. */
const SPARK_MIN = 24;
let proof = stored();
let view = null;

/* ---- Elements ---- */

/** An element: properties that begin with "on" are handlers, the rest are attributes; children are nodes or texts. */
function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const HANDLERS = ["onclick", "oninput", "onsubmit", "onchange"];

/** Makes one tree like another and keeps the nodes that are there: focus, selection and scrolling stay. */
function morph(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName || keyOf(old) !== keyOf(now)) return old.replaceWith(now);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const handler of HANDLERS) old[handler] = now[handler];
  if (now.style.width) old.style.width = now.style.width;
  const [before, after] = [[...old.childNodes], [...now.childNodes]];
  const keyed = new Map(before.filter((node) => keyOf(node)).map((node) => [keyOf(node), node]));
  let at = old.firstChild;
  for (const next of after) {
    const known = keyOf(next) ? keyed.get(keyOf(next)) : at && !keyOf(at) ? at : null;
    if (!known) {
      old.insertBefore(next, at);
    } else {
      if (known !== at) old.insertBefore(known, at);
      at = known.nextSibling;
      morph(known, next);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);

function show(...children) {
  const now = el("div", { "data-key": view ? view.key : "door" }, children);
  if (main.firstElementChild) morph(main.firstElementChild, now);
  else main.append(now);
}

/* ---- Words and numbers ---- */

const whole = new Intl.NumberFormat("en");
const count = (number, noun) => `${whole.format(number)} ${noun}${number === 1 ? "" : "s"}`;

function rate(value) {
  if (value === 0) return "0";
  return value < 10 ? value.toFixed(value < 1 ? 2 : 1) : whole.format(Math.round(value));
}

function time(seconds) {
  if (seconds < 0.001) return [(seconds * 1e6).toFixed(0), "µs"];
  if (seconds < 0.01) return [(seconds * 1e3).toFixed(2), "ms"];
  if (seconds < 1) return [(seconds * 1e3).toFixed(seconds < 0.1 ? 1 : 0), "ms"];
  if (seconds < 60) return [seconds.toFixed(seconds < 10 ? 2 : 1), "s"];
  return [span(seconds), ""];
}

const took = (seconds) => time(seconds).join(" ").trim();

function span(seconds) {
  const all = Math.round(seconds);
  const parts = [[Math.floor(all / 86400), "d"], [Math.floor(all / 3600) % 24, "h"], [Math.floor(all / 60) % 60, "min"], [all % 60, "s"]];
  const first = parts.findIndex(([number]) => number > 0);
  if (first < 0) return "0 s";
  return parts.slice(first, first + 2).filter(([number]) => number > 0).map((part) => part.join(" ")).join(" ");
}

function bytes(number) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (number >= size) return [(number / size).toFixed(number / size < 10 ? 1 : 0), unit];
  }
  return [String(number), "B"];
}

const STATES = {
  ready: "good", degraded: "warn", starting: "busy", stopping: "busy", backing_off: "bad", failed: "bad", auth_required: "bad",
};
const state = (word) => el("span", { class: `state ${STATES[word] || ""}` }, word.replace(/_/g, " "));

const OUTCOMES = { ok: "good", tool_error: "warn", cancelled: "", running: "busy" };
const outcome = (word) => el("span", { class: `state ${word in OUTCOMES ? OUTCOMES[word] : "bad"}` }, word.replace(/_/g, " "));

function eraOf(row) {
  return row.revision ? [row.revision, row.era && el("div", { class: "sub" }, row.era)] : el("span", { class: "soft" }, "–");
}

/* ---- Parts ---- */

/** The newest value stands at the right; fewer than two minutes of them leave room at the left. */
function spark(values, { kind = "", small = false } = {}) {
  const [width, height] = [240, 40];
  const top = Math.max(...values, 1e-9);
  const step = width / (Math.max(values.length, SPARK_MIN) - 1);
  const x = (at) => (width - (values.length - 1 - at) * step).toFixed(1);
  const y = (value) => (height - 1 - (value / top) * (height - 3)).toFixed(1);
  const line = values.map((value, at) => `${at ? "L" : "M"}${x(at)} ${y(value)}`).join("");
  const box = svg("svg", { class: `spark ${kind} ${small ? "mini" : ""}`, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  box.append(svg("path", { class: "zero", d: `M0 ${height - 0.5}H${width}` }));
  if (values.length > 1 && values.some((value) => value > 0)) {
    box.append(svg("path", { class: "area", d: `${line}L${width} ${height}L${x(0)} ${height}Z` }), svg("path", { class: "stroke", d: line }));
  }
  return box;
}

function figure(what, [value, unit], more, chart) {
  return el("div", { class: "figure" },
    el("p", { class: "what" }, what),
    el("p", { class: "value" }, value, unit ? el("small", {}, unit) : null),
    el("p", { class: "more" }, more || ""),
    chart);
}

function head(title, text, ...rest) {
  return el("div", { class: "head" }, el("h1", {}, title), text ? el("p", {}, text) : null, el("span", { class: "grow" }), rest);
}

/** What may be wider than the page is scrolled by keys, too. */
const scrolled = (caption) => ({ class: "scroll", tabindex: "0", role: "region", "aria-label": caption });

/** Columns are [heading, class]; a row is { key, cells }. */
function table(caption, columns, rows) {
  const header = columns.map(([text, kind]) => el("th", { scope: "col", class: kind }, text));
  const body = rows.map((row) => el("tr", { "data-key": row.key }, row.cells.map((cell, at) => el("td", { class: columns[at][1] }, cell))));
  return el("div", scrolled(caption), el("table", {},
    el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, header)), el("tbody", {}, body)));
}

const empty = (title, text) => el("p", { class: "empty" }, el("strong", {}, title), text);
const fact = (name, ...value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
const place = (name) => encodeURIComponent(name);

function find(label, value, change) {
  return el("input", { type: "search", class: "find", placeholder: label, "aria-label": label, value, oninput: (event) => change(event.target.value.trim().toLowerCase()), spellcheck: "false" });
}

function ask(title, text, yes) {
  const dialog = $("ask");
  $("ask-title").textContent = title;
  $("ask-text").textContent = text;
  $("ask-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.onclose = () => done(dialog.returnValue === "yes");
  });
}

/* ---- The gateway ---- */

class Refused extends Error {}
class Unreachable extends Error {}

/** Whoever aborted it knows why it failed; else the gateway is away. */
function unreachable(error) {
  throw error.name === "AbortError" ? error : new Unreachable("The gateway does not answer.");
}

// What answers said before they were parsed: that rounds large numbers.
const texts = new WeakMap();
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s[\]{},:"]+/g;

// The member of a JSON object, as it was written.
function member(json, name) {
  let [depth, last, from] = [0, "", -1];
  for (const { 0: token, index } of json.matchAll(TOKEN)) {
    if (from >= 0 && depth === 1 && (token === "," || token === "}")) return json.slice(from, index);
    if (from < 0 && depth === 1 && token === ":" && last === JSON.stringify(name)) from = index + 1;
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    last = token;
  }
  return "";
}

// JSON in lines, each number and text as it was written.
function laid(json) {
  let [text, depth, last] = ["", 0, ""];
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of json.matchAll(TOKEN)) {
    const ends = token === "}" || token === "]";
    if (ends) depth -= 1;
    const begins = last === "{" || last === "[";
    if (last === "," || begins !== ends && (begins || ends)) text += line();
    text += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth += 1;
    last = token;
  }
  return text;
}

async function api(path, { method = "GET", body, signal } = {}) {
  const headers = { "X-Trunkline-Page": proof || "" };
  if (method !== "GET") headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body, signal, cache: "no-store", credentials: "same-origin" }).catch(unreachable);
  const text = await answer.text().catch(unreachable);
  if (answer.status === 401 || answer.status === 403) {
    forget();
    door("This visit has ended.");
    throw new Refused(text);
  }
  const value = (answer.headers.get("content-type") || "").startsWith("application/json") ? JSON.parse(text) : text;
  if (value !== null && typeof value === "object") texts.set(value, text);
  if (!answer.ok) throw new Error(value.error || String(value).trim() || `the gateway answered ${answer.status}`);
  return value;
}

const order = (path, body) => api(`/api/v1/${path}`, { method: "POST", body: JSON.stringify(body || {}) });

function stored() {
  try {
    return localStorage.getItem(KEEP);
  } catch {
    return null;
  }
}

function remember(value) {
  proof = value;
  try {
    localStorage.setItem(KEEP, value);
  } catch {
    // Then the visit ends with this document.
  }
}

function forget() {
  proof = null;
  try {
    localStorage.removeItem(KEEP);
  } catch {
    // Nothing was kept.
  }
}

async function enter(key) {
  const answer = await fetch("/ui/enter", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(key), credentials: "same-origin", cache: "no-store",
  });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  remember((await answer.json()).proof);
}

function lost(error) {
  $("lost").hidden = !error;
  const text = error ? "The gateway does not answer. This page goes on once it does." : "";
  if ($("lost").textContent !== text) $("lost").textContent = text;
}

/* ---- The door ---- */

function door(why) {
  stop();
  view = null;
  $("nav").hidden = $("leave").hidden = true;
  document.title = "Trunkline";
  const said = el("p", { class: "bad-text", role: "alert" }, why || "");
  const token = el("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const form = el("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      try {
        await enter({ token: token.value });
        open();
      } catch (error) {
        said.textContent = error.message.startsWith("unknown") ? "That is not the token of this gateway." : error.message;
        token.select();
      }
    },
  }, el("div", { class: "field" }, el("label", { for: "token" }, "Admin token"), token,
    el("p", { class: "hint" }, "The value of token in [admin] of the configuration.")), el("button", { class: "main", type: "submit" }, "Enter"), said);
  main.replaceChildren(el("div", { class: "door", "data-key": "door" }, el("h1", {}, "Who is there?"),
    el("p", {}, "On the machine of the gateway, ", el("code", {}, "trunkline ui"), " opens this page without a token."), form));
  token.focus({ preventScroll: true });
}

/* ---- Views ---- */

let timer = 0;
let running = null;
/** The call of a tool that is under way. */
let calling = null;

/** Ends what the view that is left was doing: its loading, and its call. */
function stop() {
  clearTimeout(timer);
  if (running) running.abort();
  if (calling) calling.abort();
}

/** A view has a key, a title, `load` and `draw`; `every` is how often it is loaded, in milliseconds. */
function turn(to) {
  stop();
  view = to;
  running = new AbortController();
  const { signal } = running;
  document.title = `${to.title} · Trunkline`;
  for (const link of $("nav").children) {
    if (to.key.split("/")[0] === link.hash.slice(1)) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  const step = async () => {
    try {
      if (!document.hidden || !to.data) {
        const orders = to.orders;
        const data = await to.load(signal);
        if (signal.aborted) return;
        lost(null);
        // What was read before an order was carried out is out of date.
        if (orders === to.orders) {
          to.data = data;
          to.draw();
        }
      }
    } catch (error) {
      if (signal.aborted || error instanceof Refused) return;
      if (error instanceof Unreachable) lost(error);
      else show(empty("Nothing to show", error.message));
    }
    if (to.every !== undefined) timer = setTimeout(step, $("lost").hidden ? to.every : 2000);
  };
  if (!main.firstElementChild || keyOf(main.firstElementChild) !== to.key) main.replaceChildren();
  step();
}

function notices(status) {
  const { configuration } = status;
  const note = (kind, title, text) => el("p", { class: `notice ${kind}` }, el("strong", {}, title), " ", text);
  return [
    !status.ready && note("", "Draining.", "The gateway takes no more calls."),
    configuration.error && note("bad", "The configuration of the files is not in force.", configuration.error),
    configuration.certificate_error && note("bad", "The certificate of the files is not in force.", configuration.certificate_error),
    configuration.signing_key_error && note("bad", "Sessions end with this process.", configuration.signing_key_error),
    configuration.needs_restart && note("", "Takes effect at the next start:", configuration.needs_restart.join(", ")),
    configuration.disabled && note("", "Switched off:", configuration.disabled.join(", ")),
    ...(configuration.left_out ?? []).map(({ name, why, advice }) => note("", `Left out: ${name}.`, `${why}; ${advice}`)),
  ];
}

const mine = (values, name) => values.map((sample) => (Object.hasOwn(sample.upstreams, name) ? sample.upstreams[name] : 0));

function overview() {
  return {
    key: "overview", title: "Overview", every: 2000,
    async load(signal) {
      const paths = ["status", "upstreams", "history"];
      const [status, upstreams, history] = await Promise.all(paths.map((path) => api(`/api/v1/${path}`, { signal })));
      return { status, rows: upstreams.upstreams, samples: history.samples, every: history.every_seconds };
    },
    draw() {
      const { status, rows, samples, every } = this.data;
      const last = samples[samples.length - 1] || { calls_per_second: 0, failed_per_second: 0, in_flight: 0, queued: 0 };
      const timed = samples.filter((sample) => sample.mean_seconds !== undefined);
      const newest = timed[timed.length - 1];
      const all = (key) => samples.map((sample) => sample[key] || 0);
      const busy = rows.reduce((sum, row) => sum + row.calls.in_flight, 0);
      const queued = rows.reduce((sum, row) => sum + row.calls.queued, 0);
      const { version, pid, mode } = status.gateway;
      const { used_bytes: used, limit_bytes: limit } = status.limits.memory;
      const minutes = Math.max(1, Math.round((samples.length * every) / 60));
      show(
        head("Overview", `${count(status.upstreams.up, "upstream")} of ${status.upstreams.all} up`),
        notices(status),
        el("div", { class: "figures" },
          figure("Calls", [rate(last.calls_per_second), "/s"], samples.length ? `last ${count(minutes, "minute")}` : "the first sample comes in 10 s", spark(all("calls_per_second"))),
          figure("Failed", [rate(last.failed_per_second), "/s"], samples.some((one) => one.failed_per_second) ? "answered with an error" : "none in this time", spark(all("failed_per_second"), { kind: "bad" })),
          figure("Mean duration", newest ? time(newest.mean_seconds) : ["–", ""], newest ? `${took(newest.gateway_seconds || 0)} of it in the gateway` : "no calls yet", spark(all("mean_seconds"))),
          figure("In flight", [whole.format(busy), ""], queued ? `${whole.format(queued)} more wait` : "none waits", spark(all("in_flight")))),
        el("section", {}, el("div", { class: "head" }, el("h2", {}, "Upstreams")), upstreamTable(rows, samples)),
        el("section", {}, el("div", { class: "head" }, el("h2", {}, "Gateway")), el("dl", { class: "facts" },
          fact("Version", version), fact("Process", `${pid}, ${mode}`),
          fact("Configuration", status.gateway.configuration.length ? status.gateway.configuration.map((file) => el("div", { class: "mono" }, file)) : "built-in demo"),
          fact("In force for", `${span(status.configuration.in_force_seconds)}, ${count(status.configuration.reloads, "reload")}`),
          fact("Memory of peers", bytes(used).join(" ") + (limit ? ` of ${bytes(limit).join(" ")}` : "")),
          fact("Refused clients", Object.entries(status.limits.refused).map(([what, number]) => `${what} ${number}`).join(", ") || "none"))));
    },
  };
}

function upstreamTable(rows, samples) {
  if (!rows.length) return empty("No upstreams", "Add one with trunkline add, or take over the servers of a host with trunkline import.");
  const columns = [["Name", ""], ["State", ""], ["Tools", "num"], ["Revision", "wide"], ["Restarts", "num wide"], ["In flight", "num wide"], ["Last minutes", "wide num"]];
  return table("Upstreams", columns, rows.map((row) => ({
    key: row.name,
    cells: [
      [el("a", { class: "name", href: `#upstreams/${place(row.name)}` }, row.name), el("div", { class: "sub" }, row.transport)],
      [state(row.state), el("div", { class: "sub" }, row.cause ? row.cause : `for ${span(row.since_seconds)}`)],
      row.items ? whole.format(row.items.tools) : "–",
      eraOf(row),
      whole.format(row.restarts),
      whole.format(row.calls.in_flight),
      spark(mine(samples, row.name), { small: true }),
    ],
  })));
}

function upstreams() {
  return {
    key: "upstreams", title: "Upstreams", every: 2000,
    async load(signal) {
      const [all, history] = await Promise.all(["upstreams", "history"].map((path) => api(`/api/v1/${path}`, { signal })));
      return { rows: all.upstreams, samples: history.samples };
    },
    draw() {
      const { rows, samples } = this.data;
      const up = rows.filter((row) => row.state === "ready").length;
      show(head("Upstreams", `${up} of ${rows.length} ready`), upstreamTable(rows, samples));
    },
  };
}

const CONFIRM = {
  stop: ["Stop", (row) => `Its process or sessions end, with ${count(row.calls.in_flight, "call")} in flight. It stays stopped until it is started.`],
  restart: ["Restart", (row) => `${count(row.calls.in_flight, "call")} in flight may end for up to 5 s; new calls wait.`],
};

function upstream(name) {
  const self = {
    key: `upstreams/${name}`, title: name, every: 1500, doing: "", failed: "", orders: 0,
    load: (signal) => api(`/api/v1/upstreams/${place(name)}`, { signal }),
    async give(word) {
      const asks = CONFIRM[word];
      if (asks && !(await ask(`${asks[0]} ${name}?`, asks[1](self.data), asks[0]))) return;
      [self.doing, self.failed] = [word, ""];
      self.draw();
      try {
        self.data = await order(`upstreams/${place(name)}/${word}`);
      } catch (error) {
        self.failed = error.message;
      }
      self.doing = "";
      self.orders += 1;
      if (view === self) self.draw();
    },
    draw() {
      const row = self.data;
      const rests = ["stopped", "idle", "failed", "backing_off"].includes(row.state);
      const button = (word, text, kind) => el("button", { type: "button", class: kind, disabled: self.doing !== "", onclick: () => self.give(word) }, self.doing === word ? `${text}…` : text);
      const counts = row.items ? ["tools", "resources", "templates", "prompts"].map((key) => count(row.items[key], key.slice(0, -1))).join(", ") : "not known yet";
      show(
        el("a", { class: "back", href: "#upstreams" }, "← Upstreams"),
        el("div", { class: "head" }, el("h1", {}, row.name), state(row.state), el("p", {}, `for ${span(row.since_seconds)}`), el("span", { class: "grow" }),
          el("div", { class: "actions" }, rests && button("start", "Start", "main"), !rests && button("restart", "Restart"), row.state !== "stopped" && button("stop", "Stop"))),
        self.failed && el("p", { class: "notice bad", role: "alert" }, self.failed),
        row.cause && el("p", { class: `notice ${STATES[row.state] === "bad" ? "bad" : ""}` }, row.cause, row.retry_in_seconds !== undefined ? ` · next try in ${span(row.retry_in_seconds)}` : ""),
        (row.remarks || []).map((text) => el("p", { class: "notice" }, text)),
        el("dl", { class: "facts" },
          fact("Transport", row.transport), fact("Revision", row.revision ? `${row.revision}, ${row.era}` : "not known yet"),
          row.may_ask && fact("May ask", row.may_ask.join(", ") || "nothing"),
          row.pid && fact("Process", String(row.pid)),
          row.started_in_seconds !== undefined && fact("Start took", took(row.started_in_seconds)),
          fact("Offers", counts), fact("Calls", `${row.calls.in_flight} in flight, ${row.calls.queued} queued`),
          fact("Restarts", whole.format(row.restarts) + (row.restarted_for ? `, last for ${row.restarted_for.replace(/_/g, " ")}` : "")),
          row.client_sessions && fact("Sessions of clients", whole.format(row.client_sessions)),
          row.last_error && fact("Last error", `${span(row.last_error.ago_seconds)} ago: ${row.last_error.cause}`)),
        row.instances && el("section", {}, el("div", { class: "head" }, el("h2", {}, "Instances"), el("p", {}, "beside the primary one: of the other era, of sessions, of principals")),
          table("Instances", [["Name", ""], ["State", ""], ["Revision", ""], ["Process", "num wide"], ["In flight", "num"]], row.instances.map((one, at) => ({
            key: `${at} ${one.name}`,
            cells: [one.name, [state(one.state), one.cause && el("div", { class: "sub" }, one.cause)], eraOf(one), one.pid ? String(one.pid) : "–", whole.format(one.calls.in_flight)],
          })))),
        el("section", {}, el("div", { class: "head" }, el("h2", {}, "Last lines on stderr")),
          row.stderr.length ? el("pre", { tabindex: "0", "aria-label": "Last lines on stderr" }, row.stderr.join("\n"))
            : el("p", { class: "soft" }, row.transport === "stdio" ? "It has written nothing." : "Only children have a stderr.")));
    },
  };
  return self;
}

function tools() {
  let wanted = "";
  const self = {
    key: "tools", title: "Tools", every: 10000,
    load: (signal) => api("/api/v1/tools", { signal }),
    draw() {
      const { tools: all, hidden } = self.data;
      const found = all.filter((tool) => `${tool.name} ${tool.own_name}`.toLowerCase().includes(wanted));
      const tokens = all.reduce((sum, tool) => sum + tool.tokens, 0);
      const owners = [...new Set(found.map((tool) => tool.upstream))];
      const group = (owner) => {
        const own = found.filter((tool) => tool.upstream === owner);
        const sum = own.reduce((total, tool) => total + tool.tokens, 0);
        return el("tbody", { class: "group", "data-key": owner },
          el("tr", { "data-key": "head" }, el("th", { scope: "rowgroup" }, owner, el("span", { class: "soft" }, count(own.length, "tool"))), el("th", { class: "wide" }), el("th", { class: "num" }, whole.format(sum))),
          own.map((tool) => el("tr", { "data-key": tool.name },
            el("td", {}, el("a", { class: "name mono", href: `#tools/${place(tool.name)}` }, tool.name)),
            el("td", { class: "mono soft wide name" }, tool.own_name === tool.name ? "" : tool.own_name),
            el("td", { class: "num soft" }, whole.format(tool.tokens)))));
      };
      show(
        head("Tools", all.length ? `${whole.format(all.length)} offered, about ${whole.format(tokens)} tokens for a model` : "", all.length > 0 && find("Find a tool", wanted, (text) => { wanted = text; self.draw(); })),
        !all.length ? empty("No tools yet", "They appear once an upstream is ready and offers some.")
          : !found.length ? empty("No tool matches", `None of ${whole.format(all.length)} has “${wanted}” in its name.`)
            : el("div", scrolled("Tools by upstream"), el("table", {}, el("caption", { class: "unseen" }, "Tools by upstream"),
              el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Public name"), el("th", { scope: "col", class: "wide" }, "Name at its upstream"), el("th", { scope: "col", class: "num" }, "Tokens, about"))), owners.map(group))),
        hidden.length > 0 && el("section", {}, el("div", { class: "head" }, el("h2", {}, "Hidden"), el("p", {}, "offered by upstreams, and not to clients")),
          table("Hidden tools", [["Name", ""], ["Upstream", ""], ["Why", ""]], hidden.map((one) => ({
            key: `${one.upstream} ${one.own_name}`, cells: [el("span", { class: "mono" }, one.own_name), one.upstream, one.why],
          })))));
    },
  };
  return self;
}

function control(name, schema, required) {
  const id = `arg-${name}`;
  const kind = Array.isArray(schema.type) ? schema.type.find((type) => type !== "null") : schema.type;
  const isBox = kind === "boolean" && !Array.isArray(schema.enum);
  const attributes = { id, name, required: required && !isBox };
  const first = schema.default === undefined ? "" : typeof schema.default === "string" ? schema.default : JSON.stringify(schema.default);
  let input;
  if (Array.isArray(schema.enum)) {
    const option = (value) => el("option", { value: JSON.stringify(value), selected: value === schema.default }, value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));
    input = el("select", attributes, !required && el("option", { value: "" }, "–"), schema.enum.map(option));
  } else if (isBox) {
    input = el("input", { ...attributes, type: "checkbox", checked: schema.default === true });
  } else if (kind === "integer" || kind === "number") {
    input = el("input", { ...attributes, type: "number", step: kind === "integer" ? "1" : "any", value: first });
  } else if (kind === "string") {
    input = el("input", { ...attributes, type: "text", value: first, autocomplete: "off", spellcheck: "false" });
  } else {
    input = el("textarea", { ...attributes, placeholder: kind === "array" ? "[ ]" : "JSON", spellcheck: "false" }, first);
  }
  // As JSON text: numbers keep the digits that were written. What differs from a default is sent.
  const read = () => {
    if (isBox) return input.checked || required || schema.default !== undefined ? String(input.checked) : undefined;
    if (input.value === "" && !(kind === "string" && (required || first !== ""))) return undefined;
    if (Array.isArray(schema.enum)) return input.value;
    if (kind === "string") return JSON.stringify(input.value);
    if (kind === "integer" || kind === "number") return /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i.test(input.value) ? input.value : JSON.stringify(Number(input.value));
    try {
      JSON.parse(input.value);
      return input.value;
    } catch (error) {
      throw new Error(`${name}: ${error.message}`);
    }
  };
  const hint = schema.description && el("p", { class: "hint", id: `${id}-hint` }, schema.description);
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  const label = el("label", { for: id }, name, " ", el("span", { class: "soft" }, required ? "required" : ""));
  return { read, name, node: isBox ? el("div", { class: "field check" }, input, label, hint) : el("div", { class: "field" }, label, input, hint) };
}

function result(done) {
  const content = done.result && Array.isArray(done.result.content) ? done.result.content : [];
  const blocks = content.filter((block) => block && typeof block === "object");
  const text = (block) => {
    if (block.type === "text") return String(block.text);
    if (block.type === "resource") return block.resource && block.resource.text !== undefined ? String(block.resource.text) : `[resource ${block.resource && block.resource.uri}]`;
    if (block.type === "resource_link") return `[resource ${block.uri}]`;
    return `[${block.type} ${block.mimeType || ""}, ${String(block.data || "").length} characters in base64]`;
  };
  return [
    el("div", { class: "head" }, el("h2", {}, "Answer"), outcome(done.outcome), el("p", {}, took(done.duration_seconds))),
    done.error && el("p", { class: "notice bad", role: "alert" }, done.error),
    blocks.map((block) => el("pre", { tabindex: "0", "aria-label": "Content" }, text(block))),
    done.result && el("details", {}, el("summary", {}, "As JSON"), el("pre", { tabindex: "0", "aria-label": "Answer as JSON" }, laid(member(texts.get(done), "result")))),
  ];
}

function tool(name) {
  const self = {
    key: `tools/${name}`, title: name,
    async load(signal) {
      const [page, { tools: all }] = await Promise.all([api(`/api/v1/tools/${place(name)}`, { signal }), api("/api/v1/tools", { signal })]);
      return { definition: page.definition, text: laid(member(texts.get(page), "definition")), about: all.find((one) => one.name === name) || {} };
    },
    draw() {
      const { definition, text, about } = self.data;
      const schema = definition.inputSchema || {};
      const required = Array.isArray(schema.required) ? schema.required : [];
      const fields = Object.entries(schema.properties || {}).map(([key, one]) => control(key, one || {}, required.includes(key)));
      const hints = definition.annotations || {};
      const tags = [hints.readOnlyHint && "read-only", hints.destructiveHint && !hints.readOnlyHint && "may destroy", hints.idempotentHint && "idempotent", hints.openWorldHint && "open world"].filter(Boolean);
      const said = el("section", { "aria-live": "polite" });
      const call = el("button", { class: "main", type: "submit" }, "Call");
      const cancel = el("button", { class: "quiet", type: "button", hidden: true }, "Cancel");
      const form = el("form", {
        onsubmit: async (event) => {
          event.preventDefault();
          const going = calling = new AbortController();
          cancel.onclick = () => going.abort();
          [call.disabled, call.textContent, cancel.hidden] = [true, "Calling…", false];
          try {
            const values = fields.map((field) => [field.name, field.read()]).filter(([, value]) => value !== undefined);
            const body = `{"arguments":{${values.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}}`;
            const done = await api(`/api/v1/tools/${place(name)}/call`, { method: "POST", body, signal: going.signal });
            said.replaceChildren(...result(done).flat().filter(Boolean));
          } catch (error) {
            if (error instanceof Refused) return;
            const text = going.signal.aborted ? "Cancelled." : error.message;
            said.replaceChildren(el("p", { class: "notice bad", role: "alert" }, text));
          }
          [call.disabled, call.textContent, cancel.hidden] = [false, "Call", true];
        },
      }, fields.length ? fields.map((field) => field.node) : el("p", { class: "soft field" }, "It takes no arguments."), el("div", { class: "actions" }, call, cancel));
      main.replaceChildren(el("div", { "data-key": self.key },
        el("a", { class: "back", href: "#tools" }, "← Tools"),
        el("div", { class: "head" }, el("h1", { class: "name" }, definition.title || (hints.title) || name)),
        el("dl", { class: "facts" }, fact("Public name", el("span", { class: "mono" }, name)),
          about.upstream && fact("Upstream", el("a", { href: `#upstreams/${place(about.upstream)}` }, about.upstream)),
          about.own_name && fact("Name there", el("span", { class: "mono" }, about.own_name)),
          about.tokens !== undefined && fact("Size", `about ${whole.format(about.tokens)} tokens`)),
        el("section", { class: "columns" },
          el("section", {}, tags.map((text) => el("span", { class: "tag" }, text)),
            el("p", { class: "prose" }, definition.description || "It has no description."),
            el("details", {}, el("summary", {}, "Definition"), el("pre", { tabindex: "0", "aria-label": "Definition" }, text))),
          el("section", {}, el("div", { class: "head" }, el("h2", {}, "Call it"), el("p", {}, "as the principal admin")), form)),
        said));
    },
  };
  return self;
}

function calls() {
  const kept = new Map();
  let [cursor, wanted, paused] = ["", "", false];
  const self = {
    key: "calls", title: "Calls", every: 0,
    async load(signal) {
      const query = cursor ? `?after=${encodeURIComponent(cursor)}&wait=${self.data && self.data.open.length ? 1 : 20}` : "";
      const news = await api(`/api/v1/calls${query}`, { signal });
      cursor = news.cursor;
      for (const call of news.ended.reverse()) {
        kept.set(`${call.at_microseconds} ${call.method} ${call.name || ""} ${call.duration_seconds}`, { ...call, time: new Date(Date.now() - call.ended_ago_seconds * 1000) });
      }
      for (const key of [...kept.keys()].slice(0, Math.max(0, kept.size - ENDED_MAX))) kept.delete(key);
      if (signal.aborted) return null;
      await new Promise((done) => setTimeout(done, self.data ? 150 : 0));
      return news;
    },
    draw() {
      if (paused) return;
      const matches = (call) => [call.name, call.method, call.upstream, call.principal, call.outcome || "running"].join(" ").toLowerCase().includes(wanted);
      const open = self.data.open.filter(matches);
      const ended = [...kept].filter(([, call]) => matches(call)).reverse();
      const what = (call) => [el("span", { class: "mono name" }, call.name || call.method), el("div", { class: "sub" }, [call.name && call.method, call.upstream, call.principal && `by ${call.principal}`].filter(Boolean).join(" · "))];
      const running = open.map((call, at) => ({ key: `open ${at}`, cells: [el("span", { class: "soft" }, "now"), what(call), outcome("running"), took(call.duration_seconds), "", "", "", ""] }));
      const rows = ended.map(([key, call]) => {
        const isKnown = call.upstream_seconds !== undefined;
        const parts = [call.queue_seconds || 0, call.upstream_seconds || 0, call.gateway_seconds || 0];
        const bars = parts.map((seconds) => {
          const bar = el("i");
          bar.style.width = `${(call.duration_seconds > 0 ? (seconds / call.duration_seconds) * 100 : 0).toFixed(1)}%`;
          return bar;
        });
        const title = isKnown && `${took(parts[0])} in the queue, ${took(parts[1])} at the upstream, ${took(parts[2])} in the gateway`;
        return { key, cells: [
          el("time", { class: "soft nowrap", datetime: call.time.toISOString() }, call.time.toLocaleTimeString("en-GB")),
          what(call), outcome(call.outcome), took(call.duration_seconds), ...parts.map((seconds, at) => (isKnown && (seconds > 0 || at === 2) ? took(seconds) : "–")),
          isKnown && el("span", { class: "split", title }, bars),
        ] };
      });
      show(
        head("Calls", "", find("Find", wanted, (text) => { wanted = text; paused = false; self.draw(); paused = self.paused === true; }),
          el("button", { type: "button", "aria-pressed": String(self.paused === true), onclick: (event) => {
            self.paused = !self.paused;
            paused = false;
            event.target.textContent = self.paused ? "Go on" : "Pause";
            event.target.setAttribute("aria-pressed", String(self.paused));
            if (!self.paused) self.draw();
            paused = self.paused;
          } }, self.paused ? "Go on" : "Pause")),
        el("div", { class: "legend" }, el("span", { class: "key queue" }, "in the queue"), el("span", { class: "key" }, "at the upstream"), el("span", { class: "key own" }, "in the gateway")),
        running.length + rows.length
          ? table("Calls, the newest first", [["Time", ""], ["Call", ""], ["Outcome", ""], ["Took", "num"], ["Queue", "num wide"], ["Upstream", "num wide"], ["Gateway", "num wide"], ["Split", "wide"]], [...running, ...rows])
          : empty(wanted ? "No call matches" : "No calls yet", wanted ? "" : "They appear here as they are made, with where their time went."));
    },
  };
  return self;
}

function sessions() {
  return {
    key: "sessions", title: "Sessions", every: 3000,
    load: (signal) => api("/api/v1/sessions", { signal }),
    draw() {
      const all = this.data.sessions;
      show(head("Sessions", all.length ? `${count(all.length, "handshake client")} over HTTP` : ""),
        all.length ? table("Sessions", [["Session", ""], ["Principal", ""], ["Address", "wide"], ["Revision", ""], ["Idle", "num"]], all.map((one) => ({
          key: one.session,
          cells: [el("span", { class: "mono" }, one.session), one.principal || el("span", { class: "soft" }, "anyone"), el("span", { class: "mono" }, one.address || "–"), one.revision, one.idle_seconds === undefined ? el("span", { class: "state good" }, "at work") : span(one.idle_seconds)],
        }))) : empty("No sessions", "Only clients with a handshake, before 2026-07-28, have sessions. Stateless clients show among the calls."));
    },
  };
}

function config() {
  let wanted = "";
  const self = {
    key: "config", title: "Configuration", said: null, busy: false,
    async load(signal) {
      const [status, { settings }] = await Promise.all([api("/api/v1/status", { signal }), api("/api/v1/config", { signal })]);
      return { status, settings };
    },
    async reload() {
      self.busy = true;
      self.draw();
      try {
        const done = await order("reload");
        const lists = ["added", "changed", "removed"].filter((key) => done[key] && done[key].length).map((key) => `${key} ${done[key].join(", ")}`);
        self.said = ["", done.outcome === "unchanged" ? "In force already: nothing has changed." : `Reloaded. ${lists.join("; ")}`];
      } catch (error) {
        self.said = ["bad", error.message];
      }
      self.busy = false;
      if (view !== self) return;
      self.data = await self.load();
      self.draw();
    },
    draw() {
      const { status, settings } = self.data;
      const value = (one) => (typeof one === "string" ? one : JSON.stringify(one));
      const found = settings.filter((one) => `${one.key} ${value(one.value)} ${one.source}`.toLowerCase().includes(wanted));
      show(
        head("Configuration", `${count(settings.length, "key")} set; the others have their defaults`, find("Find a key", wanted, (text) => { wanted = text; self.draw(); }),
          el("button", { type: "button", disabled: self.busy, onclick: self.reload }, self.busy ? "Reading…" : "Read files again")),
        self.said && el("p", { class: `notice ${self.said[0]}`, role: "status" }, self.said[1]),
        notices(status),
        found.length ? table("Settings", [["Key", ""], ["Value", ""], ["Source", "wide"]], found.map((one) => ({
          key: `${one.key} ${one.source}`,
          cells: [el("span", { class: "mono name" }, one.key), el("span", { class: `mono name ${one.value === "[secret]" ? "soft" : ""}` }, value(one.value)), el("span", { class: "source small" }, one.source)],
        }))) : empty(settings.length ? "No key matches" : "Nothing is set", settings.length ? "" : "Everything has its default."));
    },
  };
  return self;
}

/* ---- Ways ---- */

const VIEWS = { overview, upstreams, tools, calls, sessions, config };
const ONES = { upstreams: upstream, tools: tool };

function open() {
  if (!proof) return door();
  $("nav").hidden = $("leave").hidden = false;
  const [name, rest] = location.hash.slice(1).split(/\/(.*)/s);
  let one;
  try {
    one = rest && Object.hasOwn(ONES, name) && ONES[name](decodeURIComponent(rest));
  } catch {
    one = null;
  }
  turn(one || (Object.hasOwn(VIEWS, name) ? VIEWS[name] : overview)());
}

async function start() {
  const given = location.hash.match(/^#enter=([\w-]+)$/);
  if (!given) return open();
  // The link is used up: it does not stay in the history.
  history.replaceState(null, "", location.pathname);
  try {
    await enter({ link: given[1] });
    open();
  } catch {
    if (proof) return open();
    door("This link was used, or is too old. Run trunkline ui again.");
  }
}

$("skip").onclick = () => main.focus();
$("leave").onclick = async () => {
  await fetch("/ui/leave", { method: "POST", headers: { "X-Trunkline-Page": proof || "" }, credentials: "same-origin" }).catch(() => {});
  forget();
  door();
};
// A browser may keep a page that was left, and its requests with it.
window.addEventListener("pagehide", stop);
window.addEventListener("pageshow", (event) => {
  if (event.persisted) open();
});
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#enter=")) start();
  else if (proof) {
    open();
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
});
start();
