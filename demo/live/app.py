"""A web server whose pages follow a view: FastAPI sends its changes as server-sent events.

``uvicorn demo.live.app:app --timeout-graceful-shutdown 1`` serves a page at http://127.0.0.1:8000/; without the option
Ctrl-C waits until every browser has closed its page. A browser that has lost its connection goes on after the last
change that it saw, if that is still known, and begins with all rows otherwise.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi import FastAPI, Header, Request
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse

import freshviews as fv

PAGE = """<!doctype html><title>by_part</title><pre id="rows"></pre><script>
const rows = new Map(), events = new EventSource("/changes");
function show(event) {
  if (event.type === "snapshot") rows.clear();
  for (const [row, multiplicity] of JSON.parse(event.data))
    if (multiplicity > 0) rows.set(row[0], row); else if (String(rows.get(row[0])) === String(row)) rows.delete(row[0]);
  document.getElementById("rows").textContent = [...rows.values()].sort().map(row => row.join("  ")).join("\\n");
}
events.addEventListener("snapshot", show);
events.addEventListener("change", show);
</script>"""
SILENCE = 15.0
"""Seconds without a change after which a comment is sent, so that a lost connection is noticed."""

db = fv.Database()
db.execute("""
  CREATE TABLE items (part STRING, qty INT);
  CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part;
""")
view = db.view("by_part")
view.keep_changes(10_000)
app = FastAPI()


@app.get("/")
def page() -> HTMLResponse:
    return HTMLResponse(PAGE)


@app.exception_handler(fv.BatchError)
def refused(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 422)


@app.post("/items")
def insert(rows: list[tuple[str, int]]) -> int:
    # FastAPI calls a function that is not async in a thread, so a commit does not hold up the event loop.
    return db.insert("items", rows)


@app.get("/changes")
async def changes(last_event_id: int | None = Header(None)) -> StreamingResponse:
    try:
        following = view.changes("snapshot" if last_event_id is None else last_event_id)
    except fv.ArgumentError:
        following = view.changes("snapshot")
    return StreamingResponse(events(following), media_type="text/event-stream")


async def events(following: fv.Changes) -> AsyncIterator[str]:
    """The changes as server-sent events; the server cancels this when the client has gone."""
    async with following:
        while True:
            try:
                change = await asyncio.wait_for(anext(following), SILENCE)
            except TimeoutError:
                yield ":\n\n"
                continue
            except StopAsyncIteration:
                return
            kind = "snapshot" if change.is_snapshot else "change"
            yield f"id: {change.version}\nevent: {kind}\ndata: {json.dumps(list(change))}\n\n"
