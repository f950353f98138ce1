"""Fair queue for the calls of one host: limits running and waiting calls, round-robin between tenants."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from handtools.core.call import CancelToken, caller_cancelled_error
from handtools.core.errors import Busy, TimedOut

BUSY_HINT = "Nothing was done. Try again later."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """Limits on how many calls run or wait at once: on the host, of a tenant and in a workspace."""

    running: int = 256
    waiting: int = 1024
    tenant_running: int | None = None
    tenant_waiting: int | None = None
    workspace_waiting: int = 64


@dataclass(slots=True)
class _Tenant:
    running: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class FairCallQueue:
    """Decides which call runs next: a tenant's calls in order of arrival, and round-robin between tenants."""

    def __init__(self, limits: TurnLimits) -> None:
        self.limits = limits
        self.running = self.waiting = self.shed = 0
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()
        self._waiting_in: dict[str, int] = {}

    @asynccontextmanager
    async def hold_turn(
        self, tenant: str, workspace: str, seconds: float | None, cancel: CancelToken
    ) -> AsyncIterator[None]:
        """Wait until the call may run, and hold its turn for the block.

        Raises `Busy` if too many calls are already waiting, `TimedOut` after `seconds`.
        """
        own = self._tenants.setdefault(tenant, _Tenant())
        if self._may_run_now(own) and not own.waiting:
            own.running += 1
            self.running += 1
        else:
            await self._wait_for_turn(own, workspace, seconds, cancel)
        try:
            yield
        finally:
            own.running -= 1
            self.running -= 1
            self._grant_turns()
            if not own.running and not own.waiting:
                self._tenants.pop(tenant, None)

    async def _wait_for_turn(
        self, tenant: _Tenant, workspace: str, seconds: float | None, cancel: CancelToken
    ) -> None:
        self._check_waiting_limits(tenant, workspace)
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        tenant.waiting.append(turn)
        self.waiting += 1
        self._waiting_in[workspace] = self._waiting_in.get(workspace, 0) + 1
        unlink = cancel.on_cancel(lambda: loop.call_soon_threadsafe(_cancel_waiting_turn, turn))
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as stopped:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                # The turn was granted just as this call stopped waiting: pass it on.
                tenant.running -= 1
                self.running -= 1
                self._grant_turns()
            elif turn in tenant.waiting:
                tenant.waiting.remove(turn)
            if isinstance(stopped, TimeoutError):
                raise TimedOut(
                    f"The call timed out after {seconds:g} s waiting for the busy host.", hint=BUSY_HINT
                ) from None
            raise
        finally:
            unlink()
            self.waiting -= 1
            self._waiting_in[workspace] -= 1
            if not self._waiting_in[workspace]:
                del self._waiting_in[workspace]

    def _check_waiting_limits(self, tenant: _Tenant, workspace: str) -> None:
        limits = self.limits
        if self.waiting >= limits.waiting:
            full = f"{self.waiting} calls are already waiting on this host."
        elif limits.tenant_waiting is not None and len(tenant.waiting) >= limits.tenant_waiting:
            full = f"{len(tenant.waiting)} calls of this tenant are already waiting."
        elif self._waiting_in.get(workspace, 0) >= limits.workspace_waiting:
            full = f"{limits.workspace_waiting} calls are already waiting for this workspace."
        else:
            return
        self.shed += 1
        raise Busy(full, hint=BUSY_HINT)

    def _may_run_now(self, tenant: _Tenant) -> bool:
        most = self.limits.tenant_running
        return self.running < self.limits.running and (most is None or tenant.running < most)

    def _grant_turns(self) -> None:
        """Grant free turns to waiting calls."""
        given = True
        while given and self.running < self.limits.running:
            given = False
            for name, tenant in list(self._tenants.items()):
                while tenant.waiting and tenant.waiting[0].done():
                    tenant.waiting.popleft()  # cancelled, but its task has not removed it yet
                if tenant.waiting and self._may_run_now(tenant):
                    tenant.waiting.popleft().set_result(None)
                    tenant.running += 1
                    self.running += 1
                    self._tenants.move_to_end(name)
                    given = True
                    break


def _cancel_waiting_turn(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_exception(caller_cancelled_error())
