"""Conversation with the model of `edit_agent`: applies edits as they stream in and retries failed ones."""

from dataclasses import dataclass, field

from handtools.core.callbacks import ModelCallback, closing_stream
from handtools.core.changes import ChangeSet
from handtools.core.context import ProgressCallback
from handtools.core.errors import InvalidInput, NoMatch, TooLarge
from handtools.core.files import Files
from handtools.text.lines import LineRange, count_lines, line_number_at, merged_line_ranges, split_lines
from handtools.text.token_estimate import estimate_tokens
from handtools.tools.editing.drafts import Draft, refusal_error
from handtools.tools.editing.edit_agent_messages import (
    AnswerTags,
    EditAnswerEvent,
    EditDeclined,
    EditStreamParser,
    FileShownInPrompt,
    MalformedAnswer,
    OldNewPair,
    OldTextComplete,
    ShowLines,
    edit_prompt,
    lines_for_edit_prompt,
)
from handtools.tools.editing.edit_outcome import AlreadyApplied, EditRefused
from handtools.tools.editing.non_fuzzy_edits import old_string_with_line_end

MAX_EDIT_AGENT_ROUNDS = 5
MAX_WHOLE_FILE_LINES = 2_000
MAX_WHOLE_FILE_TOKENS = 30_000
"""Files with more tokens than this are shown as an outline with the parts that the instructions may mean."""
MAX_PROMPT_FILE_LINES = 1_200
MAX_ANSWER_CHARS = 1_000_000

_EDIT_DIRECTLY_HINT = "Nothing was written. Give more precise instructions, or use `edit`."


@dataclass(slots=True)
class EditAgentSession:
    """One conversation of the edit agent with its model.

    The file is written only once all edits have matched.
    """

    model: ModelCallback
    draft: Draft
    instructions: str
    say: ProgressCallback
    outline: str = ""
    """Outline of a long file, shown to the model with some of its parts."""
    rounds: int = 0
    pairs: list[OldNewPair] = field(default_factory=list)
    there: int = 0
    """Number of the model's edits that the file already contained."""
    _line_ranges: list[LineRange] = field(default_factory=list)
    _tags: AnswerTags = field(init=False)

    def __post_init__(self) -> None:
        self._tags = AnswerTags.absent_from(self.draft.body, self.instructions)

    async def run_rounds(self) -> None:
        """Ask the model, for up to `MAX_EDIT_AGENT_ROUNDS` rounds, until all its edits apply."""
        open_points: list[str] = []
        for self.rounds in range(1, MAX_EDIT_AGENT_ROUNDS + 1):
            open_points = await self._ask_and_apply_edits(self._messages_about_earlier_rounds(open_points))
            if not open_points:
                break
        else:
            last = open_points[-1]
            raise NoMatch(
                f"After {MAX_EDIT_AGENT_ROUNDS} rounds the model's edits still don't match. {last}",
                hint=_EDIT_DIRECTLY_HINT,
            )
        if not (self.pairs and self.draft.is_changed) and not self.there:
            raise InvalidInput("The model made no edit.", hint=_EDIT_DIRECTLY_HINT)

    async def land(self, files: Files, note: str) -> None:
        """Write all edits as one change.

        If the file changed in the meantime, reapply them to its new content.
        """
        if not self.draft.is_changed:
            return
        if self.draft.before is not None:
            fresh = await Draft.read(files, self.draft.path)
            if fresh.before != self.draft.before:
                await self._reapply_edits(fresh)
        await files.apply(ChangeSet.of(self.draft.change(), note=note))

    async def _reapply_edits(self, draft: Draft) -> None:
        for pair in self.pairs:
            outcome = await draft.replace_old_text(
                None, old_string_with_line_end(draft.body, pair.old, pair.new), pair.new
            )
            if isinstance(outcome, EditRefused):
                where = "Nothing was written. The file changed in the meantime: "
                raise refusal_error(outcome, where, old="the old text", new="the new text")
        self.draft = draft

    async def _ask_and_apply_edits(self, so_far: list[str]) -> list[str]:
        """Stream one response from the model and apply its edits; return the remaining problems."""
        asked = edit_prompt(self._file_shown_in_prompt(), self.instructions, self._tags, before=so_far)
        stream, chars, open_points = EditStreamParser(self._tags), 0, list[str]()
        answer = self.model(asked)
        async with closing_stream(answer):
            async for text in answer:
                chars += len(text)
                if chars > MAX_ANSWER_CHARS:
                    raise TooLarge(
                        f"The model's response has over {MAX_ANSWER_CHARS:,} characters.",
                        hint=_EDIT_DIRECTLY_HINT,
                    )
                for piece in stream.feed(text):
                    open_points += await self._problems_of_answer_event(piece)
                if not stream.why_incomplete():
                    break
        left = stream.why_incomplete()
        # A response may also end with a request for more lines, which is then one of the open points.
        return open_points or ([f"Not finished: {left}. Write what is missing."] if left else [])

    async def _problems_of_answer_event(self, piece: EditAnswerEvent) -> list[str]:
        """Process one part of the model's response; return its problems as messages for the model."""
        if isinstance(piece, OldTextComplete):
            self._report_edit_line(piece.old)
        elif isinstance(piece, OldNewPair):
            return await self._apply_edit_or_problems(piece)
        elif isinstance(piece, ShowLines):
            return [self._show_more_lines(piece)]
        elif isinstance(piece, EditDeclined):
            raise InvalidInput(f"The model can't do it: {piece.why}", hint=_EDIT_DIRECTLY_HINT)
        elif isinstance(piece, MalformedAnswer):
            return [f"Not understood: {piece.why}. Write that edit again."]
        return []

    async def _apply_edit_or_problems(self, pair: OldNewPair) -> list[str]:
        if pair in self.pairs:
            return []
        if not pair.old and not self.draft.body:
            self.draft.put(pair.new)
            self.pairs.append(pair)
            return []
        outcome = await self.draft.replace_old_text(
            None, old_string_with_line_end(self.draft.body, pair.old, pair.new), pair.new
        )
        if isinstance(outcome, EditRefused):
            why = str(refusal_error(outcome, old="the old text", new="the new text"))
            return [f"Refused:\n{self._tags.render_edit(pair.old, pair.new)}\n{why}"]
        if isinstance(outcome, AlreadyApplied):
            self.there += 1
            self.say(f"{self.draft.path}: an edit was already applied at {outcome.where}\n")
            return []
        self.pairs.append(pair)
        line = line_number_at(self.draft.body, outcome.spans[0].start)
        self.say(f"{self.draft.path}: edit {len(self.pairs)} applied at line {line}\n")
        return []

    def _report_edit_line(self, old: str) -> None:
        """Report as progress which line an edit changes, while its new text is still streaming."""
        if self.draft.body.count(old) == 1:
            line = line_number_at(self.draft.body, self.draft.body.index(old))
            self.say(f"{self.draft.path}: edit {len(self.pairs) + 1} goes to line {line}\n")

    def _show_more_lines(self, show: ShowLines) -> str:
        total = count_lines(self.draft.body)
        first = min(max(1, show.first), max(1, total))
        last = min(max(first, show.last), first + MAX_PROMPT_FILE_LINES - 1, max(1, total))
        self._line_ranges.append(LineRange(first, last))
        return f"Lines {first} to {last} are now shown. Continue."

    def _messages_about_earlier_rounds(self, open_points: list[str]) -> list[str]:
        made = f"{len(self.pairs)} edits are applied, and the file is shown with them; do not repeat them."
        return [made, *open_points] if self.rounds > 1 else []

    def _file_shown_in_prompt(self) -> FileShownInPrompt:
        lines = split_lines(self.draft.body)
        if len(lines) <= MAX_WHOLE_FILE_LINES and estimate_tokens(self.draft.body) <= MAX_WHOLE_FILE_TOKENS:
            return FileShownInPrompt(path=self.draft.path, lines=lines)
        meant = lines_for_edit_prompt(lines, self.instructions, most=MAX_PROMPT_FILE_LINES)
        windows = merged_line_ranges((*meant, *self._line_ranges))
        return FileShownInPrompt(path=self.draft.path, lines=lines, outline=self.outline, ranges=windows)
