// The server that the suite is run against, directly and behind the gateway.
//
//   fixture.mjs http|stdio both|legacy|modern
//
// Over HTTP it prints its endpoint; "legacy" is a server that knows the handshake alone, "modern" one that is stateless.
import { serveHttp } from "./fixture/http.mjs";
import { serveStdin } from "./fixture/stdio.mjs";

const [transport, era] = process.argv.slice(2);
if (transport === "http") serveHttp(era);
else serveStdin(era);
