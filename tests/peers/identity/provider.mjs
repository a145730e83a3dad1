// An authorization server that gives tokens to clients for a resource: as JSON Web Tokens, to `quiet` such that say nothing.
// It says on stdout where it is.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const server = createServer().listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const client = (id) => ({
    client_id: id,
    client_secret: `${id}-secret`,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
    token_endpoint_auth_method: 'client_secret_basic',
  });
  const provider = new Provider(issuer, {
    clients: ['desk', 'quiet', 'gate'].map(client),
    scopes: ['read', 'admin'],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource, client) => ({
          scope: 'read admin',
          audience: resource,
          accessTokenTTL: 600,
          accessTokenFormat: client.clientId === 'quiet' ? 'opaque' : 'jwt',
        }),
      },
    },
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
