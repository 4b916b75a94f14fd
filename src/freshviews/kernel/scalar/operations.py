"""Lists every compiled scalar operation by name, for code generation (``freshviews.expr.ops``).

NULL in any argument gives NULL, unless the operation says otherwise.
"""

# ruff: noqa: F403
from freshviews.kernel.scalar.dates import *
from freshviews.kernel.scalar.failure import ERRORS as ERRORS
from freshviews.kernel.scalar.failure import LEAST as LEAST
from freshviews.kernel.scalar.floats import *
from freshviews.kernel.scalar.integers import *
from freshviews.kernel.scalar.logic import *
