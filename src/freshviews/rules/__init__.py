"""Rules: views in the language of the papers, ``tri(a, b, c) <- r(a, b), s(b, c), t(c, a).``

::

    text --parse--> rules --definitions--> heads in order, checked --script--> the SQL that they stand for

A rule is a view like any other: what keeps it fresh, how it is stored and read is said of views.
"""

from freshviews.rules.script import RuleScript, script_of

__all__ = ["RuleScript", "script_of"]
