"""Every compiled scalar operation by name, for code generation: functions over int64 codes.

``freshviews.expr.ops`` defines each operation. Unless the definition says otherwise, NULL in any argument gives NULL. A
fallible operation takes ``status``, the address of a word. On an error the operation returns NULL, and stores a key of
``ERRORS`` in this word if the word is still 0.
"""

# ruff: noqa: F403
from freshviews.kernel.scalar.dates import *
from freshviews.kernel.scalar.failure import ERRORS as ERRORS
from freshviews.kernel.scalar.failure import LEAST as LEAST
from freshviews.kernel.scalar.floats import *
from freshviews.kernel.scalar.integers import *
from freshviews.kernel.scalar.logic import *
