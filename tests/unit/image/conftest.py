"""Stock images are made once for all tests; each test changes a copy."""

import base64
import os

import pytest
import stock_images


@pytest.fixture(scope="session")
def stocks(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], stock_images.StockImage]:
    """By release and architecture: the four that there are."""
    missing = stock_images.missing_tools()
    if missing:
        pytest.skip(f"these programs make the test's images and are missing here: {', '.join(missing)}")
    base = tmp_path_factory.mktemp("stock")
    made = {}
    for release in ("bookworm", "trixie"):
        for architecture in ("armhf", "arm64"):
            folder = base / f"{release}-{architecture}"
            folder.mkdir()
            made[release, architecture] = stock_images.make(folder, release, architecture)
    return made


@pytest.fixture(scope="session")
def operator_key() -> str:
    """A public key, made here, as OpenSSH writes it (type, then type and 32 bytes with their lengths before them)."""
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in (b"ssh-ed25519", os.urandom(32)))
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} operator@laptop"
