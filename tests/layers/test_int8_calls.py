"""Some of the fuzzer's int8 calls, in every run of the tests; `make sanitize` makes many more, under the sanitizers."""

from collections import Counter

from hypothesis import HealthCheck, given, settings

from tests.layers.int8_calls import Drawn, calls, make


def test_calls_right_and_wrong_are_answered() -> None:
    became: Counter[str] = Counter()

    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(calls())
    def run(drawn: Drawn) -> None:
        became[make(drawn)] += 1

    run()
    assert became["right"] > 10
    assert became["refused"] > 10
