"""A person who consents to everything, what the official Python SDK keeps of a login, and all that its client and its browser are told."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

BACK = "http://127.0.0.1:9/callback"
HOPS = 9
# A page waits for what the person has done.
PATIENCE = 60
# What stands in addresses that only one person may see.
OF_ONE = ("code", "state")


class LoginWanted(Exception):
    """The person does not log in once more."""


class Ear(httpx2.AsyncBaseTransport):
    """Hears all answers, and knows what in them nobody else may be told."""

    def __init__(self) -> None:
        self._under = httpx2.AsyncHTTPTransport()
        self._heard: list[bytearray] = []
        self.own: set[str] = set()
        # Those of it that authorization servers have given its client.
        self.tokens: set[str] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._under.handle_async_request(request)
        lines = [f"{name}: {value}" for name, value in answer.headers.multi_items()]
        heard = bytearray("\n".join([str(answer.status_code), *lines, ""]).encode())
        self._heard.append(heard)
        cookies = [cookie.split(";")[0].partition("=")[2] for cookie in answer.headers.get_list("set-cookie")]
        self.own.update(filter(None, [answer.headers.get("mcp-session-id"), *cookies]))
        answer.stream = Heard(answer.stream, heard)
        return answer

    async def aclose(self) -> None:
        await self._under.aclose()

    def back(self, link: str) -> None:
        """Notes what came back from a login."""
        found = parse_qs(urlsplit(link).query)
        self.own.update(value for name in OF_ONE for value in found.get(name, []))

    def heard(self) -> str:
        return "".join(heard.decode(errors="replace") for heard in self._heard)


class Heard(httpx2.AsyncByteStream):
    """Hears the body of an answer as it is read."""

    def __init__(self, stream: httpx2.AsyncByteStream, heard: bytearray) -> None:
        self._stream = stream
        self._heard = heard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._heard.extend(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class Visitor:
    """A person who consents to everything, and what the SDK keeps of a login."""

    def __init__(self, person: str | None = None) -> None:
        self.visits = 0
        self.pages = 0
        self.is_away = False
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self.ear = Ear()
        self._person = person
        self._came = ""

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens
        self.ear.tokens.update(filter(None, [tokens.access_token, tokens.refresh_token]))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    def browser(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self.ear, headers={"accept-encoding": "identity"}, timeout=PATIENCE)

    async def _followed(self, link: str, back: str) -> str:
        """Follows a link to where it leads back to, with a fresh browser."""
        link = f"{link}&login_hint={self._person}" if self._person else link
        browser = self.browser()
        for _ in range(HOPS):
            answer = await browser.get(link)
            link = urljoin(link, answer.headers["location"])
            if urlsplit(link).path.startswith(back):
                self.ear.back(link)
                return link
        raise RuntimeError(f"{link} leads nowhere")

    async def follow(self, link: str) -> None:
        self.visits += 1
        if self.is_away:
            raise LoginWanted
        self._came = await self._followed(link, urlsplit(BACK).path)

    async def came_back(self) -> AuthorizationCodeResult:
        brought = {name: values[0] for name, values in parse_qs(urlsplit(self._came).query).items()}
        return AuthorizationCodeResult(**brought)

    async def visit(self, page: str) -> None:
        """Opens a page of the gateway, logs in where it leads, and is sent back."""
        self.pages += 1
        self.ear.own.add(page)
        browser = self.browser()
        opened = await browser.get(page)
        href = re.search('<a href="([^"]+)"', opened.text)
        if href is None:
            raise RuntimeError(f"{page} leads nowhere: {opened.text}")
        back = await self._followed(html.unescape(href[1]), "/connect/callback/")
        (await browser.get(back)).raise_for_status()

    async def revoke(self, url: str) -> None:
        """Has the refresh token made good for nothing (RFC 7009)."""
        assert self.tokens and self.client
        form = {"token": self.tokens.refresh_token, "client_id": self.client.client_id}
        if self.client.client_secret:
            form["client_secret"] = self.client.client_secret
        (await self.browser().post(url, data=form)).raise_for_status()
        self.is_away = True


def logging_in(url: str, visitor: Visitor) -> OAuthClientProvider:
    """The SDK's own OAuth code, for this person."""
    metadata = OAuthClientMetadata(
        client_name="the official Python SDK",
        redirect_uris=[BACK],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(url, metadata, visitor, visitor.follow, visitor.came_back)


def reason(error: BaseException) -> BaseException:
    """What a group of errors comes of."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
