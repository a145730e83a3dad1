"""A client with the OAuth code of the official Python SDK, for a day in short: as conformance/daily.mjs, with the same line of JSON.

    daily.py URL
"""

from __future__ import annotations

import json
import sys
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

BACK = "http://127.0.0.1:9/callback"
LIMIT = 120
PAUSE = 0.2
HOPS = 9
ECHO = {"day": 1}


class LoginWanted(Exception):
    """The person does not log in once more."""


class Visitor:
    """A person who consents to everything, and what the SDK keeps of a login."""

    def __init__(self) -> None:
        self.visits = 0
        self.is_away = False
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self._came = ""

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def follow(self, link: str) -> None:
        self.visits += 1
        if self.is_away:
            raise LoginWanted
        async with httpx2.AsyncClient() as browser:
            for _ in range(HOPS):
                answer = await browser.get(link)
                link = urljoin(link, answer.headers["location"])
                if link.startswith(BACK):
                    self._came = link
                    return
        raise RuntimeError(f"{link} leads nowhere")

    async def came_back(self) -> AuthorizationCodeResult:
        brought = {name: values[0] for name, values in parse_qs(urlsplit(self._came).query).items()}
        return AuthorizationCodeResult(**brought)

    async def revoke(self, url: str) -> None:
        """Has the refresh token made good for nothing (RFC 7009)."""
        assert self.tokens and self.client
        form = {"token": self.tokens.refresh_token, "client_id": self.client.client_id}
        if self.client.client_secret:
            form["client_secret"] = self.client.client_secret
        async with httpx2.AsyncClient() as browser:
            (await browser.post(url, data=form)).raise_for_status()
        self.is_away = True


def reason(error: BaseException) -> BaseException:
    """What a group of errors comes of."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def main(url: str) -> None:
    visitor = Visitor()
    metadata = OAuthClientMetadata(
        client_name="the official Python SDK",
        redirect_uris=[BACK],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    auth = OAuthClientProvider(url, metadata, visitor, visitor.follow, visitor.came_back)
    seen: dict[str, object] = {"calls": 0, "refreshed": False}
    try:
        async with create_mcp_http_client(auth=auth) as http, Client(streamable_http_client(url, http_client=http)) as client:
            seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
            assert visitor.tokens
            first = visitor.tokens.access_token
            while visitor.tokens.access_token == first:
                result = await client.call_tool("up__echo", ECHO)
                assert not result.is_error, result
                seen["calls"] += 1
                await anyio.sleep(PAUSE)
            await client.call_tool("up__echo", ECHO)
            seen["refreshed"] = True
            seen["visits"] = visitor.visits
            await visitor.revoke(str(auth.context.oauth_metadata.revocation_endpoint))
            while True:
                await client.call_tool("up__echo", ECHO)
                await anyio.sleep(PAUSE)
    except BaseException as error:
        if not visitor.is_away:
            raise
        seen["end"] = type(reason(error)).__name__
        seen["visitsThen"] = visitor.visits
    print(json.dumps(seen))


async def within_limit() -> None:
    with anyio.fail_after(LIMIT):
        await main(sys.argv[1])


anyio.run(within_limit)
