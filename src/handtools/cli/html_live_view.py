"""The live view: the report as a page served while agents work, with new calls, approval requests and undo.

Every button belongs to a form, so the page works without JavaScript. The script adds new calls and shows
outcomes without reloading.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handtools.cli.html_report import (
    REPORT_SCRIPT,
    REPORT_STYLE,
    ReportedCall,
    call_item,
    coloured_diff,
    escaped,
    figures,
    search_fields,
    source_hash,
    summary_line,
)

if TYPE_CHECKING:
    from handtools.record.session_feed import PendingApproval

LIVE_VIEW_BYTES_PER_CALL = 24_000
"""Maximum number of bytes to show of one call's arguments, result and diff together."""
LIVE_QUESTION_BYTES = 60_000


@dataclass(frozen=True, slots=True)
class LiveCall:
    """A call in the live view, and the actions that the user can take on it."""

    id: str
    """The call's full id, which the buttons' forms send."""
    call: ReportedCall
    actions: tuple[str, ...] = ()
    """Any of `undo`, `redo` and `cancel`."""


def live_view_page(
    title: str,
    calls: Sequence[LiveCall],
    pending: Sequence["PendingApproval"],
    *,
    events: str = "",
    older: str = "",
) -> str:
    """Build the page, with calls newest first; `events` and `older` are URLs, or empty."""
    name = escaped(title)
    shown = [live.call for live in reversed(calls)]
    feed = f' data-events="{escaped(events)}"' if events else ""
    return "".join(
        [
            *_page_head(name),
            f"<header><h1>{name}</h1><p>{escaped(summary_line(shown))}</p>",
            '<p id="status" role="status"></p><noscript><p>Reload this page for new calls.</p></noscript>',
            f'</header><main{feed}><section id="questions" aria-label="Pending approval requests">',
            *map(live_question_item, pending),
            "</section>",
            f"<details><summary>Charts</summary>{''.join(figures(shown))}</details>",
            '<section aria-label="Calls">',
            search_fields(),
            '<ol id="calls">',
            *(live_call_item(live) for live in calls),
            "</ol>",
            f'<p><a href="{escaped(older)}">Older calls</a></p>' if older else "",
            f"</section></main><script>{REPORT_SCRIPT}{_SCRIPT}</script></body></html>\n",
        ]
    )


def outcome_page(text: str) -> str:
    """The page to send after a form was submitted, for browsers without JavaScript."""
    back = '<p><a href="/">Back to the calls</a></p>'
    told = f'<main><p role="status">{escaped(text)}</p>{back}</main></body></html>\n'
    return "".join([*_page_head("handtools"), told])


def forwarding_page(link: str) -> str:
    """A page that redirects to a link, and shows it in case the browser does not follow the redirect."""
    address = escaped(link)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={address}"><title>handtools</title></head>'
        f'<body><a href="{address}">handtools view</a></body></html>\n'
    )


def content_policy() -> str:
    """The content security policy of the live view: allow only our script, our style and this server."""
    return (
        f"default-src 'none'; style-src '{source_hash(_ALL_STYLE)}'; "
        f"script-src '{source_hash(REPORT_SCRIPT + _SCRIPT)}'; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def live_call_item(live: LiveCall) -> str:
    """Render a call as an HTML list item, with buttons for its actions."""
    buttons = "".join(
        f'<form method="post" action="/{action}"><input type="hidden" name="call" value="{escaped(live.id)}">'
        f"<button>{action.capitalize()}</button></form>"
        for action in live.actions
    )
    shown = f'<div class="actions">{buttons}</div>' if buttons else ""
    return call_item(live.call, LIVE_VIEW_BYTES_PER_CALL, actions=shown)


def live_question_item(pending: "PendingApproval") -> str:
    """An approval request with its subject, the rule that caused it, its preview and answer buttons."""
    approval = pending.approval
    session = f"session {pending.session}" if pending.session else ""
    waits = "the agent is waiting" if pending.is_awaited else ""
    asked_by = " · ".join(filter(None, (pending.tool, session, pending.agent, waits)))
    answers = "".join(
        f'<button name="answer" value="{value}">{words}</button>'
        for value, words in (
            ("once", "Allow once"),
            ("session", "Allow for this session"),
            ("project", "Allow for this project"),
        )
    )
    number = escaped(approval.call_id)
    return (
        f'<article id="question-{number}" data-question="{escaped(approval.fingerprint)}">'
        f"<h2>? {escaped(approval.title)}</h2>"
        f"<p><small>{escaped(asked_by)} · {escaped(approval.rule)}</small></p>"
        f"<pre tabindex=0>{coloured_diff(approval.preview, LIVE_QUESTION_BYTES)}</pre>"
        f'<form method="post" action="/answer"><input type="hidden" name="call" value="{number}">'
        f'<input type="hidden" name="fingerprint" value="{escaped(approval.fingerprint)}">'
        f'<div class="actions">{answers}</div><p><small>{_remembered_rule_html(approval.remembered)}</small></p>'
        '<div class="actions"><label>What to do instead '
        '<input type="text" name="message" autocomplete="off"></label>'
        '<button name="answer" value="deny" class="no">Deny</button></div></form></article>'
    )


def _remembered_rule_html(remembered: str) -> str:
    if not remembered:
        return "This approval can't be remembered: every such call needs approval again."
    lines = " · ".join(remembered.split("\n"))
    return f"For the session or the project, this rule is remembered: <code>{escaped(lines)}</code>"


def _page_head(name: str) -> Iterable[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f"<title>{name}</title><style>{_ALL_STYLE}</style></head><body>"


_STYLE = """
article{border:2px solid var(--open);border-radius:6px;padding:.6rem .8rem;margin:1rem 0}
h2{font-size:1.05rem;margin:0}article p{margin:.3rem 0}article pre{max-height:24rem}
.actions{display:flex;gap:.6rem;flex-wrap:wrap;align-items:center;margin:.6rem 0}
.actions label{display:flex;gap:.4rem;flex:1 1 16rem;align-items:center}.actions label input{flex:1;min-width:0}
form{margin:0}button,input[type=text]{font:inherit;padding:.25rem .7rem;border:1px solid var(--faint);
border-radius:4px;background:var(--back);color:var(--text)}
button{cursor:pointer;background:var(--panel)}button:hover{border-color:var(--text)}.no{color:var(--bad)}
button:focus-visible,a:focus-visible{outline:2px solid var(--bar);outline-offset:1px}a{color:var(--bar)}
#status:not(:empty){border-left:4px solid var(--bar);padding-left:.6rem;color:var(--text);white-space:pre-wrap}
"""
_ALL_STYLE = REPORT_STYLE + _STYLE
_SCRIPT = """
const told=document.getElementById("status"),calls=document.getElementById("calls");
const questions=document.getElementById("questions"),main=document.querySelector("main");
const parts="summary,button,pre";
function made(html){const holder=document.createElement("template");holder.innerHTML=html;
return holder.content.firstElementChild}
document.addEventListener("submit",async event=>{event.preventDefault();const form=event.target;
const sent=new URLSearchParams(new FormData(form,event.submitter));
for(const button of form.querySelectorAll("button"))button.disabled=true;
told.textContent="Working …";
try{const answer=await fetch(form.action,{method:"POST",body:sent,headers:{accept:"text/plain"}});
told.textContent=await answer.text()}
catch(problem){told.textContent="The server does not respond. Is it still running?"}
for(const button of form.querySelectorAll("button"))button.disabled=false});
function showQuestions(given){
for(const card of [...questions.children])if(given[card.id]===undefined||
!given[card.id].includes('data-question="'+card.dataset.question+'"'))card.remove();
for(const[id,html]of Object.entries(given)){const card=document.getElementById(id),now=made(html);
if(card)card.querySelector("small").replaceWith(now.querySelector("small"));else questions.append(now)}
document.title=(questions.children.length?"("+questions.children.length+") ":"")+
document.querySelector("h1").textContent}
function showCalls(given){
for(const[id,html]of given){const row=made(html),old=document.getElementById(id);
if(old){const at=[...old.querySelectorAll(parts)].indexOf(document.activeElement);
row.firstElementChild.open=old.firstElementChild.open;old.replaceWith(row);
if(at>=0)row.querySelectorAll(parts)[at]?.focus()}else calls.prepend(row)}
if(given.length)choose()}
if(main.dataset.events){const source=new EventSource(main.dataset.events);
source.onmessage=event=>{const news=JSON.parse(event.data);showCalls(news.calls);showQuestions(news.questions);
if(news.cut)location.reload()};
source.onerror=()=>{told.textContent="Not connected: new calls are not shown."};
source.onopen=()=>{if(told.textContent.startsWith("Not connected"))told.textContent=""}}
"""
