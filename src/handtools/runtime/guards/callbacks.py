"""Guarded callbacks: checked by the policy and run at most once per call; failures become tool errors."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial

from anyio import to_thread

from handtools.core.callbacks import (
    Attachment,
    Callbacks,
    DelegateCallback,
    DeliverCallback,
    Errand,
    ModelCallback,
    closing_stream,
)
from handtools.core.changes import sha256_hex
from handtools.core.effects import Delegation, Delivery
from handtools.core.errors import CallbackFailed, HandtoolsError, InvalidInput
from handtools.runtime.guards.files import GuardedFiles
from handtools.text.encoding import without_surrogates


class StrayCancellation(Exception):
    """Raised if a callback was cancelled although its call was not."""


@contextmanager
def only_own_cancellation() -> Iterator[None]:
    """Context manager that turns a cancellation into `StrayCancellation` unless the current task was cancelled.

    Awaiting a cancelled task raises the same exception as being cancelled; the task's count of cancellation
    requests distinguishes the two.
    """
    before = _count_cancellations()
    try:
        yield
    except asyncio.CancelledError as cancelled:
        if _count_cancellations() > before:
            raise
        raise StrayCancellation("it was cancelled, but not by the caller") from cancelled


def _count_cancellations() -> int:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # Under trio there is nothing to count: only its event loop can raise a cancellation.
        return 0
    return task.cancelling() if task else 0


MAX_ERRAND_DEPTH = 3
"""Most levels of nested delegation."""
DELIVERY_RECEIPT_CHARS = 1_000
logger = logging.getLogger("handtools")
_depth: ContextVar[int] = ContextVar("delegation depth of this call", default=0)


def guarded_callbacks(callbacks: Callbacks, files: GuardedFiles) -> Callbacks:
    """Wrap the callbacks for one call: checked by the policy, run at most once, with failures as tool errors."""
    if callbacks == Callbacks():
        return callbacks
    return replace(
        callbacks,
        deliver=callbacks.deliver and partial(_deliver, callbacks.deliver, files),
        delegate=callbacks.delegate and partial(_delegate, callbacks.delegate, files),
        model=callbacks.model and partial(_stream_model_output, callbacks.model),
    )


async def _deliver(deliver: DeliverCallback, files: GuardedFiles, attachment: Attachment) -> str:
    call = files.call
    attachment = replace(attachment, call_id=call.id, session=call.session, metadata=call.metadata)
    delivery = Delivery(
        path=attachment.path,
        digest=sha256_hex(attachment.data),
        bytes=len(attachment.data),
        media_type=attachment.media_type,
        title="" if attachment.title == attachment.name else attachment.title,
    )
    await files.gate.admit(delivery)
    said = f"`{attachment.path}` was not delivered, or it is unknown whether it was"
    receipt = await _run_callback_once(
        files, f"deliver {delivery.path} {delivery.digest}", lambda: deliver(attachment), said
    )
    return receipt[:DELIVERY_RECEIPT_CHARS]


async def _delegate(delegate: DelegateCallback, files: GuardedFiles, errand: Errand) -> str:
    depth = 1 + max(_depth.get(), await to_thread.run_sync(_depth_of, files))
    if depth > MAX_ERRAND_DEPTH:
        hint = "Do this one yourself."
        raise InvalidInput(
            f"This subtask would be nested {depth} levels deep; the limit is {MAX_ERRAND_DEPTH}.", hint=hint
        )
    await files.gate.admit(Delegation(title=errand.title, prompt=errand.prompt))
    await to_thread.run_sync(files.workspace.journal.callback_runs.note_delegation, files.call.id, depth)
    around = _depth.set(depth)
    try:
        sent = replace(errand, depth=depth, metadata=files.call.metadata)
        said = f"The other agent did not finish {errand.title!r}"
        return await _run_callback_once(files, "delegate", lambda: delegate(sent), said)
    finally:
        _depth.reset(around)


async def _stream_model_output(model: ModelCallback, prompt: str) -> AsyncIterator[str]:
    """Stream the model's output; errors are reported without their text, which may contain an API key."""
    with _callback_failure_told("The model that applies edits failed", quoted=False):
        answer = model(prompt)
        async with closing_stream(answer):
            async for text in answer:
                if not isinstance(text, str):
                    raise TypeError(f"the model returned a {type(text).__name__}, not text")
                yield text


def _depth_of(files: GuardedFiles) -> int:
    """Return the delegation depth of a call's parent, even if that ran in another process."""
    parent = files.call.parent
    return files.workspace.journal.callback_runs.delegation_depth(parent) if parent else 0


async def _run_callback_once(
    files: GuardedFiles, name: str, act: Callable[[], Awaitable[str]], said: str
) -> str:
    """Run a callback, or return its earlier result if this call has already run it.

    A call that is resumed after approval or a crash runs again from the start.
    """
    runs, call_id = files.workspace.journal.callback_runs, files.call.id
    if not await to_thread.run_sync(runs.begin, call_id, name):
        known = await to_thread.run_sync(runs.result, call_id, name)
        if known is None:
            hint = "Ask the user before you call again."
            raise CallbackFailed(
                f"This call was started before, and its outcome is unknown. {said}.", hint=hint
            )
        return known
    with _callback_failure_told(said):
        answer = await act()
        if not isinstance(answer, str):
            raise TypeError(f"the callback returned a {type(answer).__name__}, not text")
    told = without_surrogates(answer)
    await to_thread.run_sync(runs.finish, call_id, name, told or "(Done.)")
    return told


@contextmanager
def _callback_failure_told(said: str, *, quoted: bool = True) -> Iterator[None]:
    """Context manager that logs a callback's exception and converts it to `CallbackFailed`."""
    try:
        with only_own_cancellation():
            yield
    except BaseException as failure:
        if isinstance(failure, HandtoolsError) or not isinstance(failure, Exception):
            raise
        logger.warning("%s", said, exc_info=failure)
        words = f": {failure}" if quoted else ""
        reason = " ".join(f"{type(failure).__name__}{words}".split())[:300]
        hint = "Tell the user, and continue without it."
        raise CallbackFailed(f"{said}: {reason}.", hint=hint) from failure
