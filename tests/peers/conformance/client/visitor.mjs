// A person who consents to everything, and what an official SDK needs to know of its client and to keep of a login.

const BACK = "http://127.0.0.1:9/callback";
const HOPS = 9;

/** Follows a link as a browser does, to where it leads back to a program of this machine. */
export async function follow(link, back = "/callback", browse = fetch) {
  let at = new URL(link);
  const cookies = new Map();
  for (let hop = 0; hop < HOPS; hop++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await browse(at, { redirect: "manual", headers: cookie ? { cookie } : {} });
    for (const set of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
      cookies.set(name, value);
    }
    const to = answer.headers.get("location");
    if (!to) throw new Error(`${at} answers ${answer.status}: ${await answer.text()}`);
    at = new URL(to, at);
    if (at.pathname.startsWith(back)) return at;
  }
  throw new Error(`${link} leads nowhere`);
}

/** What an official SDK asks for of whoever uses it, kept in memory. */
export class Visitor {
  visits = 0;
  #told;
  #person;
  #browse;
  #kept = {};
  #came;
  #isAway = false;

  /** Of a person of this name, if it logs in by name, with a browser that fetches so. */
  constructor(told, document, { person, browse } = {}) {
    this.#told = told;
    this.clientMetadataUrl = document;
    this.#person = person;
    this.#browse = browse;
  }

  get redirectUrl() {
    return BACK;
  }

  get clientMetadata() {
    return {
      client_name: "an official SDK",
      redirect_uris: [BACK],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    };
  }

  clientInformation() {
    const { client_id, client_secret } = this.#told;
    return client_id ? { client_id, client_secret } : this.#kept.client;
  }

  saveClientInformation(client) {
    this.#kept.client = client;
  }

  tokens() {
    return this.#kept.tokens;
  }

  saveTokens(tokens) {
    this.#isAway = false;
    this.#kept.tokens = tokens;
  }

  saveCodeVerifier(verifier) {
    this.#kept.verifier = verifier;
  }

  codeVerifier() {
    return this.#kept.verifier;
  }

  saveDiscoveryState(discovery) {
    this.#kept.discovery = discovery;
  }

  /** What was found out holds until the tokens are there: who is believed may change, and each login finds out anew. */
  discoveryState() {
    return this.#isAway ? this.#kept.discovery : undefined;
  }

  invalidateCredentials(what) {
    if (what === "all") this.#kept = {};
    else delete this.#kept[what];
  }

  async redirectToAuthorization(url) {
    this.visits += 1;
    this.#isAway = true;
    const link = new URL(url);
    if (this.#person) link.searchParams.set("login_hint", this.#person);
    this.#came = await follow(link, undefined, this.#browse);
  }

  /** Has the refresh token made good for nothing (RFC 7009), at the authorization server where it is from. */
  async revoke() {
    const metadata = this.#kept.discovery.authorizationServerMetadata;
    const { client_id, client_secret } = this.clientInformation();
    const form = { token: this.#kept.tokens.refresh_token, token_type_hint: "refresh_token", client_id };
    if (client_secret) form.client_secret = client_secret;
    const answer = await fetch(metadata.revocation_endpoint, { method: "POST", body: new URLSearchParams(form) });
    if (!answer.ok) throw new Error(`revoking answers ${answer.status}: ${await answer.text()}`);
  }

  /** Where the last visit came back to, once. */
  back() {
    const came = this.#came;
    this.#came = undefined;
    return came;
  }
}
