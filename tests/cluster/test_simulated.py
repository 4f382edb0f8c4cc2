"""A cluster of a hundred workers in one process: delays, stragglers and losses change no digit."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.cluster.running import ADDED
from trueline.design.stacked import added_in_pairs

BLOCKS = 700


class Cluster:
    """Workers with speeds of their own, that may die; a task that is lost is done again."""

    def __init__(self, seed, workers=100, stragglers=5, losses=10):
        random = np.random.default_rng(seed)
        self.slow = np.ones(workers)
        self.slow[random.choice(workers, stragglers, replace=False)] = 50.0
        self.dies = dict(
            zip(random.choice(workers, losses, replace=False), random.uniform(0, 9, 99))
        )
        self.random, self.done = random, 0

    def run(self, tasks):
        """The results of the tasks, in their order; each is (function, arguments)."""
        free = [(0.0, w) for w in range(len(self.slow))]
        waiting, found = list(range(len(tasks))), {}
        while waiting:
            now, worker = heapq.heappop(free)
            number = waiting.pop(int(self.random.integers(len(waiting))))
            end = now + self.slow[worker] * self.random.exponential()
            self.done += 1
            if end > self.dies.get(worker, np.inf):
                waiting.append(number)  # and nobody hears of the worker again
                continue
            function, given = tasks[number]
            found[number] = function(*given)
            heapq.heappush(free, (end, worker))
        return [found[i] for i in range(len(tasks))]

    def summed(self, make, blocks, add):
        """The tree that is given to Dask."""
        level = self.run([(make, (block,)) for block in blocks])
        while len(level) > 1:
            groups = [level[i : i + ADDED] for i in range(0, len(level), ADDED)]
            level = self.run([(added_in_pairs, (group, add)) for group in groups])
        return level[0]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_whoever_works_when_the_sum_is_the_same(seed):
    values = np.random.default_rng(1).standard_normal((BLOCKS, 3)) * 10.0 ** np.arange(3)
    cluster = Cluster(seed)
    total = cluster.summed(np.exp, list(values / 1e3), np.add)
    alone = added_in_pairs((np.exp(block) for block in values / 1e3), np.add)
    assert total.tolist() == alone.tolist()
    assert cluster.done >= BLOCKS


@pytest.mark.parametrize("blocks", [1, 7, 8, 9, 64, 65, 1000])
def test_trees_are_as_deep_as_the_logarithm_of_the_blocks(blocks):
    def deeper(one, other):
        return max(one, other) + 1

    depth = Cluster(0).summed(lambda block: 0, range(blocks), deeper)
    assert depth <= np.ceil(np.log2(blocks)) + 1
