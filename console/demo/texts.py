"""What the demo's agents have to tell, drawn from a seeded source. Everything here is made up."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

CITIES: Final = ("Bergen", "Cork", "Ghent", "Lund", "Porto", "Tartu", "Turin", "Vaasa")
_GOODS: Final = ("slate tiles", "oak boards", "copper pipe", "roof felt", "lime plaster", "window glass", "pine laths")
_PEOPLE: Final = ("Ada", "Bo", "Carla", "Dara", "Edith", "Farid", "Greta", "Hugo", "Ines", "Jon", "Kaya", "Lars")
_COMPLAINTS: Final = (
    ("The invoice names the wrong city", "We are in {city}, and the invoice says {other}. Please send a new one."),
    ("One box of {goods} is missing", "Twelve boxes were ordered, eleven have come to {city}."),
    ("The form loses the postcode", "When I go back one page the postcode of {city} is gone from the form."),
    ("Paid twice for {goods}", "The card was charged on Monday and again on Tuesday."),
    ("Delivery to {city} came at night", "Nobody was there. The {goods} stood in the rain until the morning."),
    ("The price of {goods} differs", "The page says one price and the basket another."),
    ("No answer since last week", "I asked about {goods} for {city} and heard nothing."),
    ("The password letter is empty", "The letter came, and there is nothing in it."),
)
_ADVICE: Final = (
    "Orders that arrive before noon leave the yard on the same day.",
    "Boxes are counted twice, once at the gate and once on the lorry.",
    "Glass is never stacked, whatever the label on its crate says.",
    "A page goes online only after somebody has looked at its preview.",
    "Prices are given without freight; freight depends on the city.",
    "Whoever closes a ticket writes down how it was solved.",
    "The price list is renewed on the first working day of the month.",
    "Broken tiles are taken back until thirty days after delivery.",
    "Write the order number on every letter, or it will not be found.",
    "The gate in Lund is closed on Fridays after three.",
    "Ask for the long lorry when boards are longer than four metres.",
    "Old releases stay in their folder until nobody asks for them.",
)
_DEEDS: Final = ("counted", "covered", "looked for", "measured", "moved", "signed for", "weighed")
_PLACES: Final = ("at the gate", "behind the hall", "by the scales", "in the long shed", "on the lorry", "on the quay")
_TIMES: Final = ("after dark", "at noon", "before breakfast", "in the rain", "on a Monday", "twice", "without a word")
_REASONS: Final = (
    "the prices have changed",
    "a page had a wrong telephone number",
    "the opening hours are new",
    "two readers could not find the contact page",
    "the changelog was behind",
)


@dataclass(frozen=True, slots=True)
class Order:
    """One line of data/orders.csv. `price` is in cents."""

    number: int
    goods: str
    count: int
    price: int
    city: str

    @classmethod
    def draw(cls, rng: Random, number: int) -> Order:
        return cls(number, rng.choice(_GOODS), rng.randint(1, 40), rng.randint(300, 9_900), rng.choice(CITIES))

    @classmethod
    def parse(cls, line: str) -> Order:
        number, goods, count, price, city = line.rstrip("\n").split(",")
        return cls(int(number), goods, int(count), int(price), city)

    def line(self) -> str:
        return f"{self.number},{self.goods},{self.count},{self.price},{self.city}\n"

    def sentence(self) -> str:
        """The order in words."""
        total = self.count * self.price
        boxes = "one box" if self.count == 1 else f"{self.count} boxes"
        return (
            f"Order {self.number} is {boxes} of {self.goods} for {self.city}, {total // 100}.{total % 100:02} in all."
        )


def ticket(rng: Random, number: int) -> str:
    """A customer's letter: who, what about, and what."""
    subject, body = rng.choice(_COMPLAINTS)
    city, other = rng.sample(CITIES, 2)
    goods = rng.choice(_GOODS)
    subject, body = (part.format(city=city, other=other, goods=goods) for part in (subject, body))
    return f"From: {rng.choice(_PEOPLE)}\nAbout: {subject}\nNumber: {number}\n\n{body}\n"


def advice(rng: Random) -> str:
    """One sentence for the guide."""
    return rng.choice(_ADVICE)


def tale(rng: Random) -> str:
    """One sentence for a book."""
    person, deed, goods, place, time = map(rng.choice, (_PEOPLE, _DEEDS, _GOODS, _PLACES, _TIMES))
    return f"{person} {deed} the {goods} {place} in {rng.choice(CITIES)} {time}."


def reason(rng: Random) -> str:
    """Why the site is published anew, to follow "because"."""
    return rng.choice(_REASONS)


def page(rng: Random, title: str, sentences: int) -> str:
    """A page of the site, one sentence a line, none of them twice. Raises ValueError for more than there are."""
    return f"# {title}\n\n" + "".join(f"{line}\n" for line in rng.sample(_ADVICE, sentences))


def book(rng: Random, title: str, sentences: int) -> str:
    """A book of the library, one sentence a line."""
    return f"On {title}\n\n" + "".join(f"{tale(rng)}\n" for _ in range(sentences))


def pieces(sentence: str, count: int) -> list[str]:
    """The sentence in at most `count` parts, cut between words; put together they are the sentence."""
    words = sentence.split(" ")
    size = -(-len(words) // count)
    parts = [" ".join(words[start : start + size]) for start in range(0, len(words), size)]
    return [parts[0], *(f" {part}" for part in parts[1:])]
