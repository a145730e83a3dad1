// All that is told to a client and to its person's browser, to be searched for what belongs to others, and what of it belongs to it.
import { follow } from "./visitor.mjs";

/** What stands in addresses that only one person may see. */
const OF_ONE = ["code", "state"];

export class Ear {
  #person;
  #heard = [];
  /** What nobody else may be told. */
  own = new Set();
  /** Those of it that authorization servers have given its client. */
  tokens = new Set();
  /** How often its person was at a page of the gateway. */
  pages = 0;

  constructor(person) {
    this.#person = person;
  }

  /** All of it, as text. */
  heard() {
    return this.#heard.join("");
  }

  /** What it may not tell anybody. */
  secrets() {
    return { own: [...this.own, ...this.tokens], tokens: [...this.tokens] };
  }

  /** As the global one. */
  fetch = async (url, init) => {
    const answer = await fetch(url, init);
    this.#heard.push(`${answer.status} ${[...answer.headers].join("\n")}\n`);
    for (const set of answer.headers.getSetCookie()) this.#keep(/^[^=]+=([^;]*)/.exec(set)[1]);
    this.#keep(answer.headers.get("mcp-session-id"));
    if (!answer.body) return answer;
    const at = this.#heard.push("") - 1;
    const decoder = new TextDecoder();
    const listen = (chunk, controller) => {
      this.#heard[at] += decoder.decode(chunk, { stream: true });
      controller.enqueue(chunk);
    };
    return new Response(answer.body.pipeThrough(new TransformStream({ transform: listen })), answer);
  };

  #keep(secret) {
    if (secret) this.own.add(secret);
  }

  /** What came back from a login. */
  back(url) {
    for (const name of OF_ONE) this.#keep(url.searchParams.get(name));
  }

  /** What an authorization server has given. */
  given({ access_token, refresh_token }) {
    for (const token of [access_token, refresh_token].filter(Boolean)) this.tokens.add(token);
  }

  /** Has the person open a page of the gateway, log in where it leads, and be sent back. */
  visit = async (page) => {
    this.pages += 1;
    this.#keep(page);
    const opened = await this.fetch(page);
    const text = await opened.text();
    const cookie = opened.headers.getSetCookie().map((set) => set.split(";")[0]).join("; ");
    const [, href] = /<a href="([^"]+)"/.exec(text) ?? [];
    if (!href) throw new Error(`${page} leads nowhere: ${text}`);
    const link = new URL(href.replaceAll("&amp;", "&"));
    link.searchParams.set("login_hint", this.#person);
    const back = await follow(link, "/connect/callback/", this.fetch);
    this.back(back);
    const last = await this.fetch(back, { headers: { cookie } });
    if (!last.ok) throw new Error(`${back} answers ${last.status}: ${await last.text()}`);
    await last.text();
  };
}
