"""Runs functions as machine code from files, or as plain Python until their machine code is loaded.

- ``functions``: functions of words with a Python body and, once it is loaded, machine code.
- ``cache``: the folder of compiled code; ``native``: writes the files of this folder and loads their code.
- ``beside``: runs functions as plain Python while another process compiles them; ``compiling``: that process.
- ``interruption``: lets Ctrl-C end a step of a commit.
"""

__all__ = ["beside", "cache", "compiling", "functions", "interruption", "native"]
