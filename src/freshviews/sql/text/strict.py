"""Refuses SQL in which a word, an item or a name is missing. Spark refuses it, too; sqlglot's parser accepts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import TokenType, exp

from freshviews.sql.text.operators import Operators

_NO_NAMES = (
    *(TokenType.STRING, TokenType.NUMBER, TokenType.NATIONAL_STRING, TokenType.RAW_STRING, TokenType.HEX_STRING),
    *(TokenType.BYTE_STRING, TokenType.BIT_STRING, TokenType.UNICODE_STRING),
)
_OF_TWO_WORDS = (
    *(TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY),
    *(TokenType.SORT_BY, TokenType.GROUPING_SETS),
)


class Strict(Operators):
    """The Spark parser, without sqlglot's leniency."""

    def _needs(self, token: TokenType, word: str, example: str) -> None:
        if not self._match(token):
            self.raise_error(f"{word} is missing, as in {example}")

    def _value(self, parse: Callable[[], Any]) -> Any:
        """The value that ``parse`` reads; an error if it reads none."""
        before, made = self._prev, parse()
        if made is None:
            self.raise_error(f"something is missing after {before.text}", before)
        return made

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        first = parse_method()
        if first is None:
            if self._curr.token_type == sep:
                self.raise_error(f"something is missing before {self._curr.text}")
            return []
        items = [first]
        while self._match(sep):
            items.append(self._value(parse_method))
        return items

    def _parse_function_args(self, alias: bool = False) -> Any:
        return super()._parse_function_args(False)

    def _parse_id_var(self, any_token: bool = True, tokens: Any = None) -> Any:
        token = self._curr
        # A keyword of two words, as GROUP BY, is one token.
        is_word = token.token_type not in (*_NO_NAMES, *_OF_TWO_WORDS) and (
            token.text[:1].isalnum() or token.text[:1] == "_"
        )
        return super()._parse_id_var(any_token and is_word, tokens)

    def _parse_string_as_identifier(self) -> None:
        """Read nothing: a string is not a name."""

    def _parse_alias(self, this: Any, explicit: bool = False) -> Any:
        made = super()._parse_alias(this, explicit)
        if made is this and self._prev.token_type == TokenType.ALIAS:
            self.raise_error("a name is missing after AS", self._prev)
        return made

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        made = super()._parse_table_alias(alias_tokens)
        if made is None and self._prev.token_type == TokenType.ALIAS:
            self.raise_error("a name is missing after AS", self._prev)
        return made

    def _parse_star_op(self, *keywords: str) -> Any:
        if self._match_texts(keywords, advance=False) and self._next.token_type != TokenType.L_PAREN:
            word = self._curr.text.upper()
            self.raise_error(f"* {word} takes columns in parentheses, as in * EXCEPT (a, b)")
        made = super()._parse_star_op(*keywords)
        if made == []:
            self.raise_error("* EXCEPT takes at least one column, as in * EXCEPT (a, b)", self._prev)
        return made

    def _parse_table_parts(self, *args: Any, **options: Any) -> Any:
        made = super()._parse_table_parts(*args, **options)
        if made is not None and self._curr.token_type == TokenType.STAR:
            self.raise_error("Unexpected token")
        return made

    def _parse_primary(self) -> Any:
        if self._curr.token_type == TokenType.DOT and self._next.start != self._curr.end + 1:
            self.raise_error("something is missing before .")
        return super()._parse_primary()

    def _parse_limit(self, this: Any = None, top: bool = False, skip_limit_token: bool = False) -> Any:
        """LIMIT and FETCH. TOP, and FETCH before the list, are not clauses of Spark."""
        if top:
            return this
        fetch, example = self._curr, "as in FETCH FIRST 3 ROWS ONLY"
        if fetch.token_type == TokenType.FETCH and self._next.token_type not in (TokenType.FIRST, TokenType.NEXT):
            self.raise_error(f"FIRST is missing after FETCH, {example}", fetch)
        made = super()._parse_limit(this, top, skip_limit_token)
        if fetch.token_type == TokenType.FETCH and self._prev.text.upper() not in ("ONLY", "TIES"):
            self.raise_error(f"ROWS ONLY is missing after FETCH, {example}", fetch)
        return made

    def _parse_cte(self) -> Any:
        if self._curr.token_type == TokenType.ALIAS:
            self.raise_error("a name is missing before AS, as in WITH q AS (SELECT ...)")
        return super()._parse_cte()

    def _parse_window(self, this: Any, alias: bool = False) -> Any:
        made = super()._parse_window(this, alias)
        if made is not this and self._prev.token_type in (TokenType.OVER, TokenType.ALIAS):
            word = self._prev.text.upper()
            self.raise_error(f"a window is missing after {word}, as in {word} (ORDER BY a)", self._prev)
        return made

    def _parse_lambda(self, alias: bool = False) -> Any:
        if self._prev.token_type == TokenType.COMMA and self._curr.token_type == TokenType.ALL:
            self.raise_error("ALL is accepted only before the first argument of an aggregate, as in COUNT(ALL a)")
        return super()._parse_lambda(alias)

    def _parse_cast(self, *args: Any, **options: Any) -> Any:
        made = super()._parse_cast(*args, **options)
        if self._prev.token_type == TokenType.COLLATE:
            self.raise_error("COLLATE in CAST is not supported; leave it out", self._prev)
        return made

    def _parse_row(self) -> Any:
        """ROW FORMAT is refused; sqlglot accepts ROW alone."""
        self.raise_error("Unexpected token", self._prev)

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Any:
        first, made = self._curr, super()._parse_type(parse_interval, fallback_to_identifier)
        if type(made) is exp.Cast and first.text.upper() != "CAST" and not made.this.is_string:
            self.raise_error(f"{first.text.upper()} before a constant takes a string, as in DATE '2026-01-01'", first)
        return made

    def _parse_using_identifiers(self) -> Any:
        if self._curr.token_type != TokenType.L_PAREN:
            self.raise_error("USING needs columns in parentheses, as in USING (x)", self._prev)
        return super()._parse_using_identifiers()

    def _parse_case(self) -> Any:
        if self._curr.token_type == TokenType.DOT:
            return super()._parse_case()
        value = None if self._curr.token_type == TokenType.WHEN else self._value(self._parse_disjunction)
        branches = []
        while self._match(TokenType.WHEN):
            when = self._value(self._parse_disjunction)
            self._needs(TokenType.THEN, "THEN", "CASE WHEN a THEN b END")
            branches.append(self.expression(exp.If(this=when, true=self._value(self._parse_disjunction))))
        if not branches:
            self.raise_error("WHEN is missing, as in CASE WHEN a THEN b END")
        default = self._value(self._parse_disjunction) if self._match(TokenType.ELSE) else None
        self._needs(TokenType.END, "END", "CASE WHEN a THEN b END")
        return self.expression(exp.Case(this=value, ifs=branches, default=default))

    def _parse_substring(self) -> Any:
        args = self._parse_csv(self._parse_disjunction)
        if len(args) == 1 and self._match(TokenType.FROM):
            args.append(self._value(self._parse_disjunction))
            if self._match(TokenType.FOR):
                args.append(self._value(self._parse_disjunction))
        return self.expression(exp.Anonymous(this="substring", expressions=args))

    def _parse_position(self, haystack_first: bool = False) -> Any:
        args = self._parse_csv(self._parse_bitwise)
        if len(args) == 1 and self._match(TokenType.IN):
            args.append(self._value(self._parse_bitwise))
        return self.expression(exp.Anonymous(this="position", expressions=args))

    def _parse_where(self, skip_where_token: bool = False) -> Any:
        if skip_where_token and self._prev.token_type != TokenType.WHERE:
            self.raise_error("WHERE is missing, as in COUNT(*) FILTER (WHERE a > 0)")
        return super()._parse_where(skip_where_token)

    def _parse_group(self, skip_group_by_token: bool = False) -> Any:
        """GROUP BY. ALL is read as a column of this name."""
        if not skip_group_by_token and not self._match(TokenType.GROUP_BY):
            return None
        clauses: dict[str, Any] = {"all": False} if self._match(TokenType.DISTINCT) else {}
        clauses["expressions"] = self._parse_csv(self._parse_grouping_set)
        behind = self._curr
        if self._match(TokenType.WITH):
            after = self._parse_cube_or_rollup(with_prefix=True)
            if after is not None:
                clauses["rollup" if isinstance(after, exp.Rollup) else "cube"] = [after]
                behind = self._prev
            elif self._match_text_seq("TOTALS"):
                clauses["totals"] = True
            else:
                self._retreat(self._index - 1)
        elif (sets := self._parse_grouping_sets()) is not None:
            clauses["grouping_sets"] = [sets]
        more = self._curr.token_type
        if behind is not self._curr and more in (TokenType.COMMA, TokenType.WITH, TokenType.GROUPING_SETS):
            what = f"{behind.text.upper()} after the groups must be the only one, and last"
            self.raise_error(f"{what}; to combine several, write GROUP BY ROLLUP (a), CUBE (b)", behind)
        return self.expression(exp.Group(**clauses))

    def _parse_ordered(self, parse_method: Any = None) -> Any:
        """An expression of ORDER BY. ALL is read as a column of this name; sqlglot takes all.all for it, too."""

        def inner() -> Any:
            found = (parse_method or self._parse_disjunction)()
            if self._curr.token_type == TokenType.ASC and self._next.token_type == TokenType.DESC:
                self.raise_error("ASC and DESC exclude each other; write only one")
            return None if found is None else exp.Paren(this=found)

        made = super()._parse_ordered(inner)
        if made is not None:
            made.set("this", made.this.this)
        return made

    def _parse_partition_by(self) -> Any:
        return self._listed(super()._parse_partition_by, "PARTITION BY")

    def _parse_order(self, this: Any = None, skip_order_token: bool = False) -> Any:
        return self._listed(lambda: super(Strict, self)._parse_order(this, skip_order_token), "ORDER BY")

    def _parse_named_window(self) -> Any:
        if self._next.token_type != TokenType.ALIAS:
            self.raise_error("AS is missing, as in WINDOW w AS (ORDER BY a)", self._next)
        return super()._parse_named_window()

    def _parse_window_spec(self) -> dict[str, Any]:
        """A bound of a frame. BETWEEN must come before the first bound, AND after it; sqlglot requires neither."""
        before, example = self._prev.token_type, "as in ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
        value = "UNBOUNDED" if self._match_text_seq("UNBOUNDED") else None
        value = "CURRENT ROW" if value is None and self._match_text_seq("CURRENT", "ROW") else value
        made = {"value": value or self._value(self._parse_bitwise), "side": None}
        if value != "CURRENT ROW":
            if not self._match_texts(self.WINDOW_SIDES):
                self.raise_error(f"PRECEDING or FOLLOWING is missing, {example}")
            made["side"] = self._prev.text
        if before == TokenType.BETWEEN and self._curr.token_type != TokenType.AND:
            self.raise_error(f"the second bound of the frame is missing, {example}", self._prev)
        if before not in (TokenType.BETWEEN, TokenType.AND) and self._curr.token_type == TokenType.AND:
            self.raise_error(f"BETWEEN is missing before the first bound of the frame, {example}")
        return made

    def _listed(self, parse: Callable[[], Any], clause: str) -> Any:
        """A clause with at least one expression."""
        index, made = self._index, parse()
        if self._index > index and self._prev is self._tokens[index]:
            self.raise_error(f"{clause} needs an expression", self._prev)
        return made
