"""Defines the table of scalar operations, which the binder, code generation and tests read.

An operation is one of three kinds:

- **compiled**: ``kernel`` names a function of ``freshviews.kernel.scalar.operations`` over int64 codes;
- **host**: ``host`` is a Python function over Python values (strings, conversions from and to strings);
  ``freshviews.expr.host_evaluation`` evaluates it before the compiled trigger runs;
- **lazy**: has no function; each back end writes it as a conditional. ``case(cond, value, cond, value, ...,
  otherwise)`` and ``coalesce(a, b, ...)`` evaluate an argument only if it is needed. ``attempt(x)`` and ``failed(x)``
  evaluate ``x`` without raising its error. ``in_frame`` is never evaluated: a strategy reads ranges instead.

``and`` and ``or`` are compiled, three-valued over codes. A back end may skip the right argument if the left one decides
the result, as Spark does.

As in Spark SQL's ANSI mode, a result that does not fit is an error and never wraps; the table names the operations that
return NULL instead. A **fallible** compiled operation takes a last argument ``status``, the address of one int64. On an
error the operation returns NULL. If the int64 is still 0, the operation also stores a key of
``freshviews.kernel.scalar.operations.ERRORS`` there. A fallible host function raises ``ValueError`` with the reason.

"int" below is any type whose codes are ordered as integers: integers, BOOLEAN, DATE, TIMESTAMP, INTERVAL, and DECIMALs
of one scale. Factors, divisors, limits, digits and units are BIGINT literals.

=================================================  ====================================================
operation                                          meaning
=================================================  ====================================================
eq ne lt le gt ge (a, b)                           on int; eq and ne also on strings
eq_float ... ge_float (a, b)                       NaN equals NaN and is the greatest
null_safe_eq (a, b)                                any one type; never NULL
only_value (a, b)                                  any one type: a, or an error if b is another value or NULL
attempt (x), failed (x)                            x, or NULL if x fails; TRUE if x fails
unless_counted (x, failed)                         x, or an error if ``failed`` (a row of the group had an error)
unless_failed (x, error)                           x, or the earlier error ``error`` if that is not 0
is_null is_not_null is_true is_nan (x)              never NULL; is_true(NULL) and is_nan(NULL) are false
in_frame (...)                                     true if a row is in the frame of a place (``query.span``)
disjoint (x)                                       as is_true, over two tables: each row of the first table passes with
                                                   at most one row of the second
and or (a, b), not (x)                             three-valued
add_int sub_int mul_int (a, b) neg_int abs_int     64-bit, checked
div_int mod_int (a, b)                             truncate towards zero; mod has the sign of a
pmod_int (a, b)                                    ``((a % b) + b) % b`` with truncating ``%``, as Spark's
bits_and bits_or bits_xor (a, b)                   of int; error where the result is the least int64
shift_left shift_right_signed (x, n, width)        x << n, x >> n, of ``width`` bits: 32 or 64; n modulo the width
shift_right_unsigned (x, n, width)                 x >>> n
bit_count (x)                                      number of ones among the 64 bits of x
bit_get (x, n, width)                              bit n of x; error outside 0..width - 1
try_add_int try_sub_int try_mul_int (a, b)         as without try_, but NULL if the result does not fit 64 bits
try_check_range (x, low, high)                     x; NULL outside low..high
factorial (n)                                      NULL outside 0..20
width_bucket (x, low, high, n)                     number of the bucket of x, if low..high is cut into n equal ones;
                                                   0 below, n + 1 above; NULL if n <= 0 or low = high
check_range (x, low, high)                         x; error outside low..high; checks results of CAST and arithmetic
add_float sub_float mul_float (a, b) neg_float     IEEE
div_float mod_float (a, b)                         error where b = 0
ln log10 log2 (x), log1p (x)                       NULL where x <= 0, where x <= -1
sqrt cbrt exp expm1 sin cos tan asin acos atan     IEEE: NaN where undefined
tanh abs_float (x), power atan2 hypot (a, b)       IEEE: NaN where undefined
sinh cosh asinh acosh atanh (x)                    IEEE: NaN where undefined
rint (x)                                           nearest whole number, as a DOUBLE; between two, the even one
quotient_float (a, b)                              a / b, infinite or NaN where b = 0
mul_rest (a, b)                                    exact a * b, minus the double nearest to it; 0 if that is infinite
comoment (n, x, x', y, y', p, p', q)               sum of (x - mean x) * (y - mean y) over n rows, from the totals of
                                                   x, y and x * y, each a sum of doubles (x + x'); NULL where n = 0
third_moment (n, x, x', p, p', t, t')              sum of (x - mean x)^3 over n rows, from the totals of x, x^2 and x^3
fourth_moment (n, x, x', p, p', t, t', f, f')      sum of (x - mean x)^4, also from the total of x^4
floor_float ceil_float (x)                         BIGINT; error where it does not fit (Spark saturates)
round_float (x, digits)                            HALF_UP on the shortest decimal text of x, as Spark
round_float_even (x, digits)                       as round_float, HALF_EVEN
floor_of_float ceil_of_float (x, scale, digits)    the shortest text of x is rounded HALF_UP to ``scale`` digits after
                                                   the point (DOUBLE 15, FLOAT 7), then down or up to ``digits`` digits;
                                                   the result is a decimal, NULL for NaN and infinities
float_to_char (x, scale, format)                   the same text as number_to_char prints it
scale_up (x, factor)                               x * factor, checked
scale_down scale_down_even (x, factor)             x / factor, HALF_UP, HALF_EVEN
mul_decimal (a, b, divisor)                        a * b / divisor: exact product, HALF_UP, checked
div_decimal (a, b, multiplier)                     a * multiplier / b: exact product, HALF_UP, checked
floor_decimal ceil_decimal (x, factor)             x / factor rounded down, up
round_decimal (x, unit)                            x rounded HALF_UP to a multiple of unit; the scale stays
lt_wide ... least_int_wide                         as the operation without ``_wide``, over DECIMALs of any
                                                   number of digits (``expr.wide``)
wide_of (x), word_of (x)                           x as a wide DECIMAL; in 64 bits, error if they do not hold it
wide_part (x, i), wide_total (p, ...)              a part of a wide DECIMAL; the total of the sums of its parts
wide_quotient (a, scale, b, scale, digits)         a / b with ``digits`` after the point, rounded as Spark does
int_to_float (x), decimal_to_float (x, factor)     nearest double of x, of x / factor
float_to_int (x, low, high)                        truncates; error outside low..high or for NaN
float_to_decimal (x, factor, limit)                shortest text of x, times factor, HALF_UP; error past limit
float_to_float32 (x)                               nearest float32, as a double
float_to_bool int_to_bool (x)                      x <> 0 (NaN is true)
year quarter month day (d)                         of a DATE, proleptic Gregorian
dayofweek (d), weekday (d), dayofyear (d)          1 = Sunday; 0 = Monday; 1..366
weekofyear (d), last_day (d)                       ISO 8601 week; DATE of the month's last day
hour minute second (t)                             of a TIMESTAMP; whole seconds
timestamp_to_date (t), date_to_timestamp (d)       rounds down; checked
date_add_days (d, n), date_diff_days (a, b)        DATE; a - b in days
add_months (d, n), add_months_timestamp (t, n)     day of month clamps to the last one
add_micros (t, n)                                  checked
trunc_date (d, unit)                               ``DATE_UNITS``: 0 year, 1 quarter, 2 month, 3 week (Monday)
trunc_timestamp (t, unit)                          ``TIMESTAMP_UNITS``: also 4 day 5 hour 6 minute 7 second
unix_timestamp (t), timestamp_seconds (n)          seconds since 1970, rounded down; n seconds as a TIMESTAMP, checked
greatest_int least_int (a, b)                      NULLs are skipped
greatest_float least_float (a, b)                  NULLs are skipped; NaN is the greatest
sign_int (x), sign_float (x)                       -1, 0, 1 as the code of an int; as a DOUBLE
lt_string le_string gt_string ge_string (a, b)     by UTF-8 bytes
like ilike (s, pattern[, escape])                  escape is one character, backslash if absent
in_list (x, list)                                  x is a string or an integer code; list is a JSON array of such values
rlike (s, pattern)                                 found anywhere; the pattern is Java's
concat (s, ...), concat_ws (sep, s, ...)           concat_ws skips NULL strings; error past ``strings.LONGEST``, as for
                                                   every operation whose result may be much longer than its arguments
length (s), ascii (s)                              number of characters (code points); the first code point or 0; INT
substring (s, pos[, len])                          1-based; from the end where pos < 0
trim ltrim rtrim (s[, characters])                 spaces if characters is absent
replace (s, search, replacement)                   an empty search changes nothing
lpad rpad (s, n[, pad]), repeat (s, n)             n in characters; pad is a space if absent
left right (s, n)                                  empty where n <= 0
instr (s, sub), locate (sub, s[, pos])             1-based; 0 where absent
upper lower initcap reverse (s)
split_part (s, delimiter, n)                       1-based, from the end where n < 0; error where n = 0
startswith endswith contains (s, part)
int_to_string bool_to_string date_to_string (x)
interval_to_string (i, first, last)                with the numbers of its first and last field
timestamp_to_string (t), float_to_string (x)       fraction without trailing zeros; as Java prints a double
float32_to_string (x)                              as Java prints a float
decimal_to_string (x, scale)
date_format (t, pattern)                           TIMESTAMP; letters G y M L Q q d D F E a H h k K m s S, quoted text
string_to_int (s, low, high)                       surrounding blanks allowed; digits alone, no fraction
string_to_float (s), string_to_decimal (s, p, s)   decimals HALF_UP; error past the precision
string_to_date string_to_timestamp string_to_bool  formats of Spark's CAST
string_to_interval (s, first, last)                as ``1 02:03:04.5``, or as interval_to_string prints it
parse_timestamp (s, pattern)                       by a pattern of letters y M L d D H h k K m s S a
try_string_to_int ... try_parse_timestamp          as without try_, but NULL instead of an error; still an error for a
                                                   value that SQL has and 64 bits cannot hold
regexp_extract (s, pattern[, group])               the group of the first match, or the empty text
regexp_replace (s, pattern, by[, position])        replaces all matches; $1 in ``by`` is a group
regexp_instr (s, pattern)                          1-based position of the first match, or 0
regexp_count regexp_substr (s, pattern)            number of matches; the first match, or NULL if none or empty
translate (s, from, to)                            each character of ``from`` becomes the one at its place in ``to``,
                                                   or is removed if ``to`` is shorter
substring_index (s, delimiter, n)                  the text before the nth delimiter; if n < 0, the text after the nth
                                                   from the end
split_at (s, delimiter, n)                         the nth part, counted from 0; NULL if there is none
hex_int (x), hex_string (s)                        uppercase hexadecimal: the 64 bits of x; the UTF-8 bytes of s
octet_length bit_length (s), character (n)         number of UTF-8 bytes, of bits; the character n modulo 256
elt (n, s, ...), find_in_set (s, list)             the nth text, an error if there is none; 1-based place in a list with
                                                   commas, or 0
levenshtein (s, t[, most])                         number of edits; -1 past ``most``
mask (s, upper, lower, digit, other)               characters of each class replaced; NULL keeps the class
overlay (s, by, position[, length])                ``length`` characters from a 1-based position replaced
quote (s), soundex (s), luhn_check (s)             in quotes; the code of a word; true for a right check digit
bin (x), conv (s, from, to)                        binary digits; digits of another base, error past 64 bits
format_number (x, scale, digits or pattern)        with commas; NULL for negative digits
to_number try_to_number (s, format)                a decimal; error or NULL for what does not match
number_to_char (x, scale, format)                  # for digits if x does not fit
format_string (kinds, format, x, ...)              values of ``kinds`` in a format of Java; see ``number_formats``
raise_error (message)                              an error with this message, for any row that needs the value
bit_count_bytes (b)                                number of ones among the bits of a BINARY
bytes_of_string (s), string_of_bytes (b)           a STRING as BINARY in UTF-8, and back with U+FFFD for wrong bytes
encode (s, charset), decode (b, charset)           likewise in a charset; error for what the charset lacks
hex_bytes base64 (b), unhex unbase64 (s)           BINARY as text, and back; unhex is NULL for wrong digits
to_binary try_to_binary (s, form)                  hex, base64 or utf-8 as BINARY; error or NULL
md5 sha1 crc32 (s[, charset])                      hexadecimal; crc32 is a number
sha2 (s, bits[, charset])                          hexadecimal; NULL for unknown bits
hash xxhash64 (kinds, x, ...)                      of a row of values; ``kinds`` has a letter for each (``hashes``)
parse_url try_parse_url (s, part[, key])           NULL for a part that is absent; error or NULL for what is no URL
url_encode url_decode try_url_decode (s)           error or NULL for wrong escapes
get_json_object (s, path)                          the value of a path in a text of JSON, NULL if there is none
json_array_length (s)                              number of elements; NULL for what is no JSON array
from_utc_timestamp to_utc_timestamp (t, zone)      local time of a moment, and back; error for an unknown zone
convert_timezone (from, to, t)                     local time in another zone
string_to_moment (s, zone)                         as string_to_timestamp, of a local time unless s has an offset
moment_beside (t, moment, zone)                    as to_utc_timestamp; if t occurs twice, with the offset of ``moment``
greatest_string least_string (a, b)                by UTF-8 bytes; NULLs are skipped
=================================================  ====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from freshviews.expr import (
    binary,
    casts,
    hashes,
    intervals,
    matches,
    numbers,
    parsing,
    strings,
    wide,
    zones,
)
from freshviews.expr.formats import json_texts, number_formats, urls
from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.records import dataclass
from freshviews.types import NotHeldError, python_functions

DATE_UNITS = MappingProxyType({"year": 0, "quarter": 1, "month": 2, "week": 3})
"""Codes of the unit argument of ``trunc_date``."""

TIMESTAMP_UNITS = MappingProxyType({**DATE_UNITS, "day": 4, "hour": 5, "minute": 6, "second": 7})
"""Codes of the unit argument of ``trunc_timestamp``."""


@dataclass(frozen=True)
class Op:
    """A scalar operation.

    ``arity``: the least and greatest number of arguments (None: any number). ``null``: when the result can be NULL:
    ``strict`` (exactly if an argument is), ``never``, ``any`` (for any arguments), or ``own`` (see the table above).
    ``many``: of a host operation, its results for several rows at once, None if it fails for one of them.
    """

    name: str
    kernel: str | None
    fallible: bool
    host: Callable[..., Any] | None
    arity: tuple[int, int | None] = (1, 1)
    null: str = "strict"
    many: Callable[[Sequence[tuple[Any, ...]]], list[Any] | None] | None = None


def _compiled(names: str, arity: int, *, fallible: bool = False, null: str = "strict") -> list[Op]:
    # The kernel has the name of the operation, with an underscore if that is a Python keyword.
    return [
        Op(name, f"{name}_" if name in ("and", "or", "not") else name, fallible, None, (arity, arity), null)
        for name in names.split()
    ]


def _host(
    name: str,
    function: Callable[..., Any],
    least: int,
    greatest: int | None,
    *,
    fallible: bool = False,
    null: str = "strict",
) -> Op:
    return Op(name, None, fallible, function, (least, greatest), null)


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, returning None if an argument is None."""
    return lambda *args: None if None in args else function(*args)


def _attempt(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, returning None if an argument is None or if it raises a ValueError other than NotHeldError."""

    def attempt(*args: Any) -> Any:
        try:
            return None if None in args else function(*args)
        except NotHeldError:
            raise
        except ValueError:
            return None

    return attempt


def wide_twin(operation: str) -> str:
    """The name of the host operation that computes with wide decimals what a compiled one does with words."""
    return f"{operation}_wide"


_ALL = [
    Op("case", None, False, None, (3, None), "own"),
    Op("coalesce", None, False, None, (1, None), "own"),
    Op("attempt", None, False, None, (1, 1), "own"),
    Op("failed", None, False, None, (1, 1), "never"),
    Op("in_frame", None, False, None, (5, None), "never"),
    *_compiled("unless_failed unless_counted", 2, fallible=True, null="own"),
    # comparison and logic
    *_compiled("eq ne lt le gt ge eq_float ne_float lt_float le_float gt_float ge_float", 2),
    *_compiled("null_safe_eq", 2, null="never"),
    *_compiled("only_value", 2, fallible=True, null="own"),
    *_compiled("is_null is_not_null is_true is_nan", 1, null="never"),
    Op("disjoint", "is_true", False, None, (1, 1), "never"),
    *_compiled("and or", 2, null="own"),
    *_compiled("not", 1),
    *_compiled("greatest_int least_int greatest_float least_float", 2, null="own"),
    # integers
    *_compiled("add_int sub_int mul_int div_int mod_int pmod_int", 2, fallible=True),
    *_compiled("neg_int abs_int", 1, fallible=True),
    *_compiled("sign_int", 1),
    *_compiled("bits_and bits_xor", 2, fallible=True),
    *_compiled("bits_or", 2),
    *_compiled("shift_left bit_get", 3, fallible=True),
    *_compiled("shift_right_signed shift_right_unsigned", 3),
    *_compiled("bit_count", 1),
    *_compiled("try_add_int try_sub_int try_mul_int", 2, fallible=True, null="own"),
    *_compiled("try_check_range", 3, null="own"),
    _host("factorial", numbers.factorial, 1, 1, null="own"),
    _host("width_bucket", numbers.width_bucket, 4, 4, fallible=True, null="own"),
    *_compiled("check_range", 3, fallible=True),
    # floats
    *_compiled("add_float sub_float mul_float mul_rest quotient_float power round_float atan2 hypot", 2),
    *_compiled("div_float mod_float", 2, fallible=True),
    *_compiled("neg_float abs_float sign_float sqrt cbrt exp expm1 sin cos tan asin acos atan tanh", 1),
    *_compiled("sinh cosh asinh acosh atanh rint", 1),
    _host("round_float_even", numbers.round_float_even, 2, 2),
    _host("floor_of_float", numbers.floor_of_float, 3, 3, fallible=True, null="own"),
    _host("ceil_of_float", numbers.ceil_of_float, 3, 3, fallible=True, null="own"),
    *_compiled("ln log10 log2 log1p", 1, null="own"),
    *_compiled("comoment", 8, null="own"),
    *_compiled("third_moment", 7, null="own"),
    *_compiled("fourth_moment", 9, null="own"),
    *_compiled("floor_float ceil_float", 1, fallible=True),
    # decimals
    *_compiled("scale_up", 2, fallible=True),
    *_compiled("scale_down scale_down_even floor_decimal ceil_decimal", 2),
    *_compiled("round_decimal", 2, fallible=True),
    *_compiled("mul_decimal div_decimal", 3, fallible=True),
    # conversions
    *_compiled("int_to_float float_to_float32 float_to_bool int_to_bool", 1),
    *_compiled("decimal_to_float", 2),
    *_compiled("float_to_int float_to_decimal", 3, fallible=True),
    # wide decimals
    _host("word_of", wide.word_of, 1, 1, fallible=True),
    _host("wide_of", wide.same, 1, 1),
    _host("wide_part", wide.part, 2, 2),
    _host("wide_total", wide.total, wide.PARTS, wide.PARTS),
    _host("wide_quotient", wide.quotient_of_decimals, 5, 5, fallible=True),
    # dates and timestamps
    *_compiled("year quarter month day dayofweek weekday dayofyear weekofyear", 1),
    *_compiled("hour minute second timestamp_to_date unix_timestamp", 1),
    *_compiled("date_to_timestamp timestamp_seconds last_day", 1, fallible=True),
    *_compiled("date_diff_days", 2),
    *_compiled("date_add_days add_months add_months_timestamp add_micros", 2, fallible=True),
    *_compiled("trunc_date trunc_timestamp", 2, fallible=True),
    # strings
    _host("lt_string", strings.less, 2, 2),
    _host("le_string", strings.less_or_equal, 2, 2),
    _host("gt_string", strings.greater, 2, 2),
    _host("ge_string", strings.greater_or_equal, 2, 2),
    _host("greatest_string", strings.greatest, 2, 2, null="own"),
    _host("least_string", strings.least, 2, 2, null="own"),
    _host("like", strings.like, 2, 3, fallible=True),
    _host("ilike", strings.ilike, 2, 3, fallible=True),
    _host("rlike", strings.rlike, 2, 2, fallible=True),
    _host("in_list", strings.in_list, 2, 2),
    _host("concat", strings.concat, 1, None, fallible=True),
    _host("concat_ws", strings.concat_ws, 1, None, fallible=True, null="own"),
    _host("upper", str.upper, 1, 1),
    _host("lower", str.lower, 1, 1),
    _host("initcap", strings.initcap, 1, 1),
    _host("reverse", strings.reverse, 1, 1),
    _host("length", len, 1, 1),
    _host("ascii", strings.ascii_code, 1, 1),
    _host("substring", strings.substring, 2, 3),
    _host("trim", strings.trim, 1, 2),
    _host("ltrim", strings.ltrim, 1, 2),
    _host("rtrim", strings.rtrim, 1, 2),
    _host("replace", strings.replace, 3, 3, fallible=True),
    _host("lpad", strings.lpad, 2, 3, fallible=True),
    _host("rpad", strings.rpad, 2, 3, fallible=True),
    _host("repeat", strings.repeat, 2, 2, fallible=True),
    _host("left", strings.left, 2, 2),
    _host("right", strings.right, 2, 2),
    _host("instr", strings.instr, 2, 2),
    _host("locate", strings.locate, 2, 3),
    _host("split_part", strings.split_part, 3, 3, fallible=True),
    _host("startswith", str.startswith, 2, 2),
    _host("endswith", str.endswith, 2, 2),
    _host("contains", strings.contains, 2, 2),
    # values to text and back
    _host("int_to_string", str, 1, 1),
    _host("float_to_string", casts.float_to_string, 1, 1),
    _host("float32_to_string", casts.float32_to_string, 1, 1),
    _host("decimal_to_string", casts.decimal_to_string, 2, 2),
    _host("bool_to_string", casts.bool_to_string, 1, 1),
    _host("date_to_string", casts.date_to_string, 1, 1),
    _host("timestamp_to_string", casts.timestamp_to_string, 1, 1),
    _host("interval_to_string", intervals.interval_to_string, 3, 3),
    _host("date_format", casts.date_format, 2, 2, fallible=True),
    _host("string_to_int", casts.string_to_int, 3, 3, fallible=True),
    _host("string_to_float", casts.string_to_float, 1, 1, fallible=True),
    _host("string_to_decimal", casts.string_to_decimal, 3, 3, fallible=True),
    _host("string_to_date", casts.string_to_date, 1, 1, fallible=True),
    _host("string_to_timestamp", casts.string_to_timestamp, 1, 1, fallible=True),
    _host("string_to_interval", intervals.string_to_interval, 3, 3, fallible=True),
    _host("string_to_bool", casts.string_to_bool, 1, 1, fallible=True),
    _host("parse_timestamp", parsing.parse_timestamp, 2, 2, fallible=True),
    # matches of patterns
    _host("regexp_extract", matches.regexp_extract, 2, 3, fallible=True),
    _host("regexp_replace", matches.regexp_replace, 3, 4, fallible=True),
    _host("regexp_instr", matches.regexp_instr, 2, 2, fallible=True),
    _host("regexp_count", matches.regexp_count, 2, 2, fallible=True),
    _host("regexp_substr", _strict(matches.regexp_substr), 2, 2, fallible=True, null="own"),
    _host("translate", strings.translate, 3, 3),
    _host("substring_index", strings.substring_index, 3, 3),
    _host("split_at", strings.split_at, 3, 3, null="own"),
    _host("hex_int", strings.hex_int, 1, 1),
    _host("hex_string", strings.hex_string, 1, 1),
    _host("octet_length", strings.octet_length, 1, 1),
    _host("bit_length", strings.bit_length, 1, 1),
    _host("character", strings.character, 1, 1),
    _host("elt", strings.elt, 2, None, fallible=True, null="own"),
    _host("find_in_set", strings.find_in_set, 2, 2),
    _host("levenshtein", strings.levenshtein, 2, 3),
    _host("luhn_check", strings.luhn_check, 1, 1),
    _host("mask", strings.mask, 5, 5, null="own"),
    _host("overlay", strings.overlay, 3, 4, fallible=True),
    _host("quote", strings.quote, 1, 1),
    _host("soundex", strings.soundex, 1, 1),
    _host("bin", numbers.bin_text, 1, 1),
    _host("conv", numbers.conv, 3, 3, fallible=True, null="own"),
    _host("format_number", _strict(numbers.format_number), 3, 3, fallible=True, null="own"),
    _host("to_number", number_formats.to_number, 2, 2, fallible=True),
    _host("try_to_number", _attempt(number_formats.to_number), 2, 2, fallible=True, null="own"),
    _host("number_to_char", number_formats.to_char, 3, 3),
    _host("float_to_char", number_formats.float_to_char, 3, 3, fallible=True, null="own"),
    _host("format_string", number_formats.format_string, 2, None, fallible=True, null="own"),
    _host("raise_error", strings.raise_error, 1, 1, fallible=True, null="any"),
    _host("bit_count_bytes", binary.bit_count_bytes, 1, 1),
    # BINARY
    _host("bytes_of_string", binary.bytes_of_string, 1, 1, fallible=True),
    _host("string_of_bytes", binary.string_of_bytes, 1, 1),
    _host("encode", binary.encode, 2, 2, fallible=True),
    _host("decode", binary.decode, 2, 2, fallible=True),
    _host("hex_bytes", binary.hex_bytes, 1, 1, fallible=True),
    _host("unhex", _strict(binary.unhex), 1, 1, null="own"),
    _host("base64", binary.base64, 1, 1, fallible=True),
    _host("unbase64", binary.unbase64, 1, 1, fallible=True),
    _host("to_binary", binary.to_binary, 2, 2, fallible=True),
    _host("try_to_binary", _attempt(binary.to_binary), 2, 2, null="own"),
    # hashes, URLs, JSON, time zones
    _host("md5", hashes.md5, 1, 2),
    _host("sha1", hashes.sha1, 1, 2),
    _host("sha2", hashes.sha2, 2, 3, null="own"),
    _host("crc32", hashes.crc32, 1, 2),
    _host("hash", hashes.hash_values, 2, None, null="never"),
    _host("xxhash64", hashes.xxhash64_values, 2, None, null="never"),
    _host("parse_url", _strict(urls.parse_url), 2, 3, fallible=True, null="own"),
    _host("try_parse_url", _attempt(urls.parse_url), 2, 3, null="own"),
    _host("url_encode", urls.url_encode, 1, 1, fallible=True),
    _host("url_decode", urls.url_decode, 1, 1, fallible=True),
    _host("try_url_decode", _attempt(urls.url_decode), 1, 1, null="own"),
    _host("get_json_object", json_texts.get_json_object, 2, 2, fallible=True, null="own"),
    _host("json_array_length", json_texts.json_array_length, 1, 1, null="own"),
    _host("from_utc_timestamp", zones.from_utc_timestamp, 2, 2, fallible=True),
    _host("to_utc_timestamp", zones.to_utc_timestamp, 2, 2, fallible=True),
    _host("moment_beside", zones.moment_beside, 3, 3, fallible=True),
    _host("string_to_moment", zones.string_to_moment, 2, 2, fallible=True),
    _host("convert_timezone", zones.convert_timezone, 3, 3, fallible=True),
]

_UNHELD = ("string_to_int", "string_to_timestamp", "string_to_interval", "string_to_moment")
"""Operations that may read a value that does not fit 64 bits."""

_ALL += [
    _host(f"try_{op.name}", _attempt(op.host), *op.arity, fallible=op.name in _UNHELD, null="own")
    for op in _ALL
    if op.host is not None and op.name.startswith(("string_to_", "parse_timestamp"))
]



_RAISING = ("div_int", "mod_int", "pmod_int", "check_range", "float_to_decimal")
"""Operations whose twins may fail."""

_ALL += [
    _host(wide_twin(op.name), wide.TWINS[op.name], *op.arity, fallible=op.name in _RAISING, null=op.null)
    for op in _ALL
    if op.name in wide.TWINS
]


class _Operations(dict[str, Op]):
    """Operations by name; the calls of users' functions (``types.python_functions``) are added when they are asked
    for."""

    def __missing__(self, name: str) -> Op:
        function = python_functions.function_of(name)
        if function is None:
            raise KeyError(name)
        takes = len(function.takes)
        many = function.values if function.arrow and takes else None
        self[name] = Op(name, None, True, function.value, (takes, takes), "any", many)
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self or python_functions.is_operation(name) else default


OPS: MappingProxyType[str, Op] = MappingProxyType(_Operations((op.name, op) for op in _ALL))
"""Every operation by name."""

TEXT_OPS = frozenset(
    ("substring", "left", "right", "trim", "ltrim", "rtrim", "length", "startswith", "endswith", "contains")
)
"""Operations on a text with constants as other arguments, which never fail and which ``expr.texts`` compiles."""


_DIVISIONS = frozenset(("div_int", "mod_int", "div_float", "mod_float"))


def fails_itself(call: Call) -> bool:
    """True if the operation itself may fail for a row, given its arguments. A division by a constant does not."""
    op = OPS.get(call.op)
    if op is None or not op.fallible:
        return False
    divisor = call.args[-1]
    return not (call.op in _DIVISIONS and isinstance(divisor, Literal) and divisor.value not in (0, None))


def may_fail(expr: Expr) -> bool:
    """True if an operation of the expression may fail for a row."""
    if not isinstance(expr, Call) or expr.op in ("attempt", "failed"):
        return False
    return fails_itself(expr) or any(map(may_fail, expr.args))
