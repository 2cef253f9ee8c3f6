"""What mlcroissant and rocrate make of a package, as JSON; run by the validators' own Python: ``package_validators.py PACKAGE CACHE``.

Into ``CACHE`` goes the context of RO-Crate that the package rocrate ships, so that roc-validator asks no network for it.
"""

import io
import json
import sys
from importlib.resources import files
from pathlib import Path

import mlcroissant
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate.rocrate import ROCrate
from urllib3 import HTTPResponse

CONTEXT = "https://w3id.org/ro/crate/1.3/context"


class Shipped(HTTPAdapter):
    """Answers with the context that rocrate ships."""

    def send(self, request, **_):
        body = io.BytesIO((files("rocrate") / "data" / "ro-crate.jsonld").read_bytes())
        head = {"Content-Type": "application/ld+json"}
        return self.build_response(
            request, HTTPResponse(body, status=200, headers=head, preload_content=False, request_url=request.url)
        )


def main() -> None:
    package, cache = Path(sys.argv[1]), sys.argv[2]
    with CachedSession(cache_name=cache, backend="sqlite", expire_after=-1) as session:
        session.mount("https://", Shipped())
        session.get(CONTEXT).raise_for_status()
    croissant = mlcroissant.Dataset(jsonld=str(package / "croissant.json"))
    crate = ROCrate(package)
    told = {
        "errors": sorted(croissant.metadata.ctx.issues.errors),
        "warnings": sorted(croissant.metadata.ctx.issues.warnings),
        "rows": {one.id: sum(1 for _ in croissant.records(one.id)) for one in croissant.metadata.record_sets},
        "fields": {one.id: len(one.fields) for one in croissant.metadata.record_sets},
        "entities": sorted(one.id for one in crate.data_entities),
        "title": crate.name,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
