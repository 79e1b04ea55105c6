"""``python -m plap``."""

from plap.cli import main

main()
