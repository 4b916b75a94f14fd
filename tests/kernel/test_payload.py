from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.memory.mem import load, signed
from freshviews.kernel.scalar.failure import ERRORS
from freshviews.kernel.scalar.payload import PAYLOAD_ERRORS, SUM_OVERFLOW, plus, times
from freshviews.types import NULL
from tests.kernel.words import MANY, block

LEAST, GREATEST = -(2**63), 2**63 - 1
int64 = st.integers(LEAST, GREATEST) | st.sampled_from([LEAST, GREATEST, 0, 1, -1, 2**31, 2**32])


@MANY
@given(int64, int64)
def test_sums_and_products_wrap_around_and_report_the_overflow(a: int, b: int) -> None:
    for kernel, exact in ((plus, a + b), (times, a * b)):
        with block([0]) as status:
            assert kernel(a, b, status) == signed(exact)
            beyond = not LEAST <= exact <= GREATEST or (kernel is plus and exact == LEAST)
            assert load(status, 0) == (SUM_OVERFLOW if beyond else 0)


def test_the_first_payload_error_is_kept() -> None:
    with block([7]) as status:
        plus(GREATEST, 1, status)
        times(GREATEST, 2, status)
        assert load(status, 0) == 7


def test_a_sum_equal_to_the_code_of_null_is_reported_as_an_overflow() -> None:
    with block([0]) as status:
        assert plus(LEAST + 1, -1, status) == NULL
        assert load(status, 0) == SUM_OVERFLOW


def test_every_payload_error_has_its_own_text_and_number() -> None:
    assert not set(PAYLOAD_ERRORS) & set(ERRORS)
    assert all(error > 0 and text for error, text in PAYLOAD_ERRORS.items())
