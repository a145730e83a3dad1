// An authorization server that gives tokens for a resource: to clients of its own by their credentials, as JSON Web Tokens, to `quiet` such
// that say nothing; and to clients that register themselves once a person has logged in, who consents to everything: who `login_hint` names,
// else `ann`. Those last for LASTS seconds. It says on stdout where it is.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const LASTS = Number(process.env.LASTS ?? 600);
const PERSON = 'ann';

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
  const isOurs = ({ clientId }) => ['desk', 'quiet', 'gate'].includes(clientId);
  const provider = new Provider(issuer, {
    clients: ['desk', 'quiet', 'gate'].map(client),
    scopes: ['read', 'admin', 'offline_access'],
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    // A client may come to ask for more than it has registered for, as with most that are in use.
    extraClientMetadata: { properties: ['asks_for'], validator: (_, __, ___, metadata) => delete metadata.scope },
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
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
          accessTokenFormat: client.clientId === 'quiet' ? 'opaque' : 'jwt',
        }),
      },
    },
  });
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url.startsWith('/interaction/')) return answer(request, response);
    return consent(provider, request, response).catch((error) => response.writeHead(500).end(String(error)));
  });
  console.log(issuer);
});
