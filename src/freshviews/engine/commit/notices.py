"""After a commit, calls subscribers with the changes of their views. Changes of earlier versions come first."""

from __future__ import annotations

from collections import deque
from inspect import iscoroutine

from freshviews.engine.change import Change, Waiting
from freshviews.errors import FreshviewsError, SubscriberError


class Notices:
    """Changes that wait for their subscribers: a commit appends to ``waiting``.

    A change committed by a subscriber waits behind earlier ones.
    """

    def __init__(self) -> None:
        self.waiting: Waiting = deque()
        self._delivering = False

    def deliver(self) -> None:
        """Call the subscribers; a call within a subscriber leaves them to the outer call.

        Every subscriber is called, even if others raise. Then SubscriberError is raised with the first
        exception as its cause; KeyboardInterrupt and SystemExit are raised as they are.
        """
        if self._delivering or not self.waiting:
            return
        self._delivering = True
        failed: tuple[Change, Exception] | None = None
        stopped: BaseException | None = None
        try:
            while self.waiting:
                subscription, change = self.waiting.popleft()
                if not subscription.active:
                    continue
                try:
                    returned = subscription.callback(change)
                    if iscoroutine(returned):
                        returned.close()
                        raise FreshviewsError(
                            f"the subscriber returned a coroutine, which nothing awaits; {awaiting(change.view)}"
                        )
                except Exception as error:
                    failed = failed or (change, error)
                except BaseException as error:
                    stopped = stopped or error
        finally:
            self._delivering = False
        if stopped is not None:
            raise stopped
        if failed is not None:
            change, cause = failed
            raise SubscriberError(
                f"a subscriber of view {change.view} raised an error at version {change.version}: {cause!r}; the "
                "version stays committed"
            ) from cause


def awaiting(view: str) -> str:
    """How changes are awaited."""
    return f"await them in a task: async for change in db.view('{view}').changes(): await ..."
