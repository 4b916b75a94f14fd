"""RLIKE matches as Java does, in time linear in the text."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from freshviews.expr.regular_expressions import searcher, to_re2
from tests.tiers import examples, seeds

TEXTS = (
    "", "a", "B", "ab", "aab", "abc\n", "a\nb", "a1 b2", "foo_bar",
    "\xc9", "\xe91", "\r", "x\r\n", "\x85", "\u0663", "\U0001f600", "K", "\u017f",
    "a.b", "[x]", "{}", "-", "\\", "\x0b", "\xa0", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
)

# The texts in which java.util.regex finds the pattern, recorded with Java 17.
FOUND = [
    ("", "11111111111111111111111111"),
    ("a", "01011111100000000010000001"),
    ("^a$", "01000000000000000000000000"),
    ("^a*$", "11000000000101000000000000"),
    ("b$", "00011010000000000010000000"),
    ("^.$", "01100000010010111100011110"),
    ("(?s)^.$", "01100000010111111100011110"),
    (r"\d", "00000001001000000000000000"),
    (r"^\w+$", "01111100100010001000000000"),
    (r"\W", "00000111011111110111111111"),
    (r"\s", "00000111000110000000000100"),
    (r"\h", "00000001000000000000000010"),
    (r"\v", "00000110000111000000000100"),
    (r"\S", "01111111111011111111111011"),
    ("[ab]{2}", "00011100100000000000000001"),
    ("^[^ab]*$", "10100000011111111101111110"),
    ("[a-c&&[^b]]", "01011111100000000010000001"),
    ("[a-z&&b-y&&[^m]]", "00011111100010000011000000"),
    ("[a[1-3]]", "01011111101000000010000001"),
    (r"[^\d\w]", "00000111011111110111111111"),
    (r"[\w-]", "01111111101010001011010001"),
    ("[a-]", "01011111100000000010010001"),
    (r"[\[\]]", "00000000000000000001000000"),
    ("[+--]", "00000000000000000000010000"),
    ("(a+)+$", "01000000000000000000000000"),
    ("^(a|aa)+$", "01000000000000000000000000"),
    ("(x+x+)+y", "00000000000000000000000000"),
    ("(a*)*b", "00011111100000000010000000"),
    ("a+?b", "00011100000000000000000000"),
    ("(?:ab|a)c?", "01011111100000000010000001"),
    ("(?<word>foo)_bar", "00000000100000000000000000"),
    ("(?i)A", "01011111100000000010000001"),
    ("(?i)k", "00000000000000001000000000"),
    ("(?i)[j-l]", "00000000000000001000000000"),
    ("(?i)S", "00000000000000000000000000"),
    ("(?i)É", "00000000010000000000000000"),
    ("(?i:b)c", "00000100000000000000000000"),
    ("a(?i)B|É", "00011100010000000000000000"),
    (r"\p{L}", "01111111111010001111000001"),
    (r"\p{Lu}", "00100000010000001000000000"),
    (r"^\P{L}$", "00000000000101110000011110"),
    (r"\pN", "00000001001000100000000000"),
    (r"[\p{Lu}1]", "00100001011000001000000000"),
    (r"[^\p{L}]", "00000111101111110011111111"),
    (r"[^\p{L}1]", "00000111100111110011111111"),
    (r"\p{Alpha}", "01111111100010001011000001"),
    (r"\p{Punct}", "00000000100000000011111001"),
    (r"\p{Upper}", "00100000000000001000000000"),
    (r"\P{ASCII}", "00000000011001110100000010"),
    (r"\p{IsLl}", "01011111101010000111000001"),
    (r"\Qa.b\E", "00000000000000000010000000"),
    (r"\x61", "01011111100000000010000001"),
    (r"\u00e9", "00000000001000000000000000"),
    (r"\uD83D\uDE00", "00000000000000010000000000"),
    (r"\x{1F600}", "00000000000000010000000000"),
    (r"\0141", "01011111100000000010000001"),
    (r"\cK", "00000000000000000000000100"),
    (r"\e|\t|\a", "00000000000000000000000000"),
    ("[.]", "00000000000000000010000000"),
    (r"a\.b", "00000000000000000010000000"),
    (r"\\", "00000000000000000000001000"),
    (r"\{\}", "00000000000000000000100000"),
    (r"\[x]", "00000000000000000001000000"),
    ("a|b$", "01011111100000000010000001"),
    ("^(,|$)", "10000000000101000000000000"),
    ("(a|$)", "11111111111111111111111111"),
    (r"x\Z", "00000000000010000000000000"),
    (r"x\z", "00000000000000000000000000"),
    (r"\Ab?\z", "10000000000000000000000000"),
    (r"\ba", "01011111000000000010000001"),
    (r"^\Bb", "00000000000000000000000000"),
    ("[&a]", "01011111100000000010000001"),
    ("[a&b]", "01011111100000000010000001"),
    ("[^^]", "01111111111111111111111111"),
    ("(?:)", "11111111111111111111111111"),
    ("|a", "11111111111111111111111111"),
]


@pytest.mark.parametrize(("pattern", "found"), FOUND)
def test_a_pattern_is_found_in_the_same_texts_as_in_java(pattern: str, found: str) -> None:
    occurs = searcher(pattern)
    assert "".join("01"[occurs(text)] for text in TEXTS) == found


WRONG = [
    ("(", "has a ( without its ), at character 1"),
    ("a)", "has a ) without its (, at character 2"),
    ("[a", "has a [ without its ], at character 1"),
    ("a|*", "has a * with nothing before it to repeat, at character 3"),
    ("a{", "has a { that begins no repetition"),
    ("[z-a]", "has a range whose end is before its beginning, at character 2"),
    ("a\\", "ends in a \\, at character 2"),
    ("(?P<n>a)", "has a (? that begins no group"),
    ("(?<n>a)(?<n>b)", "has two groups n, at character 8"),
    (r"\uD800", "names U+D800, which is not a character"),
]

REFUSED = [
    ("a(?=b)", "looking ahead is not supported in the regular expression 'a(?=b)', at character 2"),
    ("(?<!a)b", "looking back"),
    ("(?>a)", "an independent group"),
    (r"(a)\1", "a reference to a group"),
    ("a++", "a possessive quantifier"),
    ("a{2}{3}", "a repetition of a repetition"),
    ("a$\n", "$ before the end"),
    ("(a$)*", "$ before the end"),
    ("(a$)(b)", "$ before the end"),
    ("(?m)^a", "^ under the flag m"),
    ("(?x) a", "the flag x"),
    (r"\R", r"\R"),
    (r"\p{InGreek}", r"\p{InGreek}"),
    (r"(?i)\p{Lower}", "under the flag i"),
    ("[]a]", "] as the first character of a class"),
    (r"[\d-z]", "a - after a class"),
    (r"[\p{L}&&[^a]]", "&& of classes of Unicode"),
    ("[^a[b]]", "[^...] of a class within a class"),
]


@pytest.mark.parametrize(("pattern", "reason"), WRONG)
def test_the_error_of_an_invalid_pattern_names_the_place(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        to_re2(pattern)
    assert "is not a regular expression" in str(caught.value) and reason in str(caught.value)


@pytest.mark.parametrize(("pattern", "what"), REFUSED)
def test_a_construct_without_an_equivalent_in_re2_is_refused_with_the_remedy(pattern: str, what: str) -> None:
    with pytest.raises(ValueError) as caught:
        to_re2(pattern)
    assert what in str(caught.value) and "is not supported" in str(caught.value) and "; " in str(caught.value)


def test_patterns_beyond_the_limits_of_re2_are_refused() -> None:
    with pytest.raises(ValueError, match="that RE2 can search: invalid repetition size"):
        searcher("a{1001}")
    with pytest.raises(ValueError, match="nests groups too deeply"):
        searcher("(" * 5000 + ")" * 5000)
    with pytest.raises(ValueError, match="10001 characters is too long"):
        searcher("a" * 10_001)


SLOW = ("(a*)*b", "(a|a)*b", "(a|aa)+$", "(.*){10}b", "(a?){50}a{50}b", "^(([a-z])+.)+[A-Z]$")


@pytest.mark.parametrize("pattern", SLOW)
def test_the_time_of_a_search_is_linear_in_the_text(pattern: str) -> None:
    """A search that goes back tries a number of ways that is exponential in the text."""
    assert not searcher(pattern)("a" * 100_000 + "!")


# The parts of random patterns.
ATOMS = (
    *("a", "b", "B", "k", "1", "_", " ", ".", r"\d", r"\w", r"\s", r"\S", r"\W", r"\D", r"\h", r"\v", r"\V", r"\H"),
    *("[ab]", "[^ab]", "[a-c]", "[a-z&&[^b]]", "[a[1-3]]", r"[^\d]", r"[\w-]", "[a-]", "[-a]", r"[a\]]", r"\.", r"\$"),
    *(r"\\", r"\x41", r"\u0041", r"\x{1F600}", r"\t", r"\n", r"\r", r"\Qa.b\E", r"\p{Alpha}", r"\p{L}", r"\P{L}"),
    *(r"\pN", r"[\p{Lu}1]", r"[^\p{L}]", r"[^\p{L}1]", r"\p{Punct}", "é", "É", r"\077", r"\cJ", "}", "]", "-", "&"),
    *("[a&b]", "^", "$", r"\A", r"\z", r"\Z", "(?i)", "(?i:a)", "(?s).", "(?-i)", "[a-c&&b-d]", "[[a-b]c]", "[^K]"),
    *("[+--]", "{", "*", r"[a-\d]", "[z-a]", "[a", "(?<n>a)", r"\y", "a{2}", "a{,2}", "\\", "[😀é]", r"\uD83D\uDE00"),
)
CHARACTERS = "abBkK1_ \n\r\té\u2028\x85-.]$\\&\x0bÉ?\u212aſsΣ😀^{}\xa0²٣+cdL"
TIMES = ("", "", "", "", "*", "+", "?", "{2}", "{0,1}", "{1,}", "*?", "+?", "??", "++")

PROGRAM = """
import java.nio.file.*; import java.util.regex.*;
class Patterns {
    static String text(String hex) {
        var made = new StringBuilder();
        for (int i = 0; i < hex.length(); i += 4) made.append((char) Integer.parseInt(hex.substring(i, i + 4), 16));
        return made.toString();
    }
    public static void main(String[] files) throws Exception {
        for (String line : Files.readAllLines(Path.of(files[0]))) {
            var fields = line.split(" ", -1);
            var found = new StringBuilder();
            try {
                var pattern = Pattern.compile(text(fields[0]));
                for (int i = 1; i < fields.length; i++) found.append(pattern.matcher(text(fields[i])).find() ? 1 : 0);
            } catch (PatternSyntaxException wrong) {
                found.append("wrong");
            }
            System.out.println(found);
        }
    }
}
"""


def drawn(chance: random.Random, depth: int = 0) -> str:
    made = ""
    for _ in range(chance.randint(0 if depth else 1, 3)):
        if chance.random() < 0.2 and depth < 2:
            made += chance.choice(("(", "(?:", "(?i:")) + drawn(chance, depth + 1) + ")" + chance.choice(TIMES)
        else:
            made += chance.choice(ATOMS) + chance.choice(TIMES)
    if chance.random() < 0.2:
        made += "|" + drawn(chance, depth + 1)
    if depth == 0 and chance.random() < 0.3:
        made = chance.choice(("^" + made, made + "$"))
    return made


@pytest.mark.full
@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler")
def test_random_patterns_match_as_in_java(tmp_path: Path) -> None:
    chance = random.Random(seeds(1)[0])
    cases = []
    while len(cases) < examples(10_000):
        pattern = drawn(chance)
        texts = ["", *("".join(chance.choices(CHARACTERS, k=chance.randint(1, 5))) for _ in range(12))]
        # See the docstring of ``regular_expressions``.
        if r"\r" not in pattern:
            cases.append((pattern, texts))
    (tmp_path / "Patterns.java").write_text(PROGRAM)
    lines = (" ".join(one.encode("utf-16-be").hex() for one in (pattern, *texts)) for pattern, texts in cases)
    (tmp_path / "cases").write_text("\n".join(lines))
    command = ["java", str(tmp_path / "Patterns.java"), str(tmp_path / "cases")]
    answers = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    accepted = 0
    for (pattern, texts), answer in zip(cases, answers, strict=False):
        try:
            occurs = searcher(pattern)
        except ValueError:
            continue
        accepted += 1
        assert "".join("01"[occurs(text)] for text in texts) == answer, (pattern, texts)
    assert accepted > len(cases) / 4
