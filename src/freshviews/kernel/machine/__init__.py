"""Machine code: functions that have it, files that store it, and plain Python that runs until it is loaded.

- ``functions``: functions of words with a Python body and, once it is loaded, machine code.
- ``cache``: the folder of compiled code; ``native``: its files, loaded into this process.
- ``beside``: another process compiles, while functions run as plain Python.
"""

__all__ = ["beside", "cache", "functions", "native"]
