"""Drives a headless Firefox by WebDriver BiDi: Firefox listens by itself, and Debian has no geckodriver."""
import base64
import contextlib
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import trio
import trio_websocket

FIREFOX = shutil.which("firefox-esr")
START_SECONDS = 120


class Firefox:
    """One page. Everything that it requested is in `requests`, what it logged as a warning or an error in `errors`."""

    def __init__(self, socket):
        self._socket, self._numbers = socket, itertools.count(1)
        self.context, self.requests, self.errors = None, [], []

    async def call(self, method, **parameters):
        number = next(self._numbers)
        await self._socket.send_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(await self._socket.get_message())
            if message.get("method") == "network.beforeRequestSent":
                self.requests.append(message["params"]["request"]["url"])
            elif message.get("method") == "log.entryAdded" and message["params"]["level"] in ("warn", "error"):
                self.errors.append(message["params"]["text"])
            elif message.get("id") == number:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['error']}: {message['message']}")
                return message["result"]

    async def open(self, url):
        await self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    async def evaluate(self, expression):
        """Returns the value of an expression, as JSON has it."""
        found = await self.call("script.evaluate", target={"context": self.context}, awaitPromise=True,
                                expression=f"(async () => JSON.stringify(await ({expression})))()")
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"]) if "value" in found["result"] else None

    async def wait(self, expression, seconds=120):
        with trio.move_on_after(seconds):
            while not await self.evaluate(expression):
                await trio.sleep(0.1)
            return
        raise TimeoutError(f"not within {seconds} seconds: {expression}; the page says: "
                           + await self.evaluate("document.body.innerText.slice(0, 500)"))

    async def choose_files(self, css, paths):
        """Chooses files in an <input type=file>, as its dialog does."""
        found = await self.call("browsingContext.locateNodes", context=self.context,
                                locator={"type": "css", "value": css})
        await self.call("input.setFiles", context=self.context, element={"sharedId": found["nodes"][0]["sharedId"]},
                        files=[str(path) for path in paths])

    async def screenshot(self, path):
        shot = await self.call("browsingContext.captureScreenshot", context=self.context)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))


@contextlib.asynccontextmanager
async def firefox():
    """Starts a Firefox with a profile of its own, and ends it."""
    with tempfile.TemporaryDirectory(prefix="firefox") as home:
        with open(pathlib.Path(home, "log"), "w+", encoding="utf-8") as log:
            process = subprocess.Popen([FIREFOX, "--headless", "--no-remote", "--profile", home,
                                        "--remote-debugging-port", "0"],
                                       stdout=log, stderr=log,
                                       env={"HOME": home, "PATH": "/usr/bin:/bin", "MOZ_HEADLESS_WIDTH": "1280",
                                            "MOZ_HEADLESS_HEIGHT": "900"})
            try:
                listening = None
                with trio.move_on_after(START_SECONDS):
                    while not listening:
                        await trio.sleep(0.1)
                        listening = re.search(r"BiDi listening on (ws://\S+)",
                                              pathlib.Path(home, "log").read_text(encoding="utf-8"))
                if not listening:
                    raise TimeoutError("Firefox does not listen: "
                                       f"{pathlib.Path(home, 'log').read_text(encoding='utf-8')[-500:]}")
                async with trio_websocket.open_websocket_url(f"{listening[1]}/session",
                                                             max_message_size=1 << 28) as socket:
                    page = Firefox(socket)
                    await page.call("session.new", capabilities={})
                    await page.call("session.subscribe", events=["network.beforeRequestSent", "log.entryAdded"])
                    page.context = (await page.call("browsingContext.getTree"))["contexts"][0]["context"]
                    yield page
            finally:
                process.terminate()
                process.wait(30)
