"""A headless Chromium that a test drives as a reader does: it clicks, types and looks."""

import base64
import json
import os
import shutil
import subprocess
import time
from itertools import count
from pathlib import Path

from tests.shared import ROOT

CHROMIUM = shutil.which("chromium")
AXE = ROOT / "build" / "axe" / "package" / "axe.min.js"  # 'make axe' downloads it
MOST_SECONDS = 60  # for an answer of the browser

# Chromium reads commands from file descriptor 3 and writes answers to 4.
START = 'exec "$@" 3<&"$COMMANDS" 4>&"$ANSWERS"'
SWITCHES = (
    *("--headless=new", "--no-sandbox", "--no-first-run", "--remote-debugging-pipe"),
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)

# The first visible element that a selector finds, whose text or title contains the words.
FIND = """(selector, words) => {
  const read = each => each.textContent.replace(/\\s+/g, " ");
  return [...document.querySelectorAll(selector)].find(
    each => each.checkVisibility() && read(each).includes(words));
}"""


class Browser:
    """One window; use it as a context manager."""

    def __init__(self, profile, width=1400, height=900, dark=False):
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "-c", START, "bash", CHROMIUM, f"--user-data-dir={profile}", *SWITCHES],
            env={**os.environ, "COMMANDS": str(commands), "ANSWERS": str(answers)},
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._numbers, self._buffer, self._session = count(1), b"", None
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._send("Page.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._commands)
        self._process.terminate()
        self._process.wait(MOST_SECONDS)
        os.close(self._answers)

    def open(self, page):
        """Open a file and wait until it is loaded."""
        self._send("Page.navigate", url=Path(page).as_uri())
        self.settle()

    def settle(self):
        """Wait until the page is loaded and drawn."""
        self.wait("document.readyState === 'complete'")
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    def run(self, script):
        """Return the value of an expression, also of a promise."""
        settings = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        answer = self._send("Runtime.evaluate", expression=script, **settings)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition):
        """Wait until an expression is true."""
        end = time.monotonic() + MOST_SECONDS
        while time.monotonic() < end:
            try:
                if self.run(condition):
                    return
            except PageError:
                pass  # the page is being replaced
            time.sleep(0.02)
        raise TimeoutError(f"never true: {condition}")

    def click(self, selector, words=""):
        """Press the mouse on the first visible element with these words, where it is seen."""
        place = self.run(f"""(() => {{
          const element = ({FIND})({json.dumps(selector)}, {json.dumps(words)});
          if (!element) return null;
          element.scrollIntoView({{block: "center", behavior: "instant"}});
          const box = element.getClientRects()[0];
          const [x, y] = [box.x + Math.min(box.width / 2, 60), box.y + box.height / 2];
          const top = document.elementFromPoint(x, y);
          return [x, y, element.contains(top) || top?.contains(element)];
        }})()""")
        assert place, f"nothing to click: {selector} {words}"
        x, y, is_on_top = place
        assert is_on_top, f"covered: {selector} {words}"
        for kind in ("mousePressed", "mouseReleased"):
            mouse = {"button": "left", "clickCount": 1}
            self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **mouse)
        time.sleep(0.05)
        self.settle()

    def type(self, text):
        """Type into the field that has the focus."""
        self._send("Input.insertText", text=text)
        self.settle()

    def picture(self, path, whole=True):
        """Write the window or the whole page as a PNG image."""
        image = self._send("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(image["data"]))

    def _send(self, method, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self):
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)


class PageError(Exception):
    """The browser refused a command, for instance because a page was being replaced."""
