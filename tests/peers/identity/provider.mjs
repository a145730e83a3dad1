// An authorization server that gives tokens for a resource: to clients of its own by their credentials, as JSON Web Tokens, to `quiet` such
// that say nothing; and to clients that register themselves once a person has logged in, who consents to everything: who `login_hint` names,
// else `ann`. Those last for LASTS seconds. It says on stdout where it is.
// With PAGES it shows persons its own pages in place of that, knows the client `by-hand`, and with DEVICES has pages for codes, too. A line of
// stdin, { at, status, type, body } as JSON, is what it answers under that path from then on, nothing but an end without a status; it says so.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

const LASTS = Number(process.env.LASTS ?? 600);
const PERSON = 'ann';
const { PAGES, DEVICES } = process.env;
const faults = new Map();

/** Logs a person in who asks for nothing, and allows what the client wants. */
async function consent(provider, request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: params.login_hint ?? PERSON } });
  }
  const { accountId } = session;
  const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId, clientId: params.client_id });
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
  if (missingOIDCScope.length > 0) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes)) grant.addResourceScope(resource, scopes.join(' '));
  const consented = { consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, consented, { mergeWithLastSubmission: true });
}

// A connection that a client keeps must not end just as it is used again.
const server = createServer({ keepAliveTimeout: 600000 }).listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const client = (id) => ({
    client_id: id,
    client_secret: `${id}-secret`,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
    token_endpoint_auth_method: 'client_secret_basic',
  });
  // Whoever logs in by it comes back to this very port.
  const byHand = {
    client_id: 'by-hand',
    grant_types: ['authorization_code', 'refresh_token'],
    redirect_uris: ['http://127.0.0.1:1/callback'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  const isOurs = ({ clientId }) => ['desk', 'quiet', 'gate'].includes(clientId);
  const provider = new Provider(issuer, {
    clients: [...['desk', 'quiet', 'gate'].map(client), ...(PAGES ? [byHand] : [])],
    scopes: ['read', 'admin', 'offline_access'],
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    ...(PAGES ? {} : { interactions: { url: (_, { uid }) => `/interaction/${uid}` } }),
    // A client may come to ask for more than it has registered for, as with most that are in use.
    extraClientMetadata: { properties: ['asks_for'], validator: (_, __, ___, metadata) => delete metadata.scope },
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: Boolean(PAGES) },
      deviceFlow: { enabled: Boolean(DEVICES) },
      introspection: { enabled: true, allowedPolicy: () => true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource, client) => ({
          scope: 'read admin',
          audience: resource,
          accessTokenTTL: isOurs(client) ? 600 : LASTS,
          accessTokenFormat: PAGES || client.clientId === 'quiet' ? 'opaque' : 'jwt',
        }),
      },
    },
  });
  const answer = provider.callback();
  server.on('request', (request, response) => {
    const fault = [...faults].find(([at]) => request.url.startsWith(at))?.[1];
    if (fault) return fault.status ? response.writeHead(fault.status, { 'content-type': fault.type }).end(fault.body) : request.destroy();
    if (PAGES || !request.url.startsWith('/interaction/')) return answer(request, response);
    return consent(provider, request, response).catch((error) => response.writeHead(500).end(String(error)));
  });
  console.log(issuer);
});

createInterface({ input: process.stdin }).on('line', (line) => {
  const fault = JSON.parse(line);
  faults.set(fault.at, fault);
  console.log('done');
});
