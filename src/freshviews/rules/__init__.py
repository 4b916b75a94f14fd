"""Defines views by rules, the language of the papers: ``tri(a, b, c) <- r(a, b), s(b, c), t(c, a).``

The left side of a rule is its head, a view; the right side joins relations.

::

    text --parse--> rules --definitions--> heads in order, checked --equivalent_sql--> the equivalent SQL
"""

from freshviews.rules.equivalent_sql import RuleScript, script_of

__all__ = ["RuleScript", "script_of"]
