"""What the role base writes on a probe, by its own tasks and defaults."""

from pathlib import Path

import jinja2
import yaml

BASE = Path(__file__).parents[3] / "ansible/roles/base"


def written(place, **variables):
    """The text that the role writes to ``place`` with its defaults and ``variables``."""
    tasks = [one for file in sorted((BASE / "tasks").glob("*.yml")) for one in yaml.safe_load(file.read_text())]
    calls = [call for one in tasks for call in one.values() if isinstance(call, dict)]
    calls += yaml.safe_load((BASE / "vars/main.yml").read_text())["base_files"]
    (call,) = [call for call in calls if call.get("dest") == place]
    known = yaml.safe_load((BASE / "defaults/main.yml").read_text()) | {"tandem_checkout": BASE.parents[2]} | variables
    if "content" in call:
        return _rendered(call["content"], known)
    if call["src"].endswith(".j2"):
        return _rendered((BASE / "templates" / call["src"]).read_text(), known)
    return (BASE / "files" / _rendered(call["src"], known)).read_text()


def _rendered(text, known):
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)  # noqa: S701
    return environment.from_string(text).render(known)
