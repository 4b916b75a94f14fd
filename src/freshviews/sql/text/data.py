"""Parses MERGE, UPDATE, COMMENT, and the statements that begin and end a transaction (BEGIN, COMMIT)."""

from __future__ import annotations

from typing import Any

from sqlglot import TokenType, exp

from freshviews.sql.text.strict import Strict

_WHEN = "WHEN MATCHED THEN UPDATE SET a = s.a"


class DataStatements(Strict):
    """The Spark parser for statements of data."""

    def _parse_statement(self) -> Any:
        """START TRANSACTION is BEGIN."""
        if self._match_text_seq("START", "TRANSACTION"):
            return self.expression(exp.Transaction())
        return super()._parse_statement()

    def _parse_comment(self, allow_exists: bool = True) -> Any:
        """``COMMENT ON TABLE t IS 'text'``, also of a VIEW or a COLUMN; NULL removes the comment."""
        example = "COMMENT ON TABLE t IS 'text'"
        self._needs(TokenType.ON, "ON", example)
        self._match_text_seq("MATERIALIZED")
        if not self._match_set((TokenType.TABLE, TokenType.VIEW, TokenType.COLUMN)):
            self.raise_error("TABLE, VIEW or COLUMN is accepted after COMMENT ON")
        kind = self._prev.text.upper()
        parse = self._parse_column if kind == "COLUMN" else self._parse_table_parts
        name = self._value(parse)
        self._needs(TokenType.IS, "IS", example)
        text = exp.Null() if self._match(TokenType.NULL) else self._parse_string()
        if text is None:
            self.raise_error("a text or NULL is missing after IS", self._prev)
        return self.expression(exp.Comment(this=name, kind=kind, expression=text))

    def _parse_update_assignment(self) -> Any:
        """``column = value``. DEFAULT as a value is the word alone."""
        if self._match(TokenType.STAR):
            return self.expression(exp.Star())
        column = self._value(self._parse_column)
        self._needs(TokenType.EQ, "=", "SET a = 1")
        if self._match(TokenType.DEFAULT):
            return self.expression(exp.EQ(this=column, expression=exp.var("DEFAULT")))
        return self.expression(exp.EQ(this=column, expression=self._value(self._parse_disjunction)))

    def _parse_update(self) -> Any:
        table = self._value(lambda: self._parse_table(alias_tokens=self.UPDATE_ALIAS_TOKENS))
        self._needs(TokenType.SET, "SET", "UPDATE t SET a = 1 WHERE b = 2")
        sets, others = self._parse_csv(self._parse_update_assignment), self._parse_from(joins=True)
        return self.expression(exp.Update(this=table, expressions=sets, from_=others, where=self._parse_where()))

    def _parse_merge(self) -> Any:
        example = f"MERGE INTO t USING s ON t.id = s.id {_WHEN}"
        self._match(TokenType.INTO)
        target = self._value(self._parse_table)
        self._needs(TokenType.USING, "USING", example)
        source = self._value(self._parse_table)
        self._needs(TokenType.ON, "ON", example)
        on = self._value(self._parse_disjunction)
        if self._curr.token_type != TokenType.WHEN:
            self.raise_error(f"WHEN is missing, as in {_WHEN}")
        return self.expression(exp.Merge(this=target, using=source, on=on, whens=self._parse_when_matched()))

    def _parse_when_matched(self) -> Any:
        whens = []
        while self._match(TokenType.WHEN):
            negated = self._match(TokenType.NOT)
            if not self._match_text_seq("MATCHED"):
                self.raise_error(f"MATCHED is missing, as in {_WHEN}")
            of_source = None
            if negated and self._match_text_seq("BY"):
                of_source = self._match_text_seq("SOURCE")
                if not of_source and not self._match_text_seq("TARGET"):
                    self.raise_error("SOURCE or TARGET is missing after WHEN NOT MATCHED BY")
            condition = self._value(self._parse_disjunction) if self._match(TokenType.AND) else None
            self._needs(TokenType.THEN, "THEN", _WHEN)
            then = self._parse_action()
            when = exp.When(matched=not negated, source=bool(of_source), condition=condition, then=then)
            whens.append(self.expression(when))
        return self.expression(exp.Whens(expressions=whens))

    def _parse_action(self) -> Any:
        if self._match(TokenType.DELETE):
            return self.expression(exp.Var(this="DELETE"))
        if self._match(TokenType.UPDATE):
            self._needs(TokenType.SET, "SET", _WHEN)
            return self.expression(exp.Update(expressions=self._parse_csv(self._parse_update_assignment)))
        if not self._match(TokenType.INSERT):
            self.raise_error("UPDATE SET, DELETE or INSERT is accepted after THEN")
        if self._match(TokenType.STAR):
            return self.expression(exp.Insert(this=exp.Star()))
        columns = self._parse_wrapped_csv(self._parse_column)
        self._needs(TokenType.VALUES, "VALUES", "INSERT (a, b) VALUES (s.a, s.b)")
        values = self._parse_wrapped_csv(self._parse_inserted)
        return self.expression(
            exp.Insert(this=exp.Tuple(expressions=columns), expression=exp.Tuple(expressions=values))
        )

    def _parse_inserted(self) -> Any:
        return exp.var("DEFAULT") if self._match(TokenType.DEFAULT) else self._parse_disjunction()
