"""A probe's queue of campaigns over HTTP (docs/reference/probe-api.md): what it shall carry out, and what it reports of that."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tandem.schema.campaign_queue import FORMAT, QueueError, Report, is_id, queue_to_dict, read_report
from tandem_server.http.body import BodyReader, Unreadable, read_json
from tandem_server.registry import CampaignQueue

_REPORT_LIMIT_BYTES = 64 * 1024


class InvalidReport(Unreadable):
    """The body is no report."""


class CampaignResource:
    """The three resources."""

    def __init__(self, queue: CampaignQueue, readers: BodyReader) -> None:
        self._queue, self._readers = queue, readers

    async def listed(self, _request: Request, probe: str) -> Response:
        """``GET /v1/campaigns``."""
        return JSONResponse(queue_to_dict(await run_in_threadpool(self._queue.of_probe, probe)))

    async def file(self, request: Request, probe: str) -> Response:
        """``GET /v1/campaigns/ID``."""
        campaign = request.path_params["campaign"]
        found = await run_in_threadpool(self._queue.text, campaign, probe) if is_id(campaign) else None
        if found is None:
            return _none_such()
        return JSONResponse({"format": FORMAT, "id": campaign, "text": found[0]})

    async def state(self, request: Request, probe: str) -> Response:
        """``PUT /v1/campaigns/ID/state``."""
        report = await self._readers.document(request, probe, _REPORT_LIMIT_BYTES, _report_in)
        campaign = request.path_params["campaign"]
        row = await run_in_threadpool(self._queue.report, campaign, probe, report) if is_id(campaign) else None
        if row is None:
            return _none_such()
        return JSONResponse({"ok": True, "state": row.state, "withdraw": row.pushed.withdraw})


def _report_in(text: str) -> Report:
    try:
        return read_report(read_json(text, InvalidReport))
    except QueueError as error:
        raise InvalidReport(str(error)) from None


def _none_such() -> Response:
    """Also for another probe's: whose it is is nobody else's business."""
    return JSONResponse({"error": "this probe has no such campaign"}, 404)
