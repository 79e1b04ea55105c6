"""Activations that are recomputed are the right ones, and few enough."""

from __future__ import annotations

import weakref

import pytest

from plap.kernels.budget import backwards, held, kept, sparsest

STEPS = (1, 2, 3, 4, 5, 9, 10, 16, 17)


class State:
    def __init__(self, step: int) -> None:
        self.step = step


@pytest.mark.parametrize("every", [1, 2, 3, 4, 20])
@pytest.mark.parametrize("steps", STEPS)
def test_every_step_comes_back_and_no_more_states_exist_than_said(steps: int, every: int) -> None:
    alive: weakref.WeakSet[State] = weakref.WeakSet()
    most = taken = 0

    def state(step: int) -> State:
        nonlocal most
        made = State(step)
        alive.add(made)
        most = max(most, len(alive))
        return made

    def advance(before: State, k: int) -> State:
        nonlocal taken
        assert before.step == k
        taken += 1
        return state(k + 1)

    states = [state(k) for k in range(0, steps, every)]
    assert len(states) == kept(steps, every)
    following = None
    seen = []
    for k, before in backwards(states, steps, every, advance):
        assert before.step == k
        assert following is None or following.step == k + 1
        following = before  # a backward pass holds the state after the step too
        seen.append(k)
    assert seen == list(reversed(range(steps)))
    assert taken == steps - kept(steps, every)
    assert most == held(steps, min(every, steps))


@pytest.mark.parametrize("steps", STEPS)
def test_the_sparsest_is(steps: int) -> None:
    best = held(steps, sparsest(steps))
    assert best == min(held(steps, every) for every in range(1, steps + 1))
    assert best <= 2 * steps**0.5 + 1
