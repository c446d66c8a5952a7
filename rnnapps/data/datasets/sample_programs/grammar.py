"""A small grammar of Python programs such as beginners write.

Every program is an exercise: work something out and print it, add up a list, find its largest
number, count down, write a function and call it.

    def most(marks):
        best = marks[0]
        for mark in marks:
            if mark > best:
                best = mark
        return best
    print(most([30, 7, 75]))

A production is a template: a piece of a program with slots in braces. A slot is one of

- another symbol of `GRAMMAR`. On a line of its own it may expand to several lines, which are then
  indented as it is. `{term:x,i}` says in which variables to expand it; without a colon they stay
  those of the template around it. Inside, `{v}` is any of the variables, and `{w}` another one than
  the last, or a digit where there is no other;
- a name of `NAMES`, which stays the same in the whole program.

The templates see to it that a program makes sense, not only that it parses: a variable is assigned
before it is used, a function is called with as many arguments as it has parameters, nothing is
divided by zero, no index is out of range, and every loop and every recursion ends. To write such
programs a model has to keep in mind which brackets are open (up to four at a time), how many blocks
(up to three), and which names were introduced.

The module needs only the standard library.
"""

import random
import re
import textwrap
from collections.abc import Iterator, Sequence

SPLIT_SIZES = {"train": 6000, "dev": 500, "test": 500}
CHARACTERS = (40, 250)
LINES = (2, 10)

SLOT = re.compile(r"\{(\w+)(?::([\w,]+))?\}")


def _templates(text: str) -> tuple[str, ...]:
    """Splits templates of several lines, with an empty line between one and the next."""
    return tuple(textwrap.dedent(text).strip().split("\n\n"))


# Names that go together: a program draws one set of each row.
NAMES = {
    ("a", "b", "c"): (("a", "b", "c"), ("p", "q", "r")),
    ("xs", "x"): (("xs", "x"), ("items", "item"), ("marks", "mark")),
    ("total",): (("total",), ("result",)),
}

GRAMMAR = {
    "program": (
        *("{arithmetic}",) * 4,
        *("{choice}",) * 3,
        *("{list}",) * 6,
        *("{range}",) * 4,
        *("{while}",) * 4,
        *("{function}",) * 8,
    ),
    # Values are worked out one after the other.
    "arithmetic": _templates("""
    {a} = {number}
    {b} = {number}
    print({deep:a,b})

    {a} = {number}
    {b} = {deep:a}
    print({a}, {b}, {expression:a,b})

    {a} = {number}
    {b} = {expression:a}
    {c} = {deep:a,b}
    print({c} {operator} {grouped:a,b} * {d})

    {a} = {deep:d}
    {b} = {deep:a}
    {a}, {b} = {b}, {a}
    print({expression:a,b}, {deep:a,b})
    """),
    # What is printed depends on a value.
    "choice": _templates("""
    n = {deep:d}
    if n % 2 == 0:
        print("even")
    else:
        print("odd")

    {a} = {number}
    {b} = {deep:a}
    if {a} > {b}:
        print({expression:a,b})
    elif {a} < {b}:
        print({expression:a,b})
    else:
        print("equal")

    mark = {nn}
    if mark > 8{d}:
        print("great")
    elif mark > 5{d}:
        print("good")
    else:
        print("poor")

    {a} = {number}
    {b} = {deep:a}
    if {comparison:a,b}:
        {b} = {expression:a,b}
    print({deep:a,b})

    {a} = {number}
    {b} = {number}
    if {condition:a}:
        if {condition:b}:
            print("both")
        else:
            print({expression:a,b})
    else:
        print({deep:a,b})
    """),
    # A list is gone through.
    "list": _templates("""
    {xs} = {numbers}
    print({measure}, {measure})

    {total} = 0
    for {x} in {numbers}:
        {add:x}
    print({total})

    count = 0
    for {x} in {numbers}:
        if {condition:x}:
            count = count + 1
    print(count)

    {xs} = {numbers}
    best = {xs}[0]
    for {x} in {xs}:
        if {x} {order} best:
            best = {x}
    print(best)

    {xs} = []
    for i in range({d}):
        {append:i}
    print({xs})

    {xs} = []
    for {x} in {numbers}:
        {append:x}
    print({xs}, len({xs}))

    for {x} in {numbers}:
        {show:x}

    {total} = 0
    for row in {rows}:
        for {x} in row:
            {add:x}
    print({total})
    """),
    # A range is gone through.
    "range": _templates("""
    for i in range({d}):
        {show:i}

    n = {d}
    for i in range(n):
        print({expression:i,n})

    {total} = 0
    for i in range(1, {nn}):
        {add:i}
    print({total})

    for i in range({d}):
        for j in range({d}):
            {show:i,j}

    {total} = 1
    for i in range(1, {d}):
        {total} = {total} * {grouped:i}
    print({total})

    for i in range(1, {nn}):
        if i % 3 == 0:
            print("fizz")
        elif i % 5 == 0:
            print("buzz")
        else:
            print({term:i})
    """),
    # A loop goes on for as long as a condition holds.
    "while": _templates("""
    n = {nn}
    while n > 0:
        {show:n}
        n = n - {step}

    n = {nn}
    {total} = 0
    while n > {d}:
        {add:n}
        n = n - {step}
    print({total})

    n = {d}
    while n < {nn}:
        {show:n}
        n = n * {divisor}

    n = {nn}
    count = 0
    while n > 1:
        n = n // {divisor}
        count = count + 1
    print(n, count)

    n = {nn}
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = n - 1
        print({term:n})

    n = {nn}{d}{d}
    {total} = 0
    while n > 0:
        {total} = {total} + n % 10
        n = n // 10
    print({total})

    {a} = {nn}
    {b} = {nn}
    while {b} > 0:
        {a}, {b} = {b}, {a} % {b}
    print({a})

    {a}, {b} = 0, 1
    while {a} < {nn}:
        {show:a}
        {a}, {b} = {b}, {a} + {b}

    {xs} = {numbers}
    i = 0
    while i < len({xs}):
        print({xs}[i] {operator} {grouped:i})
        i = i + 1
    """),
    # A function is defined and called.
    "function": _templates("""
    def f({a}):
        return {deep:a}
    {call_one}

    def f({a}, {b}):
        return {deep:a,b}
    {call_two}

    def f({a}, {b}):
        {c} = {deep:a,b}
        return {c} {operator} {grouped:a,b} * {d}
    {call_two}

    def f({a}):
        return {expression:a}
    def g({a}):
        return f({a}) {operator} f({term:a})
    print(g({d}))

    def f({a}, {b}):
        if {a} {order} {b}:
            return {a}
        return {b}
    {call_two}

    def f({a}):
        if {condition:a}:
            return {expression:a}
        else:
            return {deep:a}
    {call_one}

    def fact(n):
        if n < 2:
            return 1
        return n * fact(n - 1)
    print(fact({d}) {operator} {deep:d})

    def fact(n):
        {total} = 1
        for i in range(1, n + 1):
            {total} = {total} * i
        return {total}
    print(fact({d}), fact({d}))

    def power({a}, n):
        if n == 0:
            return 1
        return {a} * power({a}, n - 1)
    print(power({d}, {d}))

    def gcd({a}, {b}):
        if {b} == 0:
            return {a}
        return gcd({b}, {a} % {b})
    print(gcd({nn}, {nn}))

    def most({xs}):
        best = {xs}[0]
        for {x} in {xs}:
            if {x} > best:
                best = {x}
        return best
    print(most({numbers}))

    def f({xs}):
        {total} = 0
        for {x} in {xs}:
            {add:x}
        return {total}
    print(f({numbers}))

    def count({xs}, n):
        {total} = 0
        for {x} in {xs}:
            if {x} {order} n:
                {total} = {total} + 1
        return {total}
    print(count({numbers}, {nn}))

    def even(n):
        return n % 2 == 0
    for i in range({d}):
        if even({expression:i}):
            print({term:i})
    """),
    # Statements
    "add": _templates("""
    {total} = {total} + {term}

    {total} = {total} + {grouped} * {d}

    if {condition}:
        {total} = {total} + {term}

    if {condition}:
        {total} = {total} + {term}

    if {condition}:
        {total} = {total} + {v}
    else:
        {total} = {total} - {d}
    """),
    "append": _templates("""
    {xs}.append({expression})

    if {condition}:
        {xs}.append({term})
    """),
    "show": _templates("""
    print({v}, {expression})

    if {condition}:
        print({term})

    if {condition}:
        print({v})
    else:
        print({expression})
    """),
    "call_one": _templates("""
    print(f({nn}))

    print(f({d}) {operator} f({d}))

    print(f(f({d})))

    print(f(f(f({d}))))

    for i in range({d}):
        print(f({term:i}))
    """),
    "call_two": _templates("""
    print(f({d}, {nn}))

    print(f(f({d}, {d}), {d}))

    print(f({d}, f({d}, {d})))

    print(f(f({d}, {d}), f({d}, {d})))

    for i in range({d}):
        print(f(i, {term:i}))
    """),
    # Conditions
    "condition": (
        "{v} > {d}",
        "{v} < {d}",
        "{v} % {divisor} == 0",
        "{v} % {divisor} == 1",
        "({v} {operator} {d}) % {divisor} == 0",
        "{comparison}",
    ),
    "comparison": (
        "{v} {order} {w}",
        "{v} * {d} {order} {w}",
        "{v} != {w}",
    ),
    # Numbers worked out from the variables, from the simplest to the most nested
    "term": (
        "{v}",
        "{v} {operator} {d}",
        "{v} * {d}",
        "{grouped} * {d}",
    ),
    "grouped": (
        "{v}",
        "({v} {operator} {w})",
        "({v} {operator} {d})",
    ),
    "expression": (
        "{v} {operator} {w}",
        "{v} * {w} {operator} {d}",
        "{d} * {grouped}",
        "{grouped} * {grouped}",
    ),
    "deep": (
        "{v} * ({w} {operator} {d})",
        "({v} {operator} {d}) * ({w} {operator} {d})",
        "({v} {operator} {w}) * {d} {operator} {v}",
        "({expression}) * {d}",
        "(({v} {operator} {d}) * {d} {operator} {w}) % {divisor}",
    ),
    "measure": (
        "sum({xs})",
        "len({xs}) * {d}",
        "max({xs}) - min({xs})",
        "(max({xs}) + min({xs})) // 2",
        "sum({xs}) // len({xs})",
        "{xs}[0] {operator} {xs}[{index}]",
        "{d} * ({xs}[{index}] {operator} {d})",
    ),
    # Constants
    "number": ("{d}", "{nn}", "{d} * {d}", "{d} + {nn}"),
    "numbers": ("[{nn}, {nn}, {d}]", "[{d}, {d}, {d}, {d}]", "[{d}, {nn}, {d}, {nn}]"),
    "rows": ("[[{d}, {d}], [{d}, {d}]]", "[[{nn}, {d}], [{d}, {nn}]]"),
    "operator": ("+", "+", "-"),
    "order": (">", "<"),
    "index": ("1", "2"),
    "step": ("1", "2", "5", "10"),
    "divisor": ("2", "3", "4", "5"),
    "d": tuple("23456789"),
    "nn": tuple("10 12 15 18 20 24 25 30 36 40 48 50 60 72 75 80 90 99".split()),
}


def programs() -> Iterator[str]:
    """Yields programs without end, the same ones in the same order on every machine.

    No program comes twice. All have from 40 to 250 characters and from 2 to 10 lines, without an
    empty one among them or behind them; a block is indented by four blanks.

    Returns:
        Iterator of programs.

    Example:

    >>> print(next(programs()))
    def f(p, q):
        r = ((p + 6) * 4 + q) % 4
        return r + p * 9
    print(f(7, f(2, 5)))
    """
    rng = random.Random("rnnapps sample programs 1.0.0")
    seen = set()
    while True:
        text = _Writer(rng).expand("program")
        fits = CHARACTERS[0] <= len(text) <= CHARACTERS[1]
        if fits and LINES[0] <= text.count("\n") + 1 <= LINES[1] and text not in seen:
            seen.add(text)
            yield text


class _Writer:
    """Writes one program: a name means the same from its first line to its last."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self._names = {}
        for roles, sets in NAMES.items():
            self._names.update(zip(roles, self._choose(sets), strict=True))
        self._last = None

    def expand(self, symbol: str, variables: Sequence[str] = ()) -> str:
        """Returns a text of the symbol that uses the variables."""
        template = self._choose(GRAMMAR[symbol])

        def fill(slot: re.Match) -> str:
            name, scope = slot[1], slot[2]
            if name in self._names:
                return self._names[name]
            if name in ("v", "w"):
                return self._variable(variables, other=name == "w")
            inner = scope.split(",") if scope else variables
            text = self.expand(name, inner)
            before = template[template.rfind("\n", 0, slot.start()) + 1 : slot.start()]
            return text.replace("\n", "\n" + before) if before.isspace() else text

        return SLOT.sub(fill, template)

    def _variable(self, variables: Sequence[str], other: bool) -> str:
        """Draws a variable, or a digit in its place; `other` asks for another one than the last."""
        choices = [role for role in variables if not other or role != self._last] or ["d"]
        self._last = self._choose(choices)
        if self._last in GRAMMAR:
            return self.expand(self._last)
        return self._names.get(self._last, self._last)

    def _choose(self, options: Sequence):
        # Only `random()` is promised to give the same numbers in every version of Python.
        return options[int(self._rng.random() * len(options))]
