"""Instructions that a thread executes in a compiled kernel, counted in its disassembly."""

from __future__ import annotations

import re
from typing import NamedTuple

_LABEL = re.compile(r"^\.(L_\w+):")
_INSTRUCTION = re.compile(r"^\s+(?:/\*[0-9a-f]+\*/)?\s*(?:@!?U?P\w+ +)?([A-Z][A-Z0-9_.]+)(.*);")
_TARGET = re.compile(r"`\(\.(L_\w+)\)")


class Loop(NamedTuple):
    """The loop over a row's entries, and what surrounds it."""

    shortest: int
    """Instructions of the shortest way through the loop: powers that are roots."""
    longest: int
    """Of the longest: powers by logarithms."""
    around: int
    """Of everything else, as if all of it were executed."""


def loop_of(code: str) -> Loop:
    """The largest loop of a kernel in the syntax of nvdisasm.

    Examples
    --------
    >>> loop_of('''
    ...         /*0000*/          MOV R1, R2 ;
    ... .L_x_0:
    ...         /*0010*/          LDG.E R3, [R4] ;
    ...         /*0020*/      @P1 BRA `(.L_x_1) ;
    ...         /*0030*/          FADD R3, R3, R3 ;
    ... .L_x_1:
    ...         /*0040*/     @!P0 BRA `(.L_x_0) ;
    ...         /*0050*/          EXIT ;
    ... ''')
    Loop(shortest=3, longest=4, around=2)
    """
    labels: dict[str, int] = {}
    instructions: list[tuple[str | None, bool]] = []
    for line in code.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif found := _INSTRUCTION.match(line):
            to = _TARGET.search(found[2])
            jumps = found[1].split(".")[0] == "BRA"
            instructions.append((to[1] if to and jumps else None, "@" in line))
    loops = [
        (labels[target], place)
        for place, (target, _) in enumerate(instructions)
        if target is not None and labels.get(target, len(instructions)) < place
    ]
    first, last = max(loops, key=lambda span: span[1] - span[0])
    shortest, longest = {last: 1}, {last: 1}
    for place in range(last - 1, first - 1, -1):
        target, conditional = instructions[place]
        ahead = [] if target is None else [labels[target]]
        ahead = [there for there in ahead if place < there <= last]
        if target is None or conditional:
            ahead.append(place + 1)
        shortest[place] = 1 + min(shortest[there] for there in ahead)
        longest[place] = 1 + max(longest[there] for there in ahead)
    return Loop(shortest[first], longest[first], len(instructions) - (last - first + 1))
