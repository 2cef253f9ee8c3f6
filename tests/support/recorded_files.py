"""What runs leave in a probe's folder: files, and the manifests that name them."""

import hashlib
import json
from pathlib import Path


def record(
    folder: Path, contents: dict[str, bytes], run: str = "run-1", ended_utc_ns: int = 1, **promised: bytes
) -> None:
    """Files of this ``run``, beside those that it has. ``promised``: by a file's stem, what the manifest says of it instead of what is
    there."""
    rows = []
    for name, content in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        whole = promised.get(file.stem, content)
        rows.append({"name": name, "bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()})
    manifest = folder / "runs" / f"{run}.json"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    earlier = json.loads(manifest.read_text())["files"] if manifest.exists() else []
    manifest.write_text(json.dumps({"id": run, "ended_utc_ns": ended_utc_ns, "files": [*earlier, *rows]}))
