"""P-2: the rules of chat completions against Mistral's own validator, on recorded and on enumerated chats.

Where the two differ by design, the difference is counted here to the last chat.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.formats.recorded import recorded
from tests.formats.rules import examples as ex
from tests.formats.rules.mistral import Validator, foreign_parts
from tests.formats.rules.mutant import Mutant
from tests.formats.rules.openai_mutants import breaking_chat, preserving_chat
from turnlog.formats import ProblemLevel, problems

pytestmark = pytest.mark.cross_check

Fields = dict[str, Any]
#: How often each thing was said of mutants of each kind. None: the mutant was taken.
Verdicts = Counter[tuple[str, str | None]]

UNBALANCED: Final = "Not the same number of function calls and responses"
UNEXPECTED: Final = "Unexpected tool call id ... in tool results"
SECOND_RESULT: Final = "Duplicate tool call id ... in tool results"
SECOND_CALL: Final = "Duplicate tool call id ... in assistant message"
NO_CALL: Final = "Unexpected role 'tool' after role 'user'"
SYSTEM_LATE: Final = "Unexpected role 'system' after role '%s'"
BAD_END: Final = "Expected last role User or Tool (or Assistant with prefix) for serving but got assistant"
BAD_START: Final = "Conversation must start with a user message or system message"
EMPTY: Final = "Conversation must have at least one message"


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator()


def accepted() -> list[Fields]:
    """The chats that providers accepted."""
    return [request.request for request in recorded() if request.is_accepted and request.api == "openai-chat"]


def understood() -> list[Fields]:
    """Those of them that Mistral's messages can hold."""
    return [request for request in accepted() if not foreign_parts(request)]


def is_refused(request: Fields) -> bool:
    return any(problem.level is ProblemLevel.ERROR for problem in problems(request, "openai-chat"))


def verdicts(validator: Validator, mutants: Callable[[Fields], Iterator[Mutant]], *, refused: bool) -> Verdicts:
    """What the validator says of the mutants, of each of which our rules say that it is refused, or that it is not."""
    said: Verdicts = Counter()
    for request in understood():
        for mutant in mutants(request):
            assert is_refused(mutant.request) is refused, mutant
            said[mutant.how, validator.refusal(mutant.request)] += 1
    return said


def test_all_but_chats_with_parts_of_other_providers_are_asked_about() -> None:
    assert len(accepted()) == 503
    kinds = Counter(kind for request in accepted() for kind in foreign_parts(request))
    assert kinds == {"document_url": 6, "file": 14, "video_url": 2}
    assert len(understood()) == 503 - 22


def test_both_take_every_recorded_chat_that_was_accepted(validator: Validator) -> None:
    assert Counter((validator.refusal(request), is_refused(request)) for request in understood()) == {
        (None, False): 481
    }


def test_both_take_what_leaves_a_chat_right(validator: Validator) -> None:
    assert verdicts(validator, preserving_chat, refused=False) == {
        ("add text", None): 635,
        ("rename an id throughout", None): 155,
        ("split a message", None): 43,
        ("split a reply", None): 9,
    }


def test_both_refuse_what_breaks_a_chat_and_only_what_stands_first_is_not_looked_at_by_mistral(
    validator: Validator,
) -> None:
    said = verdicts(validator, breaking_chat, refused=True)
    assert {kind: count for kind, count in said.items() if kind[1] is None} == {("cut before the result", None): 49}
    assert said == {
        ("drop a result", UNBALANCED): 155,
        ("double a result", SECOND_RESULT): 155,
        ("rename a result", UNEXPECTED): 155,
        ("drop a call", UNEXPECTED): 155,
        ("double a call", SECOND_CALL): 155,
        ("cut behind the call", UNBALANCED): 155,
        ("put a message between", NO_CALL): 155,
        ("swap call and result", NO_CALL): 131,
        ("swap call and result", UNEXPECTED): 24,
        ("cut before the result", UNEXPECTED): 54,
        ("cut before the result", BAD_START): 52,
        ("cut before the result", None): 49,
    }


def test_the_chats_that_mistral_takes_without_the_call_are_those_in_which_one_lone_result_stands_first(
    validator: Validator,
) -> None:
    for request in understood():
        for mutant in breaking_chat(request):
            if mutant.how == "cut before the result":
                roles = [message["role"] for message in mutant.request["messages"]]
                is_lone = len(roles) > 1 and roles[1] != "tool"
                assert (validator.refusal(mutant.request) is None) is is_lone, roles


#: Messages of which all orders are tried. The calls a and b are asked for alone, together, and a twice at once.
MESSAGES: Final[dict[str, Fields]] = {
    "user": ex.ASK,
    "answer": {"role": "assistant", "content": "Cold."},
    "call a": ex.calls("a"),
    "call a b": ex.calls("a", "b"),
    "call a a": ex.calls("a", "a"),
    "result a": ex.tool("a"),
    "result b": ex.tool("b"),
}


def orders(longest: int) -> Iterator[tuple[str, ...]]:
    """Every sequence of the messages, from the empty one on."""
    for length in range(longest + 1):
        yield from itertools.product(MESSAGES, repeat=length)


def chat_of(names: tuple[str, ...]) -> Fields:
    return ex.chat(*(MESSAGES[name] for name in names))


def test_both_say_the_same_of_every_order_of_messages_behind_a_question(validator: Validator) -> None:
    """Up to five messages after the first: no chat is refused by one of the two alone."""
    said = Counter[bool]()
    for names in orders(5):
        chat = chat_of(("user", *names))
        refused = is_refused(chat)
        assert (validator.refusal(chat) is not None) is refused, names
        said[refused] += 1
    assert said == {True: 19_451, False: 157}


def test_orders_that_begin_otherwise_differ_only_by_the_first_message(validator: Validator) -> None:
    """Mistral neither counts the calls of a first message, nor asks what a first result answers."""
    taken, refused = Counter[str](), Counter[str]()
    for names in orders(4):
        chat = chat_of(names)
        refusal = validator.refusal(chat)
        if refusal is None and is_refused(chat):
            taken[names[0]] += 1
        if refusal is not None and not is_refused(chat):
            refused[f"{names[0]}: {refusal}"] += 1
    assert taken == {"call a": 21, "call a b": 21, "call a a": 21, "result a": 21, "result b": 21}
    assert refused == {f"answer: {BAD_START}": 1, f"call a: {UNEXPECTED}": 8, f"call a b: {UNEXPECTED}": 6}


@pytest.mark.parametrize(
    ("chat", "refusal"),
    [
        (ex.chat(ex.ASK, MESSAGES["answer"], {"role": "system", "content": "Be brief."}), SYSTEM_LATE % "assistant"),
        (
            ex.chat(ex.ASK, ex.calls("a"), ex.tool("a"), {"role": "developer", "content": "Be brief."}),
            SYSTEM_LATE % "tool",
        ),
        (ex.chat(MESSAGES["answer"]), BAD_START),
    ],
)
def test_mistral_alone_refuses_late_system_messages_and_a_lone_answer(
    validator: Validator, chat: Fields, refusal: str
) -> None:
    assert problems(chat, "openai-chat") == []
    assert validator.refusal(chat) == refusal


def test_mistral_alone_refuses_an_answer_at_the_end_that_does_not_say_it_goes_on(validator: Validator) -> None:
    chat = chat_of(("user", "answer"))
    assert problems(chat, "openai-chat") == []
    assert (validator.refusal(chat), validator.refusal(chat, goes_on=False)) == (None, BAD_END)


#: What Mistral says of the example of each rule. The last ones are OpenAI's rules alone.
EXAMPLES: Final[dict[str, str | None]] = {
    "messages-empty": EMPTY,
    "tool-call-unanswered": UNBALANCED,
    "tool-result-unexpected": NO_CALL,
    "tool-result-unknown": UNEXPECTED,
    "tool-result-duplicate": SECOND_RESULT,
    "tool-call-duplicate": SECOND_CALL,
    "role-of-model": None,
    "tool-calls-empty": None,
    "tool-call-id-too-long": None,
    "content-too-long": None,
    "content-missing": None,
    "tool-part": None,
    "audio": None,
}
#: Rules of form, whose examples are no messages of Mistral's at all.
OF_FORM: Final = {"role", "part-type-missing"}


def test_the_example_of_every_rule_of_order_is_refused_by_both(validator: Validator) -> None:
    examples = {
        example.rule.removeprefix("openai-chat."): example.request
        for example in (*ex.ALONE, *(example for example, _ in ex.TOGETHER))
        if example.rule.startswith("openai-chat.")
    }
    assert {rule: validator.refusal(examples[rule]) for rule in examples if rule not in OF_FORM} == EXAMPLES
    assert all(rule in examples for rule in OF_FORM)
