"""Calls of functions over columns, and awkward values of each kind: the questions of spark_functions.json.

A column is named by its kind and a number, as ``s0``; ``ROWS`` rows of a call are drawn at random, the same ones in
each run. ``python -m tests.spark.test_functions`` asks Spark and writes the answers.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from decimal import Decimal
from typing import Any

ROWS = 24

TYPES = {
    "y": "TINYINT", "i": "INT", "l": "BIGINT", "x": "DOUBLE", "f": "FLOAT", "p": "DECIMAL(12, 4)", "b": "BOOLEAN",
    "s": "STRING", "d": "DATE", "t": "TIMESTAMP", "n": "INT", "k": "STRING", "u": "STRING", "h": "STRING",
    "c": "STRING", "m": "STRING", "z": "STRING", "q": "STRING", "w": "DECIMAL(18, 2)",
    "v": "INTERVAL DAY TO SECOND", "o": "INTERVAL YEAR TO MONTH", "r": "INTERVAL DAY", "j": "STRING", "g": "STRING",
    "a": "STRING", "e": "STRING",
}  # fmt: skip
"""The type of each kind. Of the same type are n, small numbers; k, digits; u, URLs; h, hexadecimal and base64; c,
charsets; m, texts of numbers; z, time zones; q, patterns of regexp; j, intervals of
days to seconds; g, intervals of years and months; a, JSON; e, paths in JSON."""

VALUES: dict[str, list[Any]] = {
    "y": [0, 1, -1, 127, -128, 5],
    "i": [0, 1, -1, 7, 31, 32, 64, 2**31 - 1, -(2**31), 12345, -12345, 255],
    "l": [0, 1, -1, 2**63 - 1, -(2**63) + 1, 32768, -32769, 10**12, -(10**12), 2**32],
    "x": [0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1e-20, 1e20, -1e300, 1e300, 0.125, 2.345, float("nan"), float("inf"),
          float("-inf"), 12345.675, 709.5, 711.0, -745.0],
    "f": [0.0, 1.5, -2.25, 1e10, float("nan"), float("inf"), 0.1],
    "p": [Decimal(v) for v in ("0", "1.5", "-1.5", "2.5", "0.0005", "12345678.1235", "-99999999.9999", "0.25", "35")],
    "w": [Decimal(v) for v in ("0", "0.5", "-0.5", "12.34", "-12.34", "1234.56", "99", "-99.99", "0.05", "123456.7")],
    "b": [True, False],
    "s": ["", "a", "abc", "ABC", "aXbXc", "é", "日本語", "😀a", " a b ", "a,b,c", "Don't", "a\\b", "Robert", "ashcraft",
          "kitten", "sitting", "1234", "AbC-12", "\n\t", "%41+%C3%A9", "a+b c/é~*", "x" * 80],
    "d": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)],
    "t": [dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 12, 30, 15, 123456), dt.datetime(2020, 3, 29, 2, 30),
          dt.datetime(2020, 10, 25, 2, 30), dt.datetime(1900, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "n": [0, 1, 2, 3, -1, -2, 5, 10, 12, 16, 24, 36, 37, 59, 60, 2024, -16],
    "k": ["0", "1", "79927398713", "-15", "ff", "FFFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFFF", "zz", "", "-", " 12", "12 3",
          "-9223372036854775808", "18446744073709551615", "18446744073709551616", "101", "1.5", "é"],
    "u": ["http://spark.apache.org/path?query=1&a=b#frag", "http://user:pw@h.com:80/p?q", "http://h/a b", "notaurl", "",
          "http://h?x=1&x=2&a.b=3", "mailto:a@b.c?a=1", "http://h_x/a", "http://[::1]:80/a", "//h/p", "http://h/é",
          "http://h/%41", "http://h/%4", "http:", "http://", "http:///a", "http://1.2.3.4/", "http://1.2.3.999/",
          "http://a-/", "http://a.b.1c/", "?a=1", "#a", "http://u@@h/", "http://h:x/a", "http://h/#a#b", "1p://h/"],
    "h": ["616263", "1", "GG", "", "ff", "FFfe", "é", "YWJj", "YW J j", "YWJ", "YW!j", "C3A9", "80", "a" * 9],
    "m": ["", "1", "12", "1234", "1,234", "1,234.50", "-12", "12-", "+12.5", "<12.5>", "$12.34", "$-1", "12.345",
          "0012", ".5", "5.", "1 2", " 12 ", "a", ",1", "1,,2", "-$7"],
    "c": ["utf-8", "UTF-8", "us-ascii", "iso-8859-1", "utf-16", "utf-16be", "utf-16le", "utf-32", "x"],
    "z": ["UTC", "Europe/Paris", "America/New_York", "+02:00", "GMT+2", "PST", "EST", "nowhere", "Z", "+2", "",
          "-18:00", "UTC+02:30", "+19:00", "Asia/Kolkata"],
    "v": [dt.timedelta(), dt.timedelta(1, 7384, 500_000), dt.timedelta(-1), dt.timedelta(0, 0, 1),
          dt.timedelta(0, 0, -1), dt.timedelta(-3, 5), dt.timedelta(0, 5400), dt.timedelta(30, 0, 123_456)],
    "o": [0, 1, -1, 14, -14, 12, 7],
    "r": [dt.timedelta(0), dt.timedelta(1), dt.timedelta(-1), dt.timedelta(31), dt.timedelta(366)],
    "j": ["1 02:03:04.5", "-1 02:03:04", " 1 2:3:4 ", "1 24:00:00", "INTERVAL '1 02:03:04.5' DAY TO SECOND",
          "interval -'-1 00:00:00' day to second", "1 02:03:04.123456789"],
    "g": ["1-2", "-1-2", "+0-11", "1-12", "1-0002", "178956970-7", "INTERVAL -'1-2' YEAR TO MONTH"],
    "a": ['{"a":1.10,"b":[1e3,-0,1E400,12345678901234567890123,0.1e-5,true,null,"x\\n\\u0001/é"]}',
          '{"a":["😀"],"b":"😀","😀":{"c":"\\ud83d\\ude00"}}', '[[1,[2,3]],[4],"x",{"y":[5]}]', '[[[1,[2]],[3]],[[4]]]',
          '[{"y":[5]},{"y":"z"},{"y":null}]', '{"a":null,"a":{"b":[[{"c":1}],[]]},"a b":"x"}', "{'a':'b\\'c\"'}",
          '{"a":[],"a":[[1]]}', '[null]', "[]", "{}", "", " 1 2", "1a", "truex", '"x"y', "null", "01", "-0.0",
          '{"a":1,}', '{"a":1} x', "[1", "[1,]", '{"a":"\\ud800","b":["\\ud800"]}', '["a" "b"]', "[1:2]", '{"a"}', "]"],
    "e": ["$", "$.a", "$.b", "$.b[0]", "$[0]", "$[*]", "$[*][*]", "$[*][*][*]", "$[0][*]", "$[0][*][0]", "$[*].y",
          "$[*].y[*]", "$.a[*][*]", "$['a b']", "$.a.b[0][0].c", "$.*", "$. a", "$.a ", "a", "$[ 0]", "$[0 ]", "$..a"],
    "q": ["a", "b+", "", "(a)(b)?", "[0-9]", "X", "^a", "c$", "é", ".", "\\d+"],
}  # fmt: skip

CALLS: tuple[str, ...] = (
    # bits
    "bit_count(y0)", "bit_count(i0)", "bit_count(l0)", "bit_count(b0)", "bit_get(y0, n0)", "bit_get(i0, i1)",
    "getbit(l0, i0)", "shiftleft(i0, i1)", "shiftleft(y0, i0)", "shiftleft(l0, i0)", "shiftright(i0, i1)",
    "shiftright(l0, n0)", "shiftrightunsigned(i0, i1)", "shiftrightunsigned(l0, n0)", "i0 << n0 + 1", "l0 >> n0",
    "i0 >>> n0 & 3", "bitmap_bit_position(l0)", "bitmap_bucket_number(l0)", "bitmap_bucket_number(i0)",
    # numbers
    "sinh(x0)", "cosh(x0)", "asinh(x0)", "acosh(x0)", "atanh(x0)", "sec(x0)", "csc(x0)", "cot(x0)", "hypot(x0, x1)",
    "rint(x0)", "rint(p0)", "bround(x0)", "bround(x0, 2)", "bround(p0)", "bround(p0, 2)", "bround(p0, -1)",
    "bround(i0, -1)", "bround(f0, 1)", "bround(l0, -2)", "floor(p0, 2)", "floor(p0, -1)", "floor(i0, -1)",
    "ceil(p0, 2)", "ceil(p0, -2)", "ceiling(i0, 1)", "floor(x0, 2)", "ceil(x0, 0)", "ceil(x0, -2)", "floor(f0, 1)",
    "ceil(f0, 7)", "to_char(x0, 'S99999.999')", "to_char(f0, '99.99999')", "factorial(n0)", "factorial(i0)",
    "width_bucket(x0, x1, x2, l0)", "width_bucket(x0, 0, 10, n0)", "width_bucket(p0, 10, -10, 4)",
    "try_add(i0, i1)", "try_add(l0, l1)", "try_add(y0, y1)", "try_add(x0, i0)", "try_add(i0, l0)",
    "try_subtract(i0, i1)", "try_subtract(l0, l1)", "try_subtract(p0, 1)", "try_multiply(i0, i1)",
    "try_multiply(l0, l1)", "try_multiply(y0, i0)", "try_mod(i0, n0)", "try_mod(l0, l1)", "try_mod(p0, p1)",
    "try_mod(x0, x1)", "try_divide(i0, n0)", "decimal(i0)", "decimal(k0)",
    "bin(i0)", "bin(l0)", "bin(p0)", "conv(k0, n0, n1)", "conv(k0, 16, 10)", "conv(k0, 10, -16)", "conv(k0, 36, 2)",
    "format_number(x0, n0)", "format_number(i0, 2)", "format_number(p0, n0)", "format_number(l0, 0)",
    "format_number(f0, 3)", "format_number(p0, '#,###.0#')", "format_number(x0, '##,##0.00')",
    "format_number(p0, '#.#')",
    "format_string('%s|%d|%x|%5o|%b', s0, i0, l0, y0, b0)", "format_string('%.2f|%e|%-9.3g|%(,.1f', x0, x0, f0, x0)",
    "format_string('%s %s %s %S', x0, f0, p0, b0)", "printf('%05d %+d % d %,d', i0, n0, y0, l0)",
    "format_string('%d', d0)", "format_string('%2$s %1$s %<s %5s|%-5s|%.2s', s0, n0, k0)", "format_string('%c', n0)",
    "format_string('%d', x0)", "format_string('%f', i0)", "format_string(q0, s0)", "format_string('%h %h', s0, i0)",
    "bitmap_count(unhex(h0))", "hex(lpad(unhex(h0), n0, unhex('4142')))", "hex(rpad(unhex(h0), 5))",
    "lpad(unhex(h0), 6, s0)", "overlay(s0 PLACING 'xy' FROM 2)", "overlay(s0 PLACING k0 FROM n0 FOR 1)",
    "CASE WHEN i0 > 5 THEN raise_error(concat('i is ', i0)) ELSE i0 END", "assert_true(n0 < 5) IS NULL",
    "assert_true(b0, s0) IS NULL", "date_format(t0, 'G yyyy LLL QQQ qq F k KK a')",
    "date_format(t0, 'yyyy[-MM[-dd]] QQQQ h K')", "date_format(d0, 'DDD GGGG')",
    "to_timestamp(concat(year(t0), '-', dayofyear(t0)), 'yyyy-D')", "try_to_timestamp(m0, 'D')",
    "to_timestamp(concat('2024 ', n0), 'yyyy[ k]')", "try_to_timestamp(concat(n0, '-', n1, '-', m0), 'd-M-H')",
    "to_timestamp(concat(n0 + 30, '-', n1), 'y-M')",
    "to_date(date_format(d0, 'dd LLLL yyyy'), 'd LLLL yyyy')",
    "format_number(w0, '0000')", "format_number(w0, '')",
    *(f"to_char(w0, '{form}')" for form in
      ("999999", "S9,999.99", "$0,000.00MI", "99.9PR", "000.000S", ".99", "99.", "9G999D9", "9,099", "999999.99S",
       "MI$99.99", "S99MI")),
    "to_varchar(i0, 'S99999')", "to_char(d0, 'yyyy-MM-dd')", "to_char(unhex(h0), 'hex')",
    "to_char(unhex(h0), 'base64')",
    *(f"to_number(m0, '{form}')" for form in
      ("9999", "S9,999.99", "$99.99", "99.9PR", "0009", "99MI", "999D00", ".99")),
    "try_to_number(m0, '9,999.99')", "try_to_number(m0, 'MI$999')",
    # strings
    "bit_length(s0)", "elt(n0, s0, s1, s2)", "elt(2, s0, i0)", "find_in_set(s0, s1)", "find_in_set('b', s0)",
    "levenshtein(s0, s1)", "levenshtein(s0, s1, n0)", "luhn_check(k0)", "luhn_check(s0)", "mask(s0)",
    "mask(s0, 'Q', NULL, 'd', 'o')", "mask(s0, NULL, 'q')", "overlay(s0, s1, n0)", "overlay(s0, s1, n0, n1)",
    "quote(s0)", "soundex(s0)", "is_valid_utf8(s0)", "make_valid_utf8(s0)", "validate_utf8(s0)",
    "try_validate_utf8(s0)", "regexp_instr(s0, q0)", "regexp_instr(s0, q0, n0)", "regexp_replace(s0, q0, '-', 2)",
    "regexp(s0, q0)", "s0 REGEXP 'b'", "typeof(s0)", "typeof(p0)", "typeof(y0)",
    # hashes
    "md5(s0)", "sha(s0)", "sha1(s0)", "sha2(s0, n0)", "sha2(s0, 224)", "sha2(s0, 384)", "sha2(s0, 512)", "crc32(s0)",
    "hash(s0)", "hash(i0)", "hash(l0)", "hash(x0)", "hash(f0)", "hash(p0)", "hash(b0, d0, t0)", "hash(y0, s0, s1)",
    "hash(CAST(p0 AS DECIMAL(20, 4)))", "xxhash64(s0)", "xxhash64(i0)", "xxhash64(l0, s0)", "xxhash64(x0)",
    "xxhash64(p0, f0)", "xxhash64(b0, d0, t0)", "xxhash64(CAST(p0 AS DECIMAL(20, 4)))",
    # BINARY
    "hex(unhex(h0))", "hex(unbase64(h0))", "base64(s0)", "base64(unhex(h0))", "hex(encode(s0, c0))", "decode(s0, c0)",
    "decode(unhex(h0), c0)", "hex(to_binary(h0))", "hex(to_binary(h0, 'base64'))", "hex(to_binary(s0, 'utf8'))",
    "hex(try_to_binary(h0))", "hex(try_to_binary(h0, 'base64'))", "hex(CAST(s0 AS BINARY))", "hex(binary(s0))",
    "CAST(unhex(h0) AS STRING)", "hex(X'0aFF' || unhex(h0))", "hex(concat(unhex(h0), unhex(h1)))",
    "concat(unhex(h0), s0)", "length(unhex(h0))", "octet_length(unhex(h0))", "bit_length(unhex(h0))", "md5(unhex(h0))",
    "sha1(unhex(h0))", "sha2(unhex(h0), 256)", "crc32(unhex(h0))", "hash(unhex(h0), i0)", "xxhash64(unhex(h0))",
    "hex(substring(unhex(h0), n0, n1))", "hex(left(unhex(h0), n0))", "unhex(h0) = unhex(h1)", "unhex(h0) < X'61'",
    "hex(coalesce(unhex(h0), X'1'))", "hex(greatest(unhex(h0), unhex(h1)))", "typeof(unhex(h0))",
    # JSON
    "get_json_object(a0, e0)", "get_json_object(a0, '$.b')", "get_json_object(a0, '$[*][*]')", "json_array_length(a0)",
    # URLs
    *(f"parse_url(u0, '{part}')" for part in
      ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "host")),
    "parse_url(u0, 'QUERY', 'x')", "parse_url(u0, 'QUERY', 'a.b')", "parse_url(u0, 'PATH', 'x')",
    "try_parse_url(u0, 'HOST')", "try_parse_url(u0, 'QUERY', 'a')", "url_encode(s0)", "url_decode(s0)",
    "url_decode(u0)", "try_url_decode(u0)",
    # dates and times
    "make_timestamp(2024, n0, n1, n2, n3, p0)", "make_timestamp_ntz(2024, 2, n0, 3, 59, n1)",
    "try_make_timestamp(2024, n0, n1, n2, n3, 59.999999)", "try_make_timestamp_ntz(2023, n0, 31, 23, 59, n1)",
    "from_utc_timestamp(t0, z0)", "to_utc_timestamp(t0, z0)", "convert_timezone(z0, z1, t0)",
    "from_utc_timestamp(t0, 'Europe/Paris')", "to_utc_timestamp(t0, 'America/New_York')",
    "to_unix_timestamp(t0)", "datepart('MONTH', d0)", "to_timestamp_ntz(d0)",
    # intervals
    "CAST(j0 AS INTERVAL DAY TO SECOND)", "CAST(g0 AS INTERVAL YEAR TO MONTH)", "CAST(n0 AS INTERVAL HOUR)",
    "CAST(p0 AS INTERVAL SECOND)", "CAST(w0 AS INTERVAL YEAR)", "CAST(v0 AS INTERVAL HOUR TO MINUTE)",
    "CAST(v0 AS INTERVAL DAY)", "CAST(o0 AS INTERVAL YEAR)", "CAST(v0 AS DECIMAL(12, 2))", "CAST(v0 AS BIGINT)",
    "CAST(o0 AS INT)", "CAST(r0 AS INT)", "CAST(r0 AS INTERVAL DAY TO SECOND)", "TRY_CAST(v0 AS TINYINT)",
    "v0 + v1", "v0 - r0", "o0 + o1", "o0 - o1", "r0 - r1", "-v0", "-o0", "abs(v0)", "sign(o0)", "v0 * n0", "n0 * o0",
    "v0 * w0", "o0 * w0", "v0 * CAST(w0 AS DOUBLE)", "o0 * CAST(w0 AS DOUBLE)", "v0 / (n0 - 4)", "o0 / (n0 - 4)",
    "v0 / (w0 + 0.13)", "o0 / (w0 + 0.13)", "v0 / CAST(w0 + 0.13 AS DOUBLE)", "v0 div (v1 + INTERVAL '7' SECOND)",
    "try_add(v0, v1)", "CAST(try_add(d0, v0) AS STRING)", "CAST(try_subtract(d0, r0) AS STRING)",
    "CAST(try_add(t0, o0) AS STRING)", "try_subtract(t0, t1)", "try_add(j0, v0)", "try_multiply(v0, l0)",
    "try_divide(o0, n0)", "v0 * NULL", "d0 - NULL",
    "CAST(t0 + v0 AS STRING)", "CAST(t0 - o0 AS STRING)", "t0 - t1", "d0 - d1", "t0 - d0",
    "make_ym_interval(n0, n1)", "make_dt_interval(n0, n1, n2, w0)", "extract(DAY FROM v0)", "extract(HOUR FROM v0)",
    "extract(MINUTE FROM v0)", "extract(SECOND FROM v0)", "extract(YEAR FROM o0)", "date_part('mons', o0)",
    "v0 < v1", "o0 >= o1", "v0 <=> r0", "v0 IN (v1, INTERVAL '1' DAY)", "t0 - t1 < v0", "greatest(v0, r0)",
    "coalesce(r0, INTERVAL '90' MINUTE)", "CASE WHEN b0 THEN r0 ELSE INTERVAL '1' HOUR END", "concat(v0, '|', o0)",
    "typeof(r0)", "hash(v0, o0)", "xxhash64(v0, o0)", "format_string('%s', v0)",
)  # fmt: skip


def columns_of(call: str) -> list[str]:
    """The columns of a call, in order."""
    return sorted(set(re.findall(r"\b[a-z][0-9]\b", call)))


def rows_of(call: str) -> list[tuple[Any, ...]]:
    """Rows of arguments: each value of the first column, random ones, and NULLs."""
    columns = columns_of(call)
    source = random.Random(call)
    rows = {tuple(source.choice(VALUES[name[0]]) for name in columns): None for _ in range(ROWS if columns[1:] else 0)}
    if not columns[1:] or len(VALUES[columns[0][0]]) > ROWS // 2:
        rows |= {(v, *(source.choice(VALUES[name[0]]) for name in columns[1:])): None for v in VALUES[columns[0][0]]}
    places = range(len(columns))
    some = next(iter(rows))
    return [*rows, *(tuple(None if i == place else v for i, v in enumerate(some)) for place in places)]
