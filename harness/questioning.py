"""Puts questions to a judge, all at once: each at most twice, within a time, and whatever it does is an opinion.

Refuses to know where a judge comes from and what is asked.
"""

import asyncio
import secrets
from collections.abc import Sequence

from harness.judges import Judge, JudgeError
from harness.opinion import AGAIN, SYSTEM, Opinion, OpinionError, Question, read_opinion

ATTEMPTS = 2


def ask_all(judge: Judge, questions: Sequence[Question], seconds: float) -> list[Opinion]:
    """An opinion on each question, in their order; one answer may take `seconds`. Never raises."""
    return asyncio.run(_all(judge, questions, seconds))


async def _all(judge: Judge, questions: Sequence[Question], seconds: float) -> list[Opinion]:
    return await asyncio.gather(*(_asked(judge, question, seconds) for question in questions))


async def _asked(judge: Judge, question: Question, seconds: float) -> Opinion:
    why = ""
    for attempt in range(1, ATTEMPTS + 1):
        prompt = question.prompt(lambda: secrets.token_hex(16)) + (AGAIN if attempt > 1 else "")
        try:
            text = await asyncio.wait_for(judge.ask(SYSTEM, prompt, question, attempt), seconds)
            success, reasoning = read_opinion(text)
        except TimeoutError:
            why = f"no answer within {seconds:g} s"
        except OpinionError as error:
            why = f"its answer is no opinion: {error}"
        except JudgeError as error:
            why = str(error)
        except Exception as error:  # whatever a library throws is the judge's failure, and never the trial's
            why = f"{type(error).__name__}"
        else:
            return Opinion(judge.name, success, reasoning, attempt)
    return Opinion(judge.name, None, why, ATTEMPTS)
