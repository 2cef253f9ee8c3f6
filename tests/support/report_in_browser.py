"""A report's page in a headless Chromium, and what it is asked about its figures."""

import json
import time
from typing import Any

from tandem.devtools import Browser

LONG_S = 240
FLAGS = ["--window-size=1280,1000", "--allow-file-access-from-files"]
ASKED = """
(() => [...document.querySelectorAll('[data-figure]')].map(figure => {
  const svg = figure.querySelector('svg'), frame = svg.getBoundingClientRect();
  const words = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]).filter(w => w[0]);
  const beside = b => b.left < frame.left - 1 || b.right > frame.right + 1;
  const above = b => b.top < frame.top - 1 || b.bottom > frame.bottom + 1;
  const outside = words.filter(([, b]) => beside(b) || above(b));
  const over = [];
  words.forEach(([one, a], n) => words.slice(n + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 3 && high > 5) over.push(one + ' | ' + other);
  }));
  const marks = [...svg.querySelectorAll('[data-mark]')].map(g => g.getBoundingClientRect());
  return {name: figure.dataset.figure, width: frame.width, height: frame.height, outside: outside.map(w => w[0]), over,
          drawn: marks.length && marks.every(b => b.width + b.height > 0), dark: getComputedStyle(svg.querySelector('text')).fill};
}))()
"""


class Shown:
    def __init__(self, browser: Browser) -> None:
        self.tools, self.session = browser.devtools, browser.page(self.until_s)
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    @property
    def until_s(self) -> float:
        """How long one answer may take, from now on."""
        return time.monotonic() + LONG_S

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.tools.call(method, params, self.session, until_s=self.until_s)

    def load(self, address: str) -> list[str]:
        """Until it is there; what was complained of meanwhile."""
        assert "errorText" not in self.call("Page.navigate", url=address)
        said = []
        while True:
            event = self.tools.event(self.until_s)
            assert event is not None, "its load event did not come in time"
            if event.method == "Runtime.exceptionThrown" or (event.method, event.params.get("type")) == (
                "Runtime.consoleAPICalled",
                "error",
            ):
                said.append(json.dumps(event.params)[:300])
            if event.method == "Log.entryAdded" and event.params["entry"].get("level") == "error":
                said.append(event.params["entry"]["text"])
            if event.method == "Page.loadEventFired":
                return said

    def ask(self, expression: str) -> Any:
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"]["value"]
