"""How much an attempt may use before it is suspended."""

from __future__ import annotations

from dataclasses import dataclass

from watchfloor.protocol.model import Usage


@dataclass(slots=True)
class Budget:
    """Limits of one attempt; None: none. Counted are the attempt's own tokens and the turns that it began."""

    tokens: int | None = None
    turns: int | None = None

    def reached(self, usage: Usage) -> str | None:
        """Which limit is used up, in words; None where there is room."""
        used = usage.input_tokens + usage.output_tokens
        if self.tokens is not None and used >= self.tokens:
            return f"the budget of {self.tokens:,} tokens is used up ({used:,})"
        if self.turns is not None and usage.turns >= self.turns:
            return f"the budget of {self.turns:,} turns is used up ({usage.turns:,})"
        return None

    def tokens_reached(self, usage: Usage) -> str | None:
        """As `reached`, for a turn that has begun: it may be the last one."""
        return Budget(tokens=self.tokens).reached(usage)

    def within(self, usage: Usage) -> Usage:
        """The usage with these limits beside it."""
        return usage.model_copy(update={"budget_tokens": self.tokens, "budget_turns": self.turns})
